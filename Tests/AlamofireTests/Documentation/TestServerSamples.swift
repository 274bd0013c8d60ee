import Alamofire
import HTTPTestServer
import Testing

// Samples of the comments on the test server; see `SampleTests`.

private struct Client {
  func get(_ url: String) async throws -> Data { try await AF.request(url).serializingData().value }
}

private let client = Client()

private func show(_ value: Any) {}

private func servers() async throws {
  let server = try HTTPTestServer()
  server.enqueue(.json(#"{"name": "Ada"}"#), .status(503))
  let response = try await client.get(server.url("/people/1"))
  let request = try await server.takeRequest()
  #expect(request.header("Accept") == "application/json")
  show(response)
}

private func requests(server: HTTPTestServer) async throws {
  let request = try await server.takeRequest()
  #expect(request.method == "POST")
  #expect(request.header("Content-Type") == "application/json")
}

private func replies(server: HTTPTestServer) {
  server.enqueue(
    .json(#"{"id": 1}"#),
    .status(503).with(header: "Retry-After", value: "1"),
    .text("slow").delayed(by: .seconds(2)),
    .reset)
}

private func gates(server: HTTPTestServer, rest: String) async throws {
  do {
    let gate = Gate()
    let reply = Reply(body: .parts(["first ", .gate(gate), .text(rest)]))
    show(reply)
  }
  let gate = Gate()
  server.enqueue(.text("late").held(by: gate))
  let response = Task { try await client.get(server.url("/")) }
  await gate.waitUntilReached()  // the request is at the server, the reply is ready
  gate.open()
  show(response)
}

private func routes() throws {
  let routes = Routes.standard.adding("/people/{id}", methods: ["GET"]) { request, parameters in
    .json("{\"id\": \"\(parameters[0])\"}")
  }
  let server = try HTTPTestServer(routes: routes)
  show(server)
}

private func identities() throws {
  let authority = try TestIdentity(.init(commonName: "Test CA", isCA: true))
  let expired = try TestIdentity(
    .init(
      commonName: "localhost", dnsNames: ["localhost"], notBefore: .seconds(-7200),
      notAfter: .seconds(-3600), issuer: authority))
  let server = try HTTPTestServer(.tls(expired))
  show(server)
}

private func clientCertificates(authority: TestIdentity) throws {
  let options = TLSOptions(maximumVersion: .tls1_2, clientAuthority: authority.certificatePEM)
  let server = try HTTPTestServer(.tls(.localhost, options))
  show(server)
}

private func ports() throws {
  let target = try UnresponsivePort()
  let url = "http://127.0.0.1:\(target.port)/"
  show(url)
}

private func endpoint(server: HTTPTestServer) {
  let endpoint = WebSocketEndpoint(subprotocols: ["chat"]) { connection in
    try connection.send("welcome")
    try connection.echo()
  }
  server.enqueue(.webSocket(endpoint))
}
