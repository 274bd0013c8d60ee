import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Limits of queues", .timeLimit(.minutes(5))) struct QueueLimitTests {
  private typealias Limits = TransportOptions.RequestLimits

  /// Returns the paths of the requests in the order in which the server got them.
  private func paths(_ server: HTTPTestServer, _ count: Int) async throws -> [String] {
    var paths: [String] = []
    for _ in 0..<count { paths.append(try await server.takeRequest().target) }
    return paths
  }

  private func reasons(_ client: Client) async -> [TransportSnapshot.WaitReason] {
    await client.transport.snapshot().hosts.flatMap { $0.waiting.map(\.reason) }
  }

  /// Starts a request and waits until the engine has it.
  private func start(
    _ client: Client, _ url: String, priority: Float = 0.5, profile: ConnectionProfile? = nil,
    watcher: Watcher = Watcher()
  ) async throws -> Task<Int, any Error> {
    let request = try client.request(url, priority: priority, profile: profile)
    let task = Task { try await client.send(request, watcher: watcher).status }
    await watcher.began.wait()
    return task
  }

  @Test("Requests in flight to a host are limited") func perHost() async throws {
    let server = try HTTPTestServer()
    let other = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let client = Client { $0.requestLimits = Limits(perHost: 1) }
    let first = try await start(client, server.url("/1"))
    await gate.waitForArrival()
    let second = try await start(client, server.url("/get"))
    #expect(await reasons(client) == [.requestsOfHost])
    #expect(try await client.get(other.url("/get")).status == 200)
    #expect(server.requestCount == 1)
    gate.open()
    #expect(try await [first.value, second.value] == [200, 200])
  }

  @Test("Requests in flight of a session are limited, and the highest priority of all hosts is next")
  func perSession() async throws {
    let server = try HTTPTestServer()
    let other = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let order = Order()
    let client = Client { $0.requestLimits = Limits(perSession: 1) }
    let first = try await start(client, server.url("/1"))
    await gate.waitForArrival()
    var tasks: [Task<Int, any Error>] = []
    for (index, priority) in [Float(0.2), 0.9, 0.5, 0.9].enumerated() {
      let watcher = Watcher(onHead: { _ in order.add(index) })
      let host = index % 2 == 0 ? server : other
      tasks.append(try await start(client, host.url("/get"), priority: priority, watcher: watcher))
    }
    #expect(await reasons(client) == Array(repeating: .requestsOfSession, count: 4))
    gate.open()
    for task in [first] + tasks { #expect(try await task.value == 200) }
    #expect(order.values == [1, 3, 2, 0])
  }

  @Test("Questions to a name service do not count for the limits, so that a stream opens at once")
  func nameQuestions() async throws {
    let names = NameService(["shop.example": [IPAddress.loopback4].compactMap { $0 }])
    let service = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let echo = try StreamTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let client = Client {
      $0.requestLimits = Limits(perSession: 1, ratePerHost: .init(perSecond: 0.0001))
      $0.nameServiceURL = service.url("/dns-query")
    }
    let first = try await start(client, server.url("/1"))
    await gate.waitForArrival()
    let (stream, probe) = client.stream("shop.example", port: echo.port)
    #expect(try await stream.echo([1, 2, 3]).get() == [1, 2, 3])
    gate.open()
    #expect(try await first.value == 200)
    stream.cancel()
    _ = await probe.end()
  }

  @Test("A rate lets requests wait, and a cancelled one leaves the queue") func rate() async throws {
    let server = try HTTPTestServer()
    let client = Client { $0.requestLimits = Limits(ratePerHost: .init(perSecond: 0.0001, burst: 2)) }
    for _ in 0..<2 { #expect(try await client.get(server.url("/get")).status == 200) }
    let watcher = Watcher()
    let third = try await start(client, server.url("/get"), watcher: watcher)
    #expect(await reasons(client) == [.rate])
    watcher.cancel()
    await #expect(throws: TransportFailure.self) { try await third.value }
    #expect(await reasons(client) == [])
    #expect(server.requestCount == 2)
  }

  @Test("A rate is respected over several connections") func pace() async throws {
    let server = try HTTPTestServer()
    let client = Client { $0.requestLimits = Limits(ratePerHost: .init(perSecond: 20)) }
    let start = ContinuousClock.now
    let url = server.url("/get")
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<6 { group.addTask { try await client.get(url).status } }
      for try await status in group { #expect(status == 200) }
    }
    #expect(ContinuousClock.now - start >= .milliseconds(249))
  }

  @Test("The priority of a waiting request can change") func priority() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let client = Client { $0.requestLimits = Limits(perHost: 1) }
    let first = try await start(client, server.url("/1"))
    await gate.waitForArrival()
    let watchers = (0..<3).map { _ in Watcher() }
    var tasks: [Task<Int, any Error>] = []
    for (index, watcher) in watchers.enumerated() {
      tasks.append(try await start(client, server.url("/anything/\(index)"), watcher: watcher))
    }
    watchers[2].setPriority(1)
    watchers[0].setPriority(0)
    let waiting = await client.transport.snapshot().hosts.flatMap(\.waiting)
    #expect(waiting.map(\.priority) == [1, 0.5, 0])
    #expect(waiting.map { $0.url.last } == ["2", "1", "0"])
    gate.open()
    for task in [first] + tasks { #expect(try await task.value == 200) }
    #expect(try await paths(server, 4) == ["/1", "/anything/2", "/anything/1", "/anything/0"])
  }

  @Test("A suspended request that waits holds no slot, and uses no token of the rate")
  func suspended() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let client = Client {
      $0.requestLimits = Limits(perHost: 1, ratePerHost: .init(perSecond: 0.0001, burst: 3))
    }
    let first = try await start(client, server.url("/1"))
    await gate.waitForArrival()
    let watcher = Watcher()
    let second = try await start(client, server.url("/get"), watcher: watcher)
    watcher.suspend()
    let third = try await start(client, server.url("/get"))
    #expect(await reasons(client) == [.suspended, .requestsOfHost])
    gate.open()
    #expect(try await [first.value, third.value] == [200, 200])
    #expect(await reasons(client) == [.suspended])
    watcher.resume()
    #expect(try await second.value == 200)
  }

  @Test("A request that waits for a decision about its server uses no token of the rate")
  func undecided() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client { $0.requestLimits = Limits(ratePerHost: .init(perSecond: 0.0001)) }
    let asking = ConnectionProfile(options: client.profile.options, evaluator: FixedEvaluator(.ask))
    let failure = try await client.failure(of: client.request(server.url("/get"), profile: asking))
    #expect(failure.kind == .trustUndecided)
    let watcher = Watcher()
    let request = try await start(client, server.url("/get"), watcher: watcher)
    let waitsForRate = await reasons(client).contains(.rate)
    #expect(!waitsForRate, "the request that was not sent has used the token of this one")
    if waitsForRate { watcher.cancel() }
    #expect(try await request.value == 200)
    let next = Watcher()
    let second = try await start(client, server.url("/get"), watcher: next)
    #expect(await reasons(client) == [.rate], "a request that was sent counts")
    next.cancel()
    await #expect(throws: TransportFailure.self) { try await second.value }
  }

  @Test("Hosts without requests are forgotten when their rate allows a burst again")
  func forgottenHosts() async throws {
    let client = Client { $0.requestLimits = Limits(ratePerHost: .init(perSecond: 100)) }
    for number in 0..<1500 {
      // Nothing listens there.
      let request = try client.request("http://127.9.\(number / 250).\(number % 250 + 1):1/")
      #expect(try await client.failure(of: request).kind == .cannotConnectToHost)
    }
    #expect(await client.transport.loop.hostQueueCount() < 1400)
  }

  @Test("A request that waits for a connection says so") func connections() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let client = Client(connectionsPerHost: 1)
    let first = try await start(client, server.url("/1"))
    await gate.waitForArrival()
    let second = try await start(client, server.url("/get"))
    #expect(await reasons(client) == [.connections])
    gate.open()
    #expect(try await [first.value, second.value] == [200, 200])
  }

  @Test("A snapshot shows which running requests are suspended or wait for bandwidth") func paused()
    async throws
  {
    let server = try HTTPTestServer()
    server.enqueue(.data(Content.bytes(400_000)), .data(Content.bytes(400_000)))
    let client = Client()
    func running() async -> [TransportSnapshot.RunningRequest] {
      await client.transport.snapshot().hosts.flatMap(\.running)
    }
    let held = Watcher(holdsHead: true)
    let suspended = try await start(client, server.url("/"), watcher: held)
    await held.headCame.wait()
    #expect(await running().map { [$0.isSuspended, $0.isThrottled] } == [[true, false]])
    held.cancel()
    await #expect(throws: TransportFailure.self) { try await suspended.value }
    let slow = Watcher()
    let throttled = try await start(
      client, server.url("/"), profile: Client.profile { $0.requestBandwidth.download = 1 }, watcher: slow)
    await slow.headCame.wait()
    // The bandwidth is used up when the first bytes have been delivered.
    while await running().allSatisfy({ !$0.isThrottled }) { try await client.roundTrip() }
    #expect(await running().map(\.isSuspended) == [false])
    slow.cancel()
    await #expect(throws: TransportFailure.self) { try await throttled.value }
  }

  @Test("A snapshot shows running requests and connections") func snapshot() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let gate = Gate()
    let client = Client()
    #expect(await client.transport.snapshot().hosts.isEmpty)
    #expect(try await client.get(server.url("/get")).status == 200)
    let idle = await client.transport.snapshot()
    #expect(idle.hosts.map(\.openConnections) == [1])
    #expect(idle.hosts.map(\.idleConnections) == [1])
    server.enqueue(.text("held").held(by: gate))
    let task = try await start(client, server.url("/held?x=1"))
    await gate.waitForArrival()
    let busy = await client.transport.snapshot()
    #expect(busy.hosts.map(\.origin) == ["https://localhost:\(server.port)"])
    #expect(busy.hosts.map(\.openConnections) == [1])
    #expect(busy.hosts.map(\.idleConnections) == [0])
    #expect(busy.runningCount == 1 && busy.waitingCount == 0)
    #expect(busy.description.contains("running GET https://localhost:\(server.port)/held?x=1 (0 bytes sent"))
    gate.open()
    #expect(try await task.value == 200)
  }
}

