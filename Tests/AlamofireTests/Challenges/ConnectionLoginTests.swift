import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// NTLM as the caller sees it. The engine performs its steps on one connection.
@Suite("Connections that are authenticated", .timeLimit(.minutes(5)))
struct ConnectionLoginTests {
  private static func asks(_ token: String = "") -> Reply {
    Reply.status(401).with(header: "WWW-Authenticate", value: "NTLM" + (token.isEmpty ? "" : " \(token)"))
  }

  /// The second of the three messages (MS-NLMP 2.2.1.2): the challenge of the server.
  private static let challenge: String = {
    var bytes = Array("NTLMSSP\0".utf8) + [2, 0, 0, 0]
    bytes += [0, 0, 0, 0, 48, 0, 0, 0]
    bytes += [0x01, 0x82, 0x08, 0x00]
    bytes += [1, 2, 3, 4, 5, 6, 7, 8] + [UInt8](repeating: 0, count: 8)
    bytes += [0, 0, 0, 0, 48, 0, 0, 0]
    return Data(bytes).base64EncodedString()
  }()

  /// Returns the type of the NTLM message of a request.
  private static func step(_ request: RecordedRequest) -> UInt8? {
    guard let value = request.header("Authorization"), value.hasPrefix("NTLM "),
      let data = Data(base64Encoded: String(value.dropFirst(5))), data.count > 8
    else { return nil }
    return data[8]
  }

  private static let hasNTLM = Engine.connectionSchemes.contains(.ntlm)

  @Test("NTLM succeeds in three steps", .enabled(if: hasNTLM))
  func steps() async throws {
    let server = try HTTPTestServer()
    server.enqueue(Self.asks(), Self.asks(), Self.asks(Self.challenge), .text("in"), .text("open"))
    let session = Session()
    let heads = Recorder<Int>()
    let body = Data("a body".utf8)
    let response = await session.upload(body, to: server.url("/in"))
      .authenticate(username: "DOMAIN\\anna", password: "secret")
      .onHTTPResponse(on: .global()) { (response: HTTPURLResponse) in heads.add(response.statusCode) }.end()
    #expect(response.response?.statusCode == 200)
    #expect(response.value == Data("in".utf8))
    #expect(await heads.wait(for: 1) == [200])
    var requests: [RecordedRequest] = []
    while server.requestCount > requests.count { requests.append(try await server.takeRequest()) }
    let steps = requests.map(Self.step)
    #expect(steps.suffix(2) == [1, 3] || steps.suffix(1) == [3])
    #expect(requests.last?.body == Array(body))
    // Another request of the session must not use that connection.
    _ = await session.request(server.url("/open")).end()
    let other = try await server.takeRequest()
    #expect(other.header("Authorization") == nil)
    #expect(other.connection != requests.last?.connection)
  }

  @Test("Cookies of the rounds of a login are stored", .enabled(if: hasNTLM))
  func cookies() async throws {
    let server = try HTTPTestServer()
    func adding(_ cookie: String, to reply: Reply) -> Reply {
      reply.with(header: "Set-Cookie", value: "\(cookie)=1; Path=/")
    }
    server.enqueue(
      adding("first", to: Self.asks()), adding("second", to: Self.asks()),
      adding("third", to: Self.asks(Self.challenge)), adding("last", to: .text("in")), .text("open"))
    let session = Session(configuration: .ephemeral)
    let response = await session.request(server.url("/in"))
      .authenticate(username: "anna", password: "secret").end()
    #expect(response.value == Data("in".utf8))
    let sent = server.requestCount
    _ = await session.request(server.url("/open")).end()
    for _ in 0..<sent { _ = try await server.takeRequest() }
    let names = (try await server.takeRequest().header("Cookie") ?? "").split(separator: "; ").sorted()
    #expect(names == ["first=1", "last=1", "second=1", "third=1"])
  }

  @Test("A rejected credential is answered with the 401", .enabled(if: hasNTLM))
  func refusal() async throws {
    let server = try HTTPTestServer()
    // The first response challenges, the second contains the NTLM challenge, and the third rejects the answer.
    server.enqueue(Self.asks(), Self.asks(Self.challenge), Self.asks())
    let session = Session()
    let response = await session.request(server.url("/in"))
      .authenticate(username: "anna", password: "wrong").end()
    #expect(response.response?.statusCode == 401)
    #expect(response.error == nil)
    #expect(server.requestCount == 3)
  }

