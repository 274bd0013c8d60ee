import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Randomness
import Scenarios
import Testing

/// The connections of the engine, and the requests that wait for one.
@Suite("Pools of connections", .timeLimit(.minutes(5))) struct PoolTests {
  private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

  /// Sends a request again on a new connection, which is younger than every idle one, although it has carried nothing.
  @Test("A new connection is not mistaken for the oldest one if many are idle") func manyIdle() async throws {
    let drops = Counter()
    let server = try StreamTestServer { connection in
      while true {
        let head = try connection.readHead()
        // The second request of the last host is dropped.
        let isDropped = String(decoding: head, as: UTF8.self).contains("drop")
        if isDropped, drops.now == 0 {
          drops.enter()
          return
        }
        try connection.write(Self.ok)
      }
    }
    let client = Client(connectionsPerHost: 1) { options in
      options.hostOverrides = (0..<80).map {
        .init(host: "h\($0).test", target: "127.0.0.1", targetPort: server.port)
      }
    }
    for number in 0..<80 { #expect(try await client.get("http://h\(number).test/").text == "ok") }
    #expect(try await client.get("http://h79.test/drop").text == "ok")
    #expect(drops.now == 1)
    let snapshot = await client.transport.snapshot()
    #expect(snapshot.hosts.reduce(0) { $0 + $1.idleConnections } <= 64)
  }

  @Test("A failure to connect ends only the request that the connection was for")
  func ownFailure() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let gate = Gate()
    server.enqueue(.text("late").held(by: gate))
    let client = Client(connectionsPerHost: 2) { $0.httpVersions = .http1Only }
    let url = server.url("/get")
    let first = Task { try await client.get(url).status }
    await gate.waitForArrival()
    let hasty = Client.profile(2) { options in
      options.httpVersions = .http1Only
      options.timeLimits = .init(connect: .nanoseconds(0))
    }
    let failure = try await client.failure(of: client.request(url, profile: hasty))
    #expect(failure.kind == .timedOut && failure.phase == .connect, "\(failure.message)")
    gate.open()
    #expect(try await first.value == 200)
  }

  @Test("A waiting request takes the connection that another one leaves") func freedConnection() async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate), .text("second"), .text("third"))
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/")
    let first = Task { try await client.get(url).text }
    await gate.waitForArrival()
    let others = (0..<2).map { _ in Task { try await client.get(url).text } }
    gate.open()
    #expect(try await first.value == "first")
    for other in others { #expect(["second", "third"].contains(try await other.value)) }
    #expect(server.connectionCount == 1)
  }

  /// Begins a connection for a request that then gets another one.
  @Test("A connection that no request needs any more is given up when the loop gives its thread back")
  func unneeded() async throws {
    let server = try HTTPTestServer(.tls(.localhost), routes: .none)
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate), .text("second").closing())
    let client = Client(connectionsPerHost: 2, lingering: .milliseconds(1)) { $0.httpVersions = .http1Only }
    let url = server.url("/")
    let first = Task { try await client.get(url).text }
    await gate.waitForArrival()
    server.enqueue(connections: .stall)
    let second = Task { try await client.get(url).text }
    #expect(await ProcessFacts.eventually { server.connectionCount == 2 }, "there is no second connection")
    gate.open()
    #expect(try await first.value == "first")
    #expect(try await second.value == "second")
    #expect(
      await ProcessFacts.eventually { server.openConnectionCount == 0 }, "it is still being established")
    client.transport.shutDown()
  }

  /// Fills the limit of connections with idle ones, of which the next request gets one that the server closes.
  @Test("A request that is sent again makes room for its connection") func roomForRepeat() async throws {
    let gate = Gate()
    let drops = Counter()
    let server = try StreamTestServer { connection in
      while true {
        let head = String(decoding: try connection.readHead(), as: UTF8.self)
        if head.contains("/held") { try connection.pass(gate) }
        if head.contains("/drop"), drops.now == 0 {
          drops.enter()
          return
        }
        try connection.write(Self.ok)
      }
    }
    let client = Client(connectionsPerHost: 2)
    let url = "http://127.0.0.1:\(server.port)"
    let first = Task { try await client.get("\(url)/held").text }
    await gate.waitForArrival()
    let others = (0..<2).map { _ in Task { try await client.get("\(url)/other").text } }
    for other in others { #expect(try await other.value == "ok") }
    let repeated = Task { try await client.get("\(url)/drop").text }
    #expect(await ProcessFacts.eventually { drops.now == 1 }, "the request was not dropped")
    gate.open()
    #expect(try await first.value == "ok")
    #expect(try await repeated.value == "ok")
  }

  @Test("Cancelling a request that waits for its connection leaves no connection behind") func cancelled()
    async throws
  {
    let silent = try UnresponsivePort()
    let client = Client()
    let watcher = Watcher()
    let task = Task {
      try await client.failure(of: client.request("http://127.0.0.1:\(silent.port)/"), watcher: watcher)
    }
    await watcher.began.wait()
    watcher.cancel()
    #expect(try await task.value.kind == .cancelled)
    let snapshot = await client.transport.snapshot()
    #expect(snapshot.hosts.allSatisfy { $0.openConnections == 0 && $0.running.isEmpty }, "\(snapshot)")
  }

  /// Sends the head of a request on a connection that the server closes at this moment.
  @Test(
    "A stream that was not read is sent on another connection, one that was read is not", .steps,
    arguments: [false, true])
  func unreadStream(isRead: Bool) async throws {
    let connections = Counter()
    let server = try StreamTestServer { connection in
      connections.enter()
      let isFirst = connections.now == 1
      _ = try connection.readHead()
      try connection.write(Self.ok)
      // The first connection ends with its second request.
      if isFirst { return _ = try connection.readHead() }
      connection.waitForEnd()
    }
    let client = Client()
    let url = "http://127.0.0.1:\(server.port)/"
    step("first request")
    #expect(try await client.get(url).text == "ok")
    let source = ScriptedSource(isRead ? .bytes([1, 2, 3]) : .wait, isRepeatable: false)
    let request = try client.request(url, "PUT", body: .source(source))
    let watcher = Watcher()
    step("request on the connection that ends")
    let task = Task { try await client.send(request, watcher: watcher) }
    guard isRead else {
      await source.hasWaited.wait()
      #expect(await ProcessFacts.eventually { connections.now == 2 }, "the request was not sent again")
      source.wake()
      #expect(try await task.value.text == "ok")
      #expect(source.starts == 1)
      return
    }
    step("failure of the request")
    do {
      _ = try await task.value
      Issue.record("a response came although the body cannot be sent again")
    } catch let failure as TransportFailure {
      #expect(failure.kind == .connectionLost, "\(failure.message)")
      #expect(failure.message.contains("Data or a file"), "\(failure.message)")
    }
  }

  @Test("Random requests, cancellations and ends leave no connections or requests behind", arguments: 0..<4)
  func walk(part: Int) async throws {
    let seed = Seed.current
    var random = SeededGenerator(seed: seed)
    let server = try HTTPTestServer(routes: .none)
    let client = Client(connectionsPerHost: Int.random(in: 1...6, using: &random))
    let url = server.url("/")
    for round in 0..<40 {
      var tasks: [Task<Bool, any Error>] = []
      for _ in 0..<Int.random(in: 1...12, using: &random) {
        // A request that is dropped on a used connection is sent again, so that the server needs more replies.
        for _ in 0..<2 { server.enqueue(Self.replies.randomElement(using: &random) ?? .text("ok")) }
        let isCancelled = Int.random(in: 0..<5, using: &random) == 0
        let request = try client.request(url, idleTimeout: .seconds(60))
        let watcher = Watcher()
        tasks.append(
          Task {
            do {
              return try await client.send(request, watcher: watcher).text == "ok"
            } catch let failure as TransportFailure {
              return failure.kind == .cancelled || failure.kind == .connectionLost
            }
          })
        if isCancelled { watcher.cancel() }
      }
      for task in tasks { #expect(try await task.value, "seed \(seed), round \(round)") }
    }
    let snapshot = await client.transport.snapshot()
    #expect(
      snapshot.hosts.allSatisfy { $0.running.isEmpty && $0.waiting.isEmpty && $0.openConnections <= 6 },
      "seed \(seed): \(snapshot)")
  }

  private static let replies: [Reply] = [
    .text("ok"), .text("ok"), .text("ok").closing(), .text("ok").with(effect: .closeBeforeReply),
    .text("ok").with(effect: .reset),
  ]
}
