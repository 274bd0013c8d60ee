import Alamofire
import Testing

@Suite("Client certificates", .needsNginx, .timeLimit(.minutes(5)))
struct ClientCertificateTests {
  @Test("The server receives the client certificate", arguments: [NginxServer.Entrance.https1, .h2])
  func mutualTLS(entrance: NginxServer.Entrance) async throws {
    var configuration = NginxConfiguration()
    configuration.asksForClients = true
    let server = try await NginxServer(configuration)
    let data = try Data(contentsOf: URL(fileURLWithPath: server.client))
    let ada = try ClientIdentity(pkcs12: data, passphrase: "tea")
    #expect(throws: ClientIdentity.Failure.wrongPassphrase) {
      try ClientIdentity(pkcs12: data, passphrase: "coffee")
    }
    let session = server.makeSession { $0.clientIdentity = ada }
    for _ in 0..<2 {
      let who = try await session.request(server.url(entrance, "/who")).serializingString().value
      #expect(who == "CN=Ada")
    }
    // Without a certificate, nginx responds with an error instead of the name.
    let stranger = server.makeSession()
    let nobody = await stranger.request(server.url(entrance, "/who")).serializingString().response
    #expect(nobody.response?.statusCode == 400, "\(String(describing: nobody.error))")
    let own = server.makeSession()
    let request = own.request(server.url(entrance, "/who")).authenticate(with: ClientIdentityCredential(ada))
    #expect(try await request.serializingString().value == "CN=Ada")
    #expect(
      await own.request(server.url(entrance, "/who")).serializingData().response.response?.statusCode == 400)
  }
}

@Suite("Unix-domain sockets", .needsNginx, .timeLimit(.minutes(5)))
struct UnixSocketTests {
  @Test("A request is sent through the socket") func socket() async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession { $0.unixSocket = server.socket }
    let response = await session.request("http://any.example/item").serializingString().response
    #expect(response.value == NginxConfiguration.item)
    #expect(response.metrics?.transactionMetrics.last?.request.url?.host == "any.example")
    // Refusing private addresses does not apply, because the program itself has named the socket.
    let protected = server.makeSession {
      $0.unixSocket = server.socket
      $0.refusesPrivateAddresses = true
    }
    #expect(await protected.request("http://any.example/item").serializingString().response.error == nil)
    let missing = server.makeSession { $0.unixSocket = "/nowhere/socket" }
    let error = await missing.request("http://any.example/item").serializingString().response.error
    #expect((error?.underlyingError as? URLError)?.code == .cannotConnectToHost)
  }
}
