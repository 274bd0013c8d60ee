import Alamofire
import Foundation
import HTTPTestServer
import HTTPWire
import Testing

/// Alternative services with servers.
@Suite("Alternative services with a server", .timeLimit(.minutes(5)))
struct AlternativeServerTests {
  @Test("A service that refuses all requests does not fail them", arguments: [HTTPMethod.get, .post])
  func refusals(method: HTTPMethod) async throws {
    var offersHTTP2 = TLSOptions()
    offersHTTP2.applicationProtocols = ["h2"]
    let service = try StreamTestServer(.tls(.localhost, offersHTTP2)) { connection in
      let http2 = try HTTP2TestConnection(connection)
      _ = try http2.request()
      try http2.goAway(last: 0)
      _ = try connection.readToEnd()
    }
    let field = HTTPHeader(name: "Alt-Svc", value: #"h2=":\#(service.port)"; ma=60"#)
    let routes = Routes.none.adding("/**") { _, _ in
      var reply = Reply.text("origin")
      reply.headers.append(field)
      return reply
    }
    let origin = try HTTPTestServer(.tls(.localhost), routes: routes)
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    options.alternativeServices = AlternativeServices()
    let session = Session(configuration: .isolated, transportOptions: options)
    for _ in 0..<3 {
      let response = await session.request(
        "https://localhost:\(origin.port)/", method: method, parameters: ["a": "b"]
      ).serializingString().response
      #expect(response.value == "origin", "\(String(describing: response.error))")
    }
    #expect(origin.requestCount == 3)
    #expect(service.connectionCount == 1, "a service that has failed is tried again")
  }
}
