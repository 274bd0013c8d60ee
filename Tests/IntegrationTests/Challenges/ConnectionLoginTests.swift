import Alamofire
import Foundation
import Testing

/// NTLM with squid, as a server and as a proxy.
@Suite("NTLM with squid", .needsProxies, .timeLimit(.minutes(5)))
struct NTLMTests {
  private static let item = NginxConfiguration.item

  private func gateway() async throws -> (NTLMGateway, NginxServer) {
    let nginx = try await NginxServer.shared
    let port = try #require(URL(string: nginx.url(.http, "/item"))?.port)
    return (try await NTLMGateway(to: UInt16(port)), nginx)
  }

  private func get(_ session: Session, _ url: String, user: String? = nil) async -> DataResponse<
    String, AFError
  > {
    let request = session.request(url)
    if let user { request.authenticate(username: user, password: "secret") }
    return await request.serializingString().response
  }

  @Test("Each user has a separate authenticated connection") func connections() async throws {
    let (gateway, _) = try await gateway()
    let session = Session.isolated()
    let url = gateway.url("/item")
    for user in ["anna", nil, "bertha", "anna"] as [String?] {
      let response = await get(session, url, user: user)
      #expect(response.response?.statusCode == (user == nil ? 401 : 200))
      if user != nil { #expect(response.value == Self.item) }
    }
    let logged = await gateway.loggedRequests(authenticated: 3)
    let known = logged.filter { $0.status == 200 }
    let users = ["anna", "bertha", "anna"]
    #expect(known.count == 3, "\(logged)")
    #expect(zip(known, users).allSatisfy { $0.user?.contains($1) == true }, "\(logged)")
    #expect(Set(known.map(\.port)).count == 3)
    for request in known {
      // No other request used the connection after it was authenticated.
      #expect(logged.last { $0.port == request.port } == request)
    }
  }

  @Test("A body is sent once") func body() async throws {
    let (gateway, _) = try await gateway()
    let session = Session.isolated()
    let body = Data(repeating: 7, count: 300_000)
    let response = await session.upload(body, to: gateway.url("/echo"))
      .authenticate(username: "anna", password: "secret").serializingData(emptyResponseCodes: [200, 404, 405])
      .response
    #expect(response.response.map { $0.statusCode != 401 } == true)
    let logged = await gateway.loggedRequests(authenticated: 1)
    #expect(logged.filter { $0.user?.contains("anna") == true && $0.status != 401 }.count == 1, "\(logged)")
  }

  @Test("A proxy receives credentials after its challenge") func proxy() async throws {
    let (gateway, nginx) = try await gateway()
    var proxy = ProxyServer(
      .http, host: "127.0.0.1", port: Int(gateway.proxyPort), username: "anna", password: "secret")
    proxy.authentication = .negotiated
    let session = nginx.makeSession { $0.proxy = .server(proxy) }
    for entrance in NginxServer.Entrance.allCases {
      let response = await get(session, nginx.url(entrance, "/item"))
      #expect(response.value == Self.item, "\(entrance): \(String(describing: response.error))")
      #expect(response.response?.statusCode == 200)
    }
    let stranger = nginx.makeSession {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: Int(gateway.proxyPort)))
    }
    #expect(await get(stranger, nginx.url(.http, "/item")).response?.statusCode == 407)
  }
}

/// Negotiate with a Kerberos ticket, in a process that has one.
@Suite("Negotiate with Apache", .needsKerberos, .timeLimit(.minutes(5)))
struct NegotiateTests {
  private struct Response: Decodable {
    let hasTicket: Bool
    let status: Int?
    let body: String?
    let port: Int?
  }

  @Test("A request with a ticket is accepted") func ticket() async throws {
    let realm = try await KerberosRealm()
    let urls = [realm.url("/in"), realm.url("/open"), realm.url("/in")]
    let responses = try await SoakRun.run([Response].self, ["ticket"] + urls, environment: realm.environment)
    #expect(responses.map(\.hasTicket) == [true, false, true, false, true, false])
    #expect(responses.map(\.status) == [200, 401, 200, 200, 200, 401])
    #expect(responses[0].body == "in")
    #expect(responses[4].body == "in")
    // The requests with the ticket used separate connections.
    let (first, last) = (responses[0].port, responses[4].port)
    #expect(first != nil && first != last)
    #expect(responses.indices.filter { responses[$0].port == first } == [0])
    #expect(responses.indices.filter { responses[$0].port == last } == [4])
  }
}
