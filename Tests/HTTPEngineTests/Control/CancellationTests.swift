import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct CancellationTests {
  /// Sends a request, and returns the kind of its failure, `nil` for a response.
  static func kind(_ client: Client, _ request: WireRequest, _ watcher: any TransferObserver) async
    -> TransportFailure.FailureKind?
  {
    do throws(TransportFailure) {
      _ = try await client.transport.send(request, observer: watcher)
      return nil
    } catch {
      #expect(error.helps())
      return error.kind
    }
  }

  /// Sends in a separate task, which can be cancelled.
  static func start(
    _ client: Client, _ request: WireRequest, _ watcher: any TransferObserver
  ) -> Task<TransportFailure.FailureKind?, Never> {
    Task { await kind(client, request, watcher) }
  }

  static func expectCancelled(
    _ task: Task<TransportFailure.FailureKind?, Never>, _ watcher: Watcher,
    _ location: SourceLocation = #_sourceLocation
  ) async {
    task.cancel()
    #expect(await task.value == .cancelled, sourceLocation: location)
    #expect(watcher.endedCount == watcher.beganCount, sourceLocation: location)
    #expect(watcher.callsAfterEnd == 0, sourceLocation: location)
  }

  @Test("A transfer is cancelled before its start") func beforeTheStart() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let watcher = Watcher()
    let request = try client.request(server.url("/get"))
    let kind = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await Self.kind(client, request, watcher)
    }.value
    #expect(kind == .cancelled)
    #expect(watcher.callsAfterEnd == 0)
    #expect(try await client.get(server.url("/get")).status == 200)
  }

  @Test("A transfer is cancelled in the queue") func inQueue() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate), .text("third"))
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/")
    let first = Task { try await client.get(url).text }
    await gate.waitForArrival()
    let watcher = Watcher()
    let second = try Self.start(client, client.request(url), watcher)
    await watcher.began.wait()
    let third = Task { try await client.get(url).text }
    await Self.expectCancelled(second, watcher)
    gate.open()
    #expect(try await first.value == "first")
    #expect(try await third.value == "third")
    #expect(server.requestCount == 2)
    #expect(server.connectionCount == 1)
  }

  @Test("A transfer is cancelled while it connects") func connecting() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: .stall)
    let client = Client()
    let watcher = Watcher()
    let task = try Self.start(client, client.request(server.url("/get")), watcher)
    await watcher.began.wait()
    // The client has connected, and waits for the answer to its first bytes.
    try await client.roundTrip()
    await Self.expectCancelled(task, watcher)
    #expect(try await client.get(server.url("/get")).status == 200)
  }

  @Test("A transfer is cancelled before the head") func beforeTheHead() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.text("never").held(by: gate), .text("next"))
    let client = Client()
    let watcher = Watcher()
    let task = try Self.start(client, client.request(server.url("/")), watcher)
    await gate.waitForArrival()
    await Self.expectCancelled(task, watcher)
    #expect(watcher.heads.isEmpty)
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 2, "a connection with an answer outstanding cannot be used again")
  }

  @Test("A transfer is cancelled in the body") func inTheBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.parts("first", .gate(gate), "second"), .text("next"))
    let client = Client()
    let hasCome = Moment()
    let watcher = Watcher(onBytes: { _, count in if count.received == 5 { hasCome.come() } })
    let task = try Self.start(client, client.request(server.url("/")), watcher)
    await gate.waitForArrival()
    await hasCome.wait()
    await Self.expectCancelled(task, watcher)
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("A suspended transfer is cancelled") func suspended() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.data(Content.bytes(3_000_000)), .text("next"))
    let client = Client()
    let watcher = Watcher(holdsHead: true)
    let task = try Self.start(client, client.request(server.url("/")), watcher)
    await watcher.headCame.wait()
    await Self.expectCancelled(task, watcher)
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("A callback of a transfer cancels it") func fromCallback() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let holder = Mutex<Task<TransportFailure.FailureKind?, Never>?>(nil)
    let isHeld = Moment()
    let watcher = Watcher(onHead: { _ in holder.withLock { $0 }?.cancel() })
    let request = try client.request(server.url("/bytes/2000000"))
    let task = Task {
      await isHeld.wait()
      return await Self.kind(client, request, watcher)
    }
    holder.withLock { $0 = task }
    isHeld.come()
    #expect(await task.value == .cancelled)
    #expect(watcher.endedCount == 1 && watcher.callsAfterEnd == 0)
  }

  @Test("Transfers that are cancelled at random moments end once each") func randomMoments() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let url = server.url("/bytes/50000")
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<300 {
        group.addTask {
          let watcher = Watcher()
          guard let request = try? client.request(url) else { return }
          let task = Self.start(client, request, watcher)
          for _ in 0..<(number % 40) { await Task.yield() }
          task.cancel()
          let kind = await task.value
          #expect(kind == nil || kind == .cancelled)
          #expect(watcher.endedCount == watcher.beganCount)
          #expect(watcher.callsAfterEnd == 0)
        }
      }
    }
    #expect(try await client.get(url).bytes.count == 50_000)
  }
}