  @Test("A server that never stops challenging is given up", .enabled(if: hasNTLM))
  func endless() async throws {
    let server = try HTTPTestServer()
    for _ in 0..<100 { server.enqueue(Self.asks(Self.challenge)) }
    let session = Session()
    let response = await session.request(server.url("/in"))
      .authenticate(username: "anna", password: "wrong").end()
    #expect(response.response?.statusCode == 401)
    #expect(response.error == nil)
    #expect(server.requestCount < 12)
  }

  @Test("Negotiate without a ticket ends with the 401")
  func withoutATicket() async throws {
    let server = try HTTPTestServer()
    for _ in 0..<10 {
      server.enqueue(Reply.status(401).with(header: "WWW-Authenticate", value: "Negotiate"))
    }
    let session = Session()
    let response = await session.request(server.url("/in"))
      .authenticate(username: "anna", password: "secret").end()
    #expect(response.response?.statusCode == 401)
    #expect(response.error == nil)
    #expect(server.requestCount <= 3)
  }

  @Test("A default credential of the storage does not answer NTLM") func defaultCredential() async {
    let host = "\(UUID().uuidString.lowercased()).test"
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: host, port: 80, protocol: "http", realm: nil,
      authenticationMethod: NSURLAuthenticationMethodDefault)
    configuration.urlCredentialStorage?.setDefaultCredential(
      URLCredential(user: "u", password: "p", persistence: .forSession), for: space)
    let fake = FakeTransport { _, _ in .challenge("NTLM") }
    let response = await Session.retained(fake: fake, configuration: configuration)
      .request("http://\(host)/").end()
    #expect(response.response?.statusCode == 401)
    #expect(fake.requests.count == 1)
  }

  /// Returns the scheme of the last request after a challenge by a server behind a proxy; `nil` without a login.
  private static func scheme(
    _ url: String, _ challenge: String, support: String? = nil,
    _ change: (inout TransportOptions) -> Void = { $0.proxy = .http("proxy.test") }
  ) async -> String? {
    let fields = [("WWW-Authenticate", challenge)] + (support.map { [("Proxy-Support", $0)] } ?? [])
    let fake = FakeTransport(.status(401, headers: fields)) { _, _ in .text("in") }
    var options = TransportOptions()
    change(&options)
    _ = await Session.retained(fake: fake, options: options).request(url)
      .authenticate(username: "u", password: "p").end()
    let last = fake.requests.last
    return last?.login.map { "\($0.scheme)" }
      ?? last?.value("Authorization").map { String($0.prefix { $0 != " " }) }
  }

  /// Checks RFC 4559 §6, because such a proxy may send requests of other clients on the authenticated connection.
  @Test("A proxy that forwards requests has to support logins of connections", .enabled(if: hasNTLM))
  func forwardingProxy() async {
    let support = "Session-Based-Authentication"
    let url = "http://a.test/"
    #expect(await Self.scheme(url, "NTLM") == nil)
    #expect(await Self.scheme(url, "NTLM, Basic realm=\"x\"") == "Basic")
    #expect(await Self.scheme(url, "NTLM", support: "other") == nil)
    #expect(await Self.scheme(url, "NTLM", support: support) == "ntlm")
    #expect(await Self.scheme(url, "NTLM", support: "a, session-based-authentication") == "ntlm")
    // No proxy reads the requests in a tunnel.
    #expect(await Self.scheme("https://a.test/", "NTLM") == "ntlm")
    #expect(await Self.scheme(url, "NTLM") { $0.proxy = .socks5h("proxy.test") } == "ntlm")
    #expect(await Self.scheme(url, "NTLM") { $0.proxy = .http("proxy.test", bypass: ["a.test"]) } == "ntlm")
  }

  @Test("Negotiate falls back to NTLM", .enabled(if: hasNTLM))
  func fallback() async {
    let fake = FakeTransport { request, _ in
      request.login?.scheme == .ntlm ? .text("in") : .challenge("Negotiate, NTLM, Basic realm=\"x\"")
    }
    let response = await Session.retained(fake: fake).request("http://a.test/")
      .authenticate(username: "u", password: "p").end()
    #expect(response.response?.statusCode == 200)
    #expect(fake.requests.last?.login?.credential.user == "u")
    #expect(fake.requests.allSatisfy { $0.value("Authorization") == nil })
  }
}