/// Numbers in the order in which they came.
private final class Order: Sendable {
  private let state = Mutex<[Int]>([])
  var values: [Int] { state.withLock { $0 } }
  func add(_ value: Int) { state.withLock { $0.append(value) } }
}

@Suite("Bandwidth", .timeLimit(.minutes(5))) struct BandwidthTests {
  private static let size = 400_000

  /// Returns the shortest time for bytes at a rate, less what is allowed at once.
  private static func shortest(_ bytes: Int, _ rate: Int) -> Duration {
    .milliseconds((bytes - BandwidthMeter.largestPiece * 2) * 1000 / rate - 50)
  }

  @Test("The bandwidth of a response is limited", arguments: [false, true])
  func download(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    let bytes = Content.bytes(Self.size)
    server.enqueue(.data(bytes))
    let client = Client { $0.requestBandwidth.download = 400_000 }
    let start = ContinuousClock.now
    #expect(try await client.get(server.url("/")).bytes == bytes)
    #expect(ContinuousClock.now - start >= Self.shortest(Self.size, 400_000))
  }

  @Test("The bandwidth of a request is limited") func upload() async throws {
    let server = try HTTPTestServer()
    let bytes = Content.bytes(Self.size)
    let client = Client { $0.requestBandwidth.upload = 400_000 }
    let start = ContinuousClock.now
    let request = try client.request(server.url("/post"), "POST", body: .bytes(Data(bytes)))
    #expect(try await client.send(request).status == 200)
    #expect(ContinuousClock.now - start >= Self.shortest(Self.size, 400_000))
    #expect(try await server.takeRequest().body == bytes)
  }

  @Test("Requests share the bandwidth of the session") func session() async throws {
    let server = try HTTPTestServer(routes: .none)
    let bytes = Content.bytes(100_000)
    for _ in 0..<4 { server.enqueue(.data(bytes)) }
    let client = Client { $0.sessionBandwidth.download = 400_000 }
    let start = ContinuousClock.now
    let url = server.url("/")
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<4 { group.addTask { try await client.get(url).bytes } }
      for try await received in group { #expect(received == bytes) }
    }
    // Each request may exceed the limit by one piece.
    #expect(ContinuousClock.now - start >= Self.shortest(400_000 - 4 * 16_384, 400_000))
  }

  @Test("A long response leaves bandwidth of the session to a later one") func fairness() async throws {
    let server = try HTTPTestServer(routes: .none)
    // Long enough for a slow machine: fifty seconds.
    server.enqueue(.bytes(20_000_000), .bytes(60_000))
    let client = Client { $0.sessionBandwidth.download = 400_000 }
    let isMoving = Moment()
    let long = Watcher(onBytes: { _, count in if count.received > 0 { isMoving.come() } })
    let request = try client.request(server.url("/"))
    let first = Task { try await client.failure(of: request, watcher: long).kind }
    await isMoving.wait()
    #expect(try await client.get(server.url("/")).bytes.count == 60_000)
    #expect(long.endedCount == 0)
    long.cancel()
    #expect(try await first.value == .cancelled)
  }

  @Test("A limited request can be cancelled, and others continue") func cancelled() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.data(Content.bytes(Self.size)))
    let client = Client()
    let profile = Client.profile { $0.requestBandwidth.download = 1 }
    let isWaiting = Moment()
    let watcher = Watcher(onBytes: { _, count in if count.received > 0 { isWaiting.come() } })
    let request = try client.request(server.url("/"), profile: profile)
    let task = Task { try await client.failure(of: request, watcher: watcher).kind }
    await isWaiting.wait()
    #expect(try await client.get(server.url("/get")).status == 200)
    watcher.cancel()
    #expect(try await task.value == .cancelled)
  }

  @Test("A limited sink receives everything, with the sink's own pauses") func sink() async throws {
    let server = try HTTPTestServer(routes: .none)
    let bytes = Content.bytes(200_000)
    server.enqueue(.data(bytes))
    let client = Client { $0.requestBandwidth.download = 1_000_000 }
    let sink = ScriptedSink()
    let request = try client.request(server.url("/"), sink: sink)
    #expect(try await client.send(request).status == 200)
    #expect(sink.bytes == bytes)
  }
}
