import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConcurrencyTests {
  @Test("Five hundred requests respect the limit of connections", arguments: [false, true])
  func limit(isTLS: Bool) async throws {
    let replies = Counter()
    let routes = Routes.none.adding("/{number}") { _, parameters in
      replies.enter()
      defer { replies.leave() }
      return .text(parameters[0])
    }
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: routes)
    let client = Client(connectionsPerHost: 6)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<500 {
        group.addTask {
          let response = try await client.get(server.url("/\(number)"))
          #expect(response.text == "\(number)")
        }
      }
      try await group.waitForAll()
    }
    #expect(server.requestCount == 500)
    #expect(server.connectionCount <= 6, "connections are reused, so no more were opened")
    #expect((1...6).contains(replies.most))
  }

  @Test("As many requests run concurrently as there are connections") func concurrentRequests() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    for number in 0..<10 { server.enqueue(.text("\(number)").held(by: gate)) }
    let client = Client(connectionsPerHost: 4)
    let url = server.url("/")
    let tasks = (0..<10).map { _ in Task { try await client.get(url).status } }
    await gate.waitForArrival(count: 4)
    #expect(server.openConnectionCount == 4)
    #expect(server.requestCount == 4)
    gate.open()
    for task in tasks { #expect(try await task.value == 200) }
    #expect(server.connectionCount == 4)
  }

  @Test("A host that stalls does not delay another") func stalledHost() async throws {
    let slow = try HTTPTestServer(routes: .none)
    let quick = try HTTPTestServer()
    let gate = Gate()
    for _ in 0..<4 { slow.enqueue(.ok.held(by: gate)) }
    let client = Client(connectionsPerHost: 2)
    let url = slow.url("/")
    let waiting = (0..<4).map { _ in Task { try await client.get(url).status } }
    await gate.waitForArrival(count: 2)
    for _ in 0..<20 { #expect(try await client.get(quick.url("/get")).status == 200) }
    #expect(slow.requestCount == 2)
    gate.open()
    for task in waiting { #expect(try await task.value == 200) }
  }

  @Test("Higher priorities are first") func priorities() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let client = Client(connectionsPerHost: 1)
    let first = Task { try await client.get(server.url("/status/200")).status }
    await gate.waitForArrival()
    var tasks: [Task<Int, any Error>] = []
    for (number, priority) in [0.1, 0.5, 1, 0.5, 0].enumerated() {
      let watcher = Watcher()
      let request = try client.request(server.url("/status/20\(number)"), priority: Float(priority))
      tasks.append(Task { try await client.send(request, watcher: watcher).status })
      await watcher.began.wait()
    }
    gate.open()
    _ = try await first.value
    for task in tasks { _ = try await task.value }
    #expect(server.recordedRequests.dropFirst().map(\.path) == [2, 1, 3, 0, 4].map { "/status/20\($0)" })
  }

  @Test("A long queue of blocked requests does not overflow the stack") func longQueue() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.ok.held(by: gate), .text("last"))
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/")
    let first = Task { try await client.get(url).status }
    await gate.waitForArrival()
    let bad = try client.request(url, "HEAD", body: .bytes(Data([1])))
    let count = 20_000
    let began = Counter()
    let allBegan = Moment()
    await withTaskGroup(of: TransportFailure.FailureKind?.self) { group in
      for _ in 0..<count {
        let observer = BeginningObserver {
          began.enter()
          if began.now == count { allBegan.come() }
        }
        group.addTask { await CancellationTests.kind(client, bad, observer) }
      }
      await allBegan.wait()
      gate.open()
      for await kind in group where kind != .badURL { Issue.record("\(String(describing: kind))") }
    }
    #expect(try await first.value == 200)
    #expect(try await client.get(url).text == "last")
  }
}

/// An observer that signals the begin of its transfer.
private final class BeginningObserver: TransferObserver {
  private let began: @Sendable () -> Void
  init(_ began: @escaping @Sendable () -> Void) { self.began = began }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    began()
    return .go
  }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { .proceed }
  func bytesMoved(_ count: ByteCount) {}
  func transferEnded() {}
}
