import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// HSTS with a server over TLS, and names that resolve to it.
@Suite("HSTS with a server", .timeLimit(.minutes(5)))
struct StrictTransportServerTests {
  private let hosts = StrictTransportSecurity()
  private let server: HTTPTestServer

  init() throws {
    let identity = try TestIdentity(
      .init(commonName: "shop", dnsNames: ["shop.example", "localhost"], issuer: .localhostAuthority))
    let routes = Routes.none.adding("/**") { _, _ in
      var reply = Reply.text("here")
      reply.headers += [
        HTTPHeader(name: "Strict-Transport-Security", value: "max-age=1000"),
        HTTPHeader(name: "Alt-Svc", value: #"h2="alt.example:443""#),
      ]
      return reply
    }
    server = try HTTPTestServer(.tls(identity), routes: routes)
  }

  private func session(
    evaluators: [String: any ServerTrustEvaluating]? = nil, delegate: SessionDelegate = SessionDelegate(),
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.strictTransportSecurity = hosts
    options.hostOverrides = [.init(host: "shop.example", target: "127.0.0.1", targetPort: server.port)]
    change(&options)
    let manager = evaluators.map { ServerTrustManager(allHostsMustBeEvaluated: false, evaluators: $0) }
    return Session(
      configuration: .isolated, delegate: delegate, serverTrustManager: manager, transportOptions: options)
  }

  @Test("The policy of a response applies to the next request") func nextRequest() async throws {
    let session = session()
    #expect(await session.request("https://shop.example/1").serializingString().response.value == "here")
    let response = await session.request("http://shop.example/2").serializingString().response
    #expect(response.value == "here")
    #expect(response.response?.url?.absoluteString == "https://shop.example/2")
    #expect(server.recordedRequests.map(\.path) == ["/1", "/2"])
  }

  @Test("The policy of a server that was not verified is ignored") func unverifiedServer() async throws {
    let lax = session(evaluators: ["shop.example": .disabled]) { $0.trustStore = .system }
    #expect(await lax.request("https://shop.example/").serializingString().response.value == "here")
    #expect(hosts.hosts.isEmpty)
    let composite = session(evaluators: ["shop.example": CompositeTrustEvaluator(evaluators: [.disabled])]) {
      $0.trustStore = .system
    }
    #expect(await composite.request("https://shop.example/").serializingString().response.value == "here")
    #expect(hosts.hosts.isEmpty)
    let strict = session(evaluators: ["shop.example": DefaultTrustEvaluator()])
    #expect(await strict.request("https://shop.example/").serializingString().response.value == "here")
    #expect(hosts.hosts == ["shop.example"])
  }

  @Test(
    "The policy of a server whose name was not verified is ignored",
    arguments: [
      DefaultTrustEvaluator(validateHost: false),
      RevocationTrustEvaluator(validateHost: false, options: .networkAccessDisabled),
      CompositeTrustEvaluator(evaluators: [DefaultTrustEvaluator(validateHost: false)]),
    ] as [any ServerTrustEvaluating])
  func unverifiedName(evaluator: any ServerTrustEvaluating) async throws {
    let lax = session(evaluators: ["shop.example": evaluator])
    #expect(await lax.request("https://shop.example/").serializingString().response.value == "here")
    #expect(hosts.hosts.isEmpty)
    let both = CompositeTrustEvaluator(evaluators: [evaluator, DefaultTrustEvaluator()])
    let strict = session(evaluators: ["shop.example": both])
    #expect(await strict.request("https://shop.example/").serializingString().response.value == "here")
    #expect(hosts.hosts == ["shop.example"])
  }

  /// A delegate that accepts every server.
  private final class Acceptor: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<String>()

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      calls.add(challenge.protectionSpace.host)
      completionHandler(
        .useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
    }
  }

  @Test("The policies of a server that a delegate accepted are ignored", arguments: [false, true])
  func acceptedByDelegate(hasManager: Bool) async throws {
    let services = AlternativeServices()
    let origin = try #require(Origin(url: "https://shop.example/"))
    let acceptor = Acceptor()
    let lax = session(
      evaluators: hasManager ? ["shop.example": DefaultTrustEvaluator()] : nil, delegate: acceptor
    ) {
      $0.trustStore = .system
      $0.alternativeServices = services
    }
    // The second request uses the decision again.
    for _ in 0..<2 {
      let response = await lax.request("https://shop.example/").serializingString().response
      #expect(response.value == "here", "\(String(describing: response.error))")
    }
    #expect(acceptor.calls.values == ["shop.example"])
    #expect(hosts.hosts.isEmpty && services.choice(for: origin) == nil)
    let strict = session { $0.alternativeServices = services }
    #expect(await strict.request("https://shop.example/").serializingString().response.value == "here")
    #expect(hosts.hosts == ["shop.example"] && services.choice(for: origin) != nil)
  }

  @Test("A request does not fall back to HTTP if TLS fails") func noFallback() async throws {
    hosts.preload("shop.example")
    let session = session { $0.trustStore = .system }
    let response = await session.request("http://shop.example/").serializingData().response
    #expect((response.error?.underlyingError as? URLError)?.code == .serverCertificateHasUnknownRoot)
    #expect(server.requestCount == 0)
  }

  @Test("The policy of an IP address is ignored") func addresses() async throws {
    let identity = try TestIdentity(
      .init(commonName: "x", ipAddresses: ["127.0.0.1"], issuer: .localhostAuthority))
    let server = try HTTPTestServer(.tls(identity), routes: .none)
    var reply = Reply.text("x")
    reply.headers.append(HTTPHeader(name: "Strict-Transport-Security", value: "max-age=1000"))
    server.enqueue(reply)
    let session = session()
    let response = await session.request("https://127.0.0.1:\(server.port)/").serializingString().response
    #expect(response.value == "x", "\(String(describing: response.error))")
    #expect(hosts.hosts.isEmpty)
  }
}
