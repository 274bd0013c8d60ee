import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// The limits of the phases of a transfer. In each test the server stops in one phase for ever, so that the speed of
/// the machine does not matter.
@Suite("Phase limits", .timeLimit(.minutes(5))) struct PhaseLimitTests {
  private typealias Limits = TransportOptions.TimeLimits
  private static let short = Duration.milliseconds(150)
  /// A limit of the phases that the transfer must not enter.
  private static let none = Duration.nanoseconds(1)

  private func client(_ limits: Limits, _ change: (inout TransportOptions) -> Void = { _ in }) -> Client {
    Client {
      $0.timeLimits = limits
      change(&$0)
    }
  }

  private func expect(
    _ phase: Limits.Phase, _ failure: TransportFailure, host: String, since start: ContinuousClock.Instant,
    _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(failure.kind == .timedOut, "\(failure.message)", sourceLocation: location)
    #expect(failure.phase == phase, "\(failure.message)", sourceLocation: location)
    #expect(failure.message.contains("timeLimits.\(phase)"), "\(failure.message)", sourceLocation: location)
    #expect(failure.message.contains("0.15 seconds"), "\(failure.message)", sourceLocation: location)
    #expect(failure.helps(host: host), "\(failure.message)", sourceLocation: location)
    #expect(ContinuousClock.now - start >= Self.short, sourceLocation: location)
  }

  @Test("A name that is not looked up in time") func nameLookup() async throws {
    let gate = Gate()
    let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
    for _ in 0..<2 {
      var reply = Reply.status(200)
      reply.gate = gate
      doh.enqueue(reply)
    }
    let client = client(Limits(nameLookup: Self.short)) { $0.nameServiceURL = doh.url("/dns-query") }
    let start = ContinuousClock.now
    let failure = try await client.failure(of: "http://shop.example/")
    expect(.nameLookup, failure, host: "shop.example", since: start)
    gate.open()
  }

  @Test("A host that does not accept the connection in time") func connect() async throws {
    let silent = try UnresponsivePort()
    let client = client(
      Limits(connect: Self.short, tlsHandshake: Self.none, requestSend: Self.none, firstByte: Self.none))
    for scheme in ["http", "https"] {
      let start = ContinuousClock.now
      let failure = try await client.failure(of: "\(scheme)://127.0.0.1:\(silent.port)/")
      expect(.connect, failure, host: "127.0.0.1", since: start)
      #expect(failure.metrics?.values.connectEnd == -1)
    }
  }

  @Test("A proxy that does not answer CONNECT in time") func tunnel() async throws {
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(connections: .stall)
    let client = client(Limits(connect: Self.short, tlsHandshake: Self.none, firstByte: Self.none)) {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    }
    let start = ContinuousClock.now
    let failure = try await client.failure(of: "https://shop.example/")
    expect(.connect, failure, host: "shop.example", since: start)
    #expect(failure.message.contains("through the proxy http://127.0.0.1:\(proxy.port) "))
  }

  @Test("A TLS handshake that is not complete in time") func tlsHandshake() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: .stall)
    let client = client(Limits(tlsHandshake: Self.short, requestSend: Self.none, firstByte: Self.none))
    let start = ContinuousClock.now
    let failure = try await client.failure(of: server.url("/get"))
    expect(.tlsHandshake, failure, host: "localhost", since: start)
    #expect(failure.metrics?.values.secureEnd == -1)
  }

  @Test("A TLS handshake through a tunnel that is not complete in time") func tlsHandshakeThroughTunnel()
    async throws
  {
    let proxy = try StreamTestServer { connection in
      while try !connection.line().isEmpty {}
      try connection.write("HTTP/1.1 200 Connection established\r\n\r\n")
      connection.waitForEnd()
    }
    let limits = Limits(
      connect: .seconds(100), tlsHandshake: Self.short, requestSend: Self.none, firstByte: Self.none)
    let client = client(limits) {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    }
    let start = ContinuousClock.now
    let failure = try await client.failure(of: "https://shop.example/")
    expect(.tlsHandshake, failure, host: "shop.example", since: start)
    #expect(failure.metrics?.values.secureEnd == -1)
  }

  @Test("A request that is not sent in time", arguments: [false, true]) func requestSend(isTLS: Bool)
    async throws
  {
    let gate = Gate()
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    server.enqueue(.ok.requestBody(.held(gate)))
    let client = client(Limits(requestSend: Self.short, firstByte: Self.none))
    let body = RequestBody.bytes(Data(count: 30_000_000))
    let start = ContinuousClock.now
    let failure = try await client.failure(of: client.request(server.url("/"), "POST", body: body))
    expect(.requestSend, failure, host: isTLS ? "localhost" : "127.0.0.1", since: start)
    #expect(failure.metrics?.values.requestEnd == -1)
    gate.open()
  }

  /// Sends one byte more than the window of the stream.
  @Test("An HTTP/2 stream without window does not send its request in time") func windowOfHTTP2() async throws
  {
    var offersHTTP2 = TLSOptions()
    offersHTTP2.applicationProtocols = ["h2"]
    let server = try StreamTestServer(.tls(.localhost, offersHTTP2)) { connection in
      let http2 = try HTTP2TestConnection(connection, grantsWindow: false)
      _ = try? http2.request()
      connection.waitForEnd()
    }
    let client = client(Limits(requestSend: Self.short, firstByte: Self.short))
    // One byte more than the window of a new connection.
    let body = RequestBody.bytes(Data(count: 65_536))
    let start = ContinuousClock.now
    let request = try client.request("https://localhost:\(server.port)/", "POST", body: body)
    let failure = try await client.failure(of: request)
    expect(failure.phase == .firstByte ? .firstByte : .requestSend, failure, host: "localhost", since: start)
  }

  @Test("A response that does not begin in time", arguments: [false, true], [0, 5000, 200_000])
  func firstByte(isTLS: Bool, bodySize: Int) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    server.enqueue(.stall)
    let client = client(Limits(firstByte: Self.short))
    let body = bodySize > 0 ? RequestBody.bytes(Data(count: bodySize)) : .none
    let start = ContinuousClock.now
    let failure = try await client.failure(
      of: client.request(server.url("/"), bodySize > 0 ? "POST" : "GET", body: body))
    expect(.firstByte, failure, host: isTLS ? "localhost" : "127.0.0.1", since: start)
    let values = try #require(failure.metrics?.values)
    #expect(values.requestStart >= 0 && values.requestEnd >= values.requestStart)
    #expect(values.responseStart == -1)
  }

  @Test("A response of HTTP/2 that does not begin in time", arguments: [0, 60_000])
  func firstByteOfHTTP2(bodySize: Int) async throws {
    let server = try HTTP2Server.start { http2, connection in
      _ = try http2.request()
      connection.waitForEnd()
    }
    let client = client(Limits(firstByte: Self.short))
    let body = bodySize > 0 ? RequestBody.bytes(Data(count: bodySize)) : .none
    let request = try client.request(
      "https://localhost:\(server.port)/", bodySize > 0 ? "POST" : "GET", body: body)
    let start = ContinuousClock.now
    let failure = try await client.failure(of: request)
    expect(.firstByte, failure, host: "localhost", since: start)
    #expect(failure.metrics?.version == .http2, "the connection spoke HTTP/2 before any response")
  }

  /// Uses a server that reads until it has both heads, so that content waits to be sent when the limit is exceeded.
  @Test("A response of HTTP/2 that does not begin in time beside an upload") func firstByteBesideUpload()
    async throws
  {
    let (hasUpload, mayRead, mayEnd) = (Moment(), Gate(), Gate())
    var offersHTTP2 = TLSOptions()
    offersHTTP2.applicationProtocols = ["h2"]
    let server = try StreamTestServer(.tls(.localhost, offersHTTP2)) { connection in
      let http2 = try HTTP2TestConnection(connection, settings: [(4, 0x7FFF_FFFF)], grantsWindow: false)
      try http2.write(.windowUpdate, payload: [0x7F, 0xFF, 0, 0])
      _ = try http2.next()
      hasUpload.come()
      try connection.pass(mayRead)
      while try http2.next().stream != 3 {}
      try connection.pass(mayEnd)
    }
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    let upload = Watcher()
    let body = RequestBody.bytes(Data(count: 30_000_000))
    async let uploadFailure = client.failure(of: client.request(url, "POST", body: body), watcher: upload)
    await hasUpload.wait()
    let profile = Client.profile { $0.timeLimits = Limits(firstByte: Self.short) }
    let watcher = Watcher()
    let start = ContinuousClock.now
    async let failure = client.failure(of: client.request(url, profile: profile), watcher: watcher)
    await watcher.began.wait()
    // The loop performs its commands in order, so it has begun the request before it answers.
    _ = await client.transport.snapshot()
    mayRead.open()
    let end = try await failure
    expect(.firstByte, end, host: "localhost", since: start)
    #expect(end.metrics.map { $0.values.requestEnd >= 0 } == true, "it was sent before the upload")
    upload.cancel()
    #expect(try await uploadFailure.kind == .cancelled)
    mayEnd.open()
  }

  @Test("A proxy that does not begin to respond in time") func firstByteThroughProxy() async throws {
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(.stall)
    let client = client(Limits(firstByte: Self.short)) {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    }
    let start = ContinuousClock.now
    let failure = try await client.failure(of: "http://shop.example/")
    expect(.firstByte, failure, host: "shop.example", since: start)
  }

  @Test(
    "A limit of zero ends the request, however fast its phase is",
    arguments: [
      Limits(connect: .zero), Limits(tlsHandshake: .seconds(-1)), Limits(tlsHandshake: .nanoseconds(1)),
      Limits(requestSend: .zero), Limits(firstByte: .zero),
    ])
  func zero(limits: TransportOptions.TimeLimits) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let failure = try await client(limits).failure(of: server.url("/get"))
    #expect(failure.kind == .timedOut)
    #expect(failure.phase.flatMap { limits[$0] } != nil)
    // The error says that the request was not sent.
    #expect(server.requestCount == 0)
  }

  @Test("Phases that a reused connection does not have are not limited") func reusedConnection() async throws
  {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client()
    #expect(try await client.get(server.url("/get")).status == 200)
    let profile = Client.profile {
      $0.timeLimits = Limits(nameLookup: Self.none, connect: Self.none, tlsHandshake: Self.none)
    }
    let response = try await client.send(client.request(server.url("/get"), profile: profile))
    #expect(response.status == 200)
    #expect(response.metrics.values.isReusedConnection)
  }

  @Test("The limit of the first byte does not limit the body", arguments: [false, true])
  func slowBody(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    let gate = Gate()
    server.enqueue(Reply(body: .parts([.bytes([1]), .gate(gate), .bytes([2])])))
    let client = Client()
    let profile = Client.profile { $0.timeLimits = Limits(requestSend: .seconds(3), firstByte: .seconds(3)) }
    let watcher = Watcher()
    async let response = client.send(client.request(server.url("/"), profile: profile), watcher: watcher)
    await watcher.headCame.wait()
    try await client.passTime(.milliseconds(3200))
    gate.open()
    #expect(try await response.bytes == [1, 2])
  }

  @Test("The time of a suspension does not count") func suspension() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.stall)
    let client = Client()
    let profile = Client.profile { $0.timeLimits = Limits(firstByte: Self.short) }
    let watcher = Watcher(startsClosed: true)
    let start = ContinuousClock.now
    async let failure = client.failure(
      of: client.request(server.url("/"), profile: profile), watcher: watcher)
    await watcher.began.wait()
    try await client.passTime(Self.short * 2)
    #expect(watcher.endedCount == 0)
    watcher.resume()
    expect(.firstByte, try await failure, host: "127.0.0.1", since: start + Self.short * 2)
  }

  @Test("A source without bytes does not count as a slow server") func slowSource() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("done"))
    let source = ScriptedSource(.wait, .bytes([1, 2, 3]))
    let client = Client()
    let profile = Client.profile { $0.timeLimits = Limits(requestSend: Self.short) }
    let watcher = Watcher()
    async let response = client.send(
      client.request(server.url("/"), "POST", body: .source(source), profile: profile), watcher: watcher)
    await source.hasWaited.wait()
    try await client.passTime(Self.short * 3)
    #expect(watcher.endedCount == 0)
    source.wake()
    #expect(try await response.text == "done")
  }

  @Test("A request that waits for the connection of another one is not limited by phases of that one")
  func sharedConnection() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: .stall, .stall)
    let client = Client()
    let url = server.url("/get")
    let watcher = Watcher()
    let first = Task { try await client.failure(of: client.request(url, idleTimeout: nil), watcher: watcher) }
    await watcher.began.wait()
    let limits = Limits(
      nameLookup: Self.none, connect: Self.none, tlsHandshake: Self.none, firstByte: Self.none)
    let profile = Client.profile { $0.timeLimits = limits }
    let failure = try await client.failure(
      of: client.request(url, deadline: Self.short, profile: profile))
    #expect(failure.phase == .total, "\(failure.message)")
    watcher.cancel()
    #expect(try await first.value.kind == .cancelled)
  }

  @Test("Idle timeout, deadline and connectTimeout name their phases") func otherLimits() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.stall, .stall)
    let client = Client()
    #expect(try await client.failure(of: server.url("/"), idleTimeout: Self.short).phase == .idle)
    let request = try client.request(server.url("/"), deadline: Self.short)
    #expect(try await client.failure(of: request).phase == .total)
    let silent = try UnresponsivePort()
    let profile = Client.profile { $0.connectTimeout = Self.short }
    let connecting = try client.request("http://127.0.0.1:\(silent.port)/", profile: profile)
    #expect(try await client.failure(of: connecting).phase == .connect)
    let secure = try HTTPTestServer(.tls(.localhost))
    secure.enqueue(connections: .stall)
    let securing = try client.request(secure.url("/get"), profile: profile)
    #expect(try await client.failure(of: securing).phase == .tlsHandshake)
  }

  @Test("Time in the queue is in the metrics before all phases") func queueInMetrics() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate), .text("second"))
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/")
    async let first = client.get(url).text
    await gate.waitForArrival()
    let watcher = Watcher()
    async let second = client.get(url, watcher: watcher)
    await watcher.began.wait()
    try await client.passTime(Self.short)
    gate.open()
    #expect(try await first == "first")
    let values = try await second.metrics.values
    #expect(values.queueEnd > 100_000)
    #expect(values.requestStart >= values.queueEnd)
    #expect(values.responseStart >= values.requestStart)
    #expect(values.end >= values.responseStart)
  }
}
