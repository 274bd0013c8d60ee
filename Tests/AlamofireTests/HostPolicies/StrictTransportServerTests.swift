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
        HTTPHeader(name: "Alt-Svc", value: #"h2=":9""#),
      ]
      return reply
    }
    server = try HTTPTestServer(.tls(identity), routes: routes)
  }

  private func session(
    evaluators: [String: any ServerTrustEvaluating]? = nil,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.strictTransportSecurity = hosts
    options.hostOverrides = [.init(host: "shop.example", target: "127.0.0.1", targetPort: server.port)]
    change(&options)
    let manager = evaluators.map { ServerTrustManager(allHostsMustBeEvaluated: false, evaluators: $0) }
    return Session(configuration: .isolated, serverTrustManager: manager, transportOptions: options)
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
