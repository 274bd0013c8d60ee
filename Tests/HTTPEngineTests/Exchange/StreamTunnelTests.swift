import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// The ways of streams through proxies.
@Suite("Streams through proxies", .timeLimit(.minutes(5))) struct StreamTunnelTests {
  /// Starts a proxy of HTTP that answers a `CONNECT` in pieces, and connects it to `port` if that was accepted.
  private static func httpProxy(
    _ security: HTTPTestServer.Security = .none, to port: Int, answer: [String], seen: Lines = Lines()
  ) throws -> StreamTestServer {
    try StreamTestServer(security) { connection in
      while true {
        let line = try connection.line()
        if line.isEmpty { break }
        seen.add(line)
      }
      let isAccepted = answer.joined().contains(" 200 ")
      guard isAccepted else {
        for piece in answer { try connection.write(piece) }
        return
      }
      try connection.relay(toPort: port) { for piece in answer { try connection.write(piece) } }
    }
  }

  final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  private static func failure(_ proxy: ProxyServer, host: String = "target.example", port: Int = 7)
    async throws -> TransportFailure
  {
    let (stream, probe) = Client { $0.proxy = .server(proxy) }.stream(host, port: port)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else {
      throw TransportFailure(.unknown, "the stream was opened")
    }
    return failure
  }

  @Test("A tunnel opens whatever the segments of the answer", arguments: [false, true])
  func connect(isSecure: Bool) async throws {
    let server = try StreamTestServer()
    let answers = [
      ["HTTP/1.1 200 OK\r\n\r\n"], ["HTTP/1.0 200 Connection established\r\nVia: a\r\n\r\n"],
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".map { String($0) },
      ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"],
    ]
    for answer in answers {
      let seen = Lines()
      let proxy = try Self.httpProxy(
        isSecure ? .tls(.localhost) : .none, to: server.port, answer: answer, seen: seen)
      var settings = ProxyServer(
        isSecure ? .https : .http, host: "localhost", port: proxy.port, username: "ann", password: "p")
      settings.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
      let (stream, probe) = Client { $0.proxy = .server(settings) }.stream("target.example", port: 7)
      #expect(try await stream.echo([1, 2]).get() == [1, 2], "\(answer)")
      stream.cancel()
      _ = await probe.end()
      #expect(
        seen.all == [
          "CONNECT target.example:7 HTTP/1.1", "Host: target.example:7",
          "Proxy-Authorization: Basic YW5uOnA=",
        ], "\(answer)")
    }
  }

  @Test(
    "A SOCKS proxy gets an address as such, and no zone",
    arguments: [
      (ProxyServer.Kind.socks5h, "127.0.0.1", [1, 127, 0, 0, 1, 0, 7]),
      (.socks5h, "0177.1", [1, 127, 0, 0, 1, 0, 7]),
      (.socks5h, "fe80::1%25lo", [4, 0xFE, 0x80] + Array(repeating: 0, count: 13) + [1, 0, 7]),
      (.socks4a, "127.0.0.1", [0, 7, 127, 0, 0, 1, 0]),
      (.socks4a, "fe80::1%25lo", [0, 7, 0, 0, 0, 1, 0] + Array("fe80::1".utf8) + [0]),
    ] as [(ProxyServer.Kind, String, [UInt8])])
  func addresses(kind: ProxyServer.Kind, host: String, target: [UInt8]) async throws {
    let seen = Received()
    let isFive = kind == .socks5h
    let proxy = try StreamTestServer { connection in
      if isFive {
        _ = try connection.readExactly(3)
        try connection.write([5, 0])
      }
      _ = try connection.readExactly(isFive ? 3 : 2)
      seen.add(try connection.readExactly(target.count))
    }
    _ = try await Self.failure(ProxyServer(kind, host: "127.0.0.1", port: proxy.port), host: host)
    #expect(seen.values == [target])
  }

  @Test("Bytes right after the answer are the first ones of the stream") func earlyBytes() async throws {
    let server = try StreamTestServer()
    let proxy = try Self.httpProxy(to: server.port, answer: ["HTTP/1.1 200 OK\r\n\r\n220 ready\r\n"])
    let settings = ProxyServer(.http, host: "127.0.0.1", port: proxy.port)
    let (stream, probe) = Client { $0.proxy = .server(settings) }.stream("target.example", port: 7)
    let read = await withCheckedContinuation { continuation in
      stream.read(least: 11, most: 100, timeout: nil) { continuation.resume(returning: $0) }
    }
    #expect(try read.get().data == Data("220 ready\r\n".utf8))
    #expect(try await stream.echo([5]).get() == [5])
    stream.cancel()
    _ = await probe.end()
  }

  @Test("Bytes between the answer and the handshake are refused") func bytesBeforeTLS() async throws {
    let server = try StreamTestServer(.tls(.localhost))
    let proxy = try Self.httpProxy(to: server.port, answer: ["HTTP/1.1 200 OK\r\n\r\n\u{16}\u{3}\u{3}"])
    let settings = ProxyServer(.http, host: "127.0.0.1", port: proxy.port)
    let (stream, probe) = Client { $0.proxy = .server(settings) }.stream("localhost", port: 7, isSecure: true)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it was opened") }
    #expect(failure.kind == .secureConnectionFailed)
    #expect(failure.message.contains("in the clear"), "\(failure.message)")
  }

  static let refusals: [(String, TransportFailure.FailureKind, String)] = [
    ("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", .cannotConnectToHost, "status 403"),
    ("HTTP/1.1 302 Elsewhere\r\nLocation: http://a/\r\n\r\n", .cannotConnectToHost, "status 302"),
    ("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n", .proxyAuthenticationRequired, "requires"),
    ("HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n", .proxyAuthenticationRequired, "requires"),
    ("", .cannotConnectToProxy, "closed the connection"),
    ("HTTP/1.1 2", .cannotConnectToProxy, "closed the connection"),
    ("SSH-2.0-OpenSSH\r\n", .cannotConnectToProxy, "does not speak http"),
    ("HTTP/1.1 101 Switching Protocols\r\n\r\n", .cannotConnectToProxy, "does not speak http"),
    (
      "HTTP/1.1 407 Who\r\nA: \(String(repeating: "a", count: 70_000))\r\n\r\n", .cannotConnectToProxy,
      "speak"
    ),
  ]

  @Test("A proxy that refuses is a clear failure", arguments: refusals)
  func refused(answer: String, kind: TransportFailure.FailureKind, words: String) async throws {
    let proxy = try Self.httpProxy(to: 1, answer: [answer])
    let failure = try await Self.failure(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    #expect(failure.kind == kind, "\(failure.message)")
    #expect(failure.message.contains(words), "\(failure.message)")
    #expect(failure.message.contains("127.0.0.1:\(proxy.port)"), "\(failure.message)")
  }

  @Test("A proxy that is not there, or has no name, is a clear failure") func missing() async throws {
    let refused = ProxyServer(.http, host: "127.0.0.1", port: try HTTPTestServer.refusedPort())
    #expect(try await Self.failure(refused).kind == .cannotConnectToProxy)
    let unknown = ProxyServer(.socks5, host: "no-such-proxy.invalid", port: 1)
    #expect(try await Self.failure(unknown, host: "127.0.0.1").kind == .cannotFindProxy)
    let plain = try StreamTestServer { try $0.write("HTTP/1.1 400 Bad Request\r\n\r\n") }
    let secure = ProxyServer(.https, host: "localhost", port: plain.port)
    let failure = try await Self.failure(secure)
    #expect(failure.kind == .cannotConnectToProxy)
    #expect(failure.message.contains("TLS handshake with the proxy"), "\(failure.message)")
  }

  @Test("The certificate of a proxy is verified with its own name and trust store") func trust() async throws
  {
    let server = try StreamTestServer()
    let proxy = try Self.httpProxy(.tls(.localhost), to: server.port, answer: ["HTTP/1.1 200 OK\r\n\r\n"])
    // The trust store for servers does not apply to the proxy.
    let failure = try await Self.failure(ProxyServer(.https, host: "localhost", port: proxy.port))
    #expect(failure.kind == .certificateHasUnknownRoot, "\(failure.message)")
    #expect(failure.message.contains("the proxy localhost"), "\(failure.message)")
    #expect(server.connectionCount == 0)
  }

  @Test(
    "SOCKS reaches the server",
    arguments: [ProxyServer.Kind.socks4, .socks4a, .socks5, .socks5h], [false, true])
  func socks(kind: ProxyServer.Kind, hasUser: Bool) async throws {
    let server = try StreamTestServer()
    let seen = Lines()
    let proxy = try StreamTestServer { connection in
      let request = try Self.socksRequest(connection, isFour: kind == .socks4 || kind == .socks4a)
      seen.add(request)
      let isFour = kind == .socks4 || kind == .socks4a
      let reply: [UInt8] = isFour ? [0, 90, 0, 0, 0, 0, 0, 0] : [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]
      try connection.relay(toPort: server.port) { for byte in reply { try connection.write([byte]) } }
    }
    let settings = ProxyServer(
      kind, host: "127.0.0.1", port: proxy.port, username: hasUser ? "ann" : nil,
      password: hasUser ? "p" : nil)
    let client = Client { $0.proxy = .server(settings) }
    let address = try #require(IPAddress(.v4, bytes: [192, 0, 2, 9]))
    let (stream, probe) = client.stream("target.example", port: 258, addresses: [address])
    #expect(try await stream.echo([3]).get() == [3])
    stream.cancel()
    _ = await probe.end()
    let takesNames = kind == .socks4a || kind == .socks5h
    let user = hasUser ? (kind == .socks4 || kind == .socks4a ? "ann " : "ann:p ") : ""
    #expect(seen.all == ["\(user)\(takesNames ? "target.example" : "192.0.2.9"):258"])
  }

  /// Reads the messages of a client, and returns its user and its target.
  private static func socksRequest(_ connection: StreamTestConnection, isFour: Bool) throws -> String {
    func take(_ count: Int) throws -> [UInt8] {
      var bytes: [UInt8] = []
      while bytes.count < count {
        let more = try connection.read(atMost: count - bytes.count)
        guard !more.isEmpty else { throw TransportFailure(.unknown, "the client has closed the connection") }
        bytes += more
      }
      return bytes
    }
    func text() throws -> String {
      var bytes: [UInt8] = []
      while true {
        let byte = try take(1)[0]
        if byte == 0 { return String(decoding: bytes, as: UTF8.self) }
        bytes.append(byte)
      }
    }
    guard !isFour else {
      let head = try take(8)
      let user = try text()
      let address = Array(head[4...])
      let name =
        address.starts(with: [0, 0, 0]) ? try text() : address.map { String($0) }.joined(separator: ".")
      return (user.isEmpty ? "" : "\(user) ") + "\(name):\(Int(head[2]) << 8 | Int(head[3]))"
    }
    let methods = try take(Int(try take(2)[1]))
    var user = ""
    if methods.contains(2) {
      try connection.write([5, 2])
      let name = try take(Int(try take(2)[1]))
      let password = try take(Int(try take(1)[0]))
      user = "\(String(decoding: name, as: UTF8.self)):\(String(decoding: password, as: UTF8.self)) "
      try connection.write([1, 0])
    } else {
      try connection.write([5, 0])
    }
    let kind = try take(4)[3]
    let host =
      kind == 3
      ? String(decoding: try take(Int(try take(1)[0])), as: UTF8.self)
      : try take(4).map { String($0) }.joined(separator: ".")
    let port = try take(2)
    return "\(user)\(host):\(Int(port[0]) << 8 | Int(port[1]))"
  }

  static let socksRefusals: [([UInt8], TransportFailure.FailureKind, String)] = [
    ([5, 255], .proxyAuthenticationRequired, "requires"), ([5, 2], .proxyAuthenticationRequired, "requires"),
    ([4, 0], .cannotConnectToProxy, "does not speak socks5h"),
    (Array("HTTP/1.1 400".utf8), .cannotConnectToProxy, "does not speak socks5h"),
    ([5, 0, 5, 5], .cannotConnectToHost, "connection refused"), ([5], .cannotConnectToProxy, "closed"),
    ([5, 0, 5, 0, 0, 9], .cannotConnectToProxy, "does not speak socks5h"),
  ]

  @Test("A SOCKS proxy that refuses is a clear failure", arguments: socksRefusals)
  func socksRefused(answer: [UInt8], kind: TransportFailure.FailureKind, words: String) async throws {
    let proxy = try StreamTestServer { connection in
      _ = try connection.read()
      try connection.write(answer)
      // A connection that is closed with unread bytes is reset, and its answer may be lost.
      if answer.count > 2 { _ = try connection.read() }
    }
    let failure = try await Self.failure(ProxyServer(.socks5h, host: "127.0.0.1", port: proxy.port))
    #expect(failure.kind == kind, "\(failure.message)")
    #expect(failure.message.contains(words), "\(failure.message)")
  }

  @Test("A private target is refused, also where a public proxy would connect to it") func privateTarget()
    async throws
  {
    let (stream, probe) = Client {
      $0.proxy = .server(ProxyServer(.socks5, host: "192.0.2.1", port: 1))
      $0.refusesPrivateAddresses = true
    }.stream("127.0.0.1", port: 7)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it was opened") }
    #expect(failure.kind == .addressRefused)
  }

  @Test("A silent proxy ends with the connect timeout") func silentProxy() async throws {
    let proxy = try StreamTestServer { _ = try $0.readToEnd() }
    let (stream, probe) = Client {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
      $0.connectTimeout = .milliseconds(100)
    }.stream("target.example", port: 7)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it was opened") }
    #expect(failure.kind == .timedOut)
    #expect(
      failure.message.contains("through the proxy http://127.0.0.1:\(proxy.port)"), "\(failure.message)")
  }
}
