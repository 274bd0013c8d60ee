import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// State of the whole process. Each test runs in a separate process.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ProcessTests {
  @Test("An idle loop ends its thread and preserves the connection") func idleLoop() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer()
      let client = Client(lingering: .milliseconds(50))
      #expect(ProcessFacts.engineThreadCount == 0, "a transport without traffic owns no thread")
      for round in 0..<3 {
        let response = try await client.get(server.url("/get"))
        #expect(response.metrics.values.isReusedConnection == (round > 0))
        #expect(ProcessFacts.engineThreadCount == 1)
        #expect(await ProcessFacts.eventually { ProcessFacts.engineThreadCount == 0 })
      }
      #expect(server.connectionCount == 1)
    }
  }

  @Test("A thread waits for the next request") func lingeringThread() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer()
      let client = Client(lingering: .seconds(60))
      let other = Client(lingering: .milliseconds(1))
      _ = try await client.get(server.url("/get"))
      _ = try await other.get(server.url("/get"))
      #expect(await ProcessFacts.eventually { ProcessFacts.engineThreadCount == 1 })
      client.transport.shutDown()
      #expect(await ProcessFacts.eventually { ProcessFacts.engineThreadCount == 0 }, "it lingers no more")
    }
  }

  @Test("Two thousand requests leave no resource behind") func resources() async {
    await #expect(processExitsWith: .success) {
      // Create global objects before counting starts.
      try await Self.useOnce(count: 50)
      try await LeakGuard.watch { try await Self.useOnce(count: 2000) }
    }
  }

  /// Requests of all kinds, over plain and TLS, with transports that are dropped afterwards.
  static func useOnce(count: Int) async throws {
    let servers = [try HTTPTestServer(), try HTTPTestServer(.tls(.localhost))]
    let clients = [Client(), Client()]
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        let url = servers[number % 2].url(number % 7 == 0 ? "/bytes/40000" : "/get")
        let client = clients[(number / 2) % 2]
        group.addTask {
          guard let request = try? client.request(url) else { return }
          let task = CancellationTests.start(client, request, Watcher())
          if number % 11 == 0 { task.cancel() }
          let kind = await task.value
          #expect(kind == nil || kind == .cancelled)
        }
      }
    }
    for server in servers { server.stop() }
  }

  @Test("Failures leave no resource behind") func resourcesOfFailures() async {
    await #expect(processExitsWith: .success) {
      try await Self.failOnce()
      try await LeakGuard.watch { for _ in 0..<10 { try await Self.failOnce() } }
    }
  }

  static func failOnce() async throws {
    let server = try HTTPTestServer(.tls(.localhost), routes: .none)
    let client = Client()
    server.enqueue(connections: .closeOnAccept, .plainText, .alert(40))
    for _ in 0..<3 { _ = try await client.failure(of: server.url("/")) }
    server.enqueue(.reset, .closeAfterBody(bytes: 10), .stall, .badGzip)
    for _ in 0..<4 { _ = try await client.failure(of: server.url("/"), idleTimeout: .milliseconds(50)) }
    _ = try await client.failure(of: "http://no-such-host.invalid/")
    _ = try await client.failure(of: "http://127.0.0.1:\(HTTPTestServer.refusedPort())/")
    let distrusting = Client {
      $0.trustStore = .pem(Data(TestIdentity.localhost.certificatePEM.utf8.dropLast(100)))
    }
    _ = try await distrusting.failure(of: server.url("/"))
    server.stop()
  }

  @Test("Shutting down with transfers in flight leaves no resource behind") func resourcesOfShutDown() async {
    await #expect(processExitsWith: .success) {
      try await Self.shutDownOnce()
      try await LeakGuard.watch { for _ in 0..<10 { try await Self.shutDownOnce() } }
    }
  }

  static func shutDownOnce() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    for _ in 0..<4 { server.enqueue(.ok.held(by: gate)) }
    let client = Client(connectionsPerHost: 4, lingering: .seconds(60))
    let url = server.url("/")
    let tasks = try (0..<10).map { _ in try CancellationTests.start(client, client.request(url), Watcher()) }
    await gate.waitForArrival(count: 4)
    client.transport.shutDown()
    for task in tasks { #expect(await task.value == .shutDown) }
    server.stop()
  }

  @Test("An unused transport leaves no resource behind") func resourcesOfUnused() async {
    await #expect(processExitsWith: .success) {
      _ = Client()
      try await LeakGuard.watch {
        for _ in 0..<200 {
          let client = Client()
          client.transport.shutDown()
        }
      }
    }
  }

  @Test("Programs that are started inherit no descriptor of an engine") func inheritance() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer(.tls(.localhost))
      let before = ProcessFacts.inheritedDescriptors
      // A socket of another owner, with a descriptor that a connection could have got, stays open.
      var foreign: [Int32] = [-1, -1]
      #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &foreign) == 0)
      let clients = (0..<3).map { _ in Client(lingering: .seconds(60)) }
      for client in clients { #expect(try await client.get(server.url("/get")).status == 200) }
      #expect(ProcessFacts.inheritedDescriptors.subtracting(before) == Set(foreign))
      // The wake-up still works: a request of another thread reaches a loop that polls.
      server.enqueue(.stall)
      let watcher = Watcher()
      let stalled = try CancellationTests.start(clients[0], clients[0].request(server.url("/")), watcher)
      await watcher.began.wait()
      // Else the second request could take the reply that stalls.
      #expect(await ProcessFacts.eventually { server.recordedRequests.count == 4 })
      #expect(try await clients[0].get(server.url("/get")).status == 200)
      stalled.cancel()
      #expect(await stalled.value == .cancelled)
    }
  }

  @Test("Releasing a transport with a closed peer does not end the process") func closedPeer() async {
    await #expect(processExitsWith: .success) {
      for _ in 0..<5 {
        let server = try HTTPTestServer(.tls(.localhost))
        var client: Client? = Client(lingering: .milliseconds(1))
        _ = try await client?.get(server.url("/get"))
        #expect(await ProcessFacts.eventually { ProcessFacts.engineThreadCount == 0 })
        server.stop()
        // The closing alert of TLS meets a socket that is closed on the other side.
        client = nil
      }
    }
  }
}
