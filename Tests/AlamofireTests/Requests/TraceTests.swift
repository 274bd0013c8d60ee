import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// The response to TRACE repeats its request, and so may every proxy on the way (RFC 9110 §9.3.8).
@Suite("TRACE requests", .timeLimit(.minutes(5))) struct TraceTests {
  private static let protected: FakeTransport.Responder = { request, _ in
    request.value("Authorization") == nil ? .challenge() : .text("in")
  }

  private static func isSent(_ name: String, with request: WireRequest) -> Bool { request.value(name) != nil }

  @Test("Neither cookies nor known credentials are sent, and no challenge is answered") func secrets()
    async throws
  {
    let fixture = try CookieFixture(FakeTransport(responder: Self.protected))
    fixture.put("sid", domain: "a.test")
    let session = fixture.session
    func send(_ method: HTTPMethod, isPreemptive: Bool = false) async -> Int? {
      let request = session.request("http://a.test/x", method: method)
        .authenticate(username: "u", password: "p")
        .transportOptions { $0.preemptiveBasicAuthentication = isPreemptive }
      return await request.end().response?.statusCode
    }
    #expect(await send(.get) == 200, "the challenge is answered")
    #expect(await send(.trace) == 401, "a remembered credential is not used")
    #expect(await send(.trace, isPreemptive: true) == 401)
    #expect(await send(.get) == 200, "the credential is still remembered")
    let requests = fixture.fake.requests
    #expect(requests.map(\.method) == ["GET", "GET", "TRACE", "TRACE", "GET"])
    #expect(requests.map { Self.isSent("Authorization", with: $0) } == [false, true, false, false, true])
    #expect(requests.map { Self.isSent("Cookie", with: $0) } == [true, true, false, false, true])
  }

  @Test("The credential of a netrc file is not sent") func netrc() async throws {
    let folder = try TemporaryFolder()
    try Data("default login any password x".utf8).write(to: folder["netrc"])
    let path = folder["netrc"].path
    let fake = FakeTransport(responder: Self.protected)
    let session = Session.retained(fake: fake)
    for method in [HTTPMethod.trace, .get] {
      let request = session.request("http://a.test/", method: method).transportOptions {
        $0.netrcFile = path
        $0.preemptiveBasicAuthentication = true
      }
      _ = await request.end()
    }
    #expect(fake.requests.map(\.method) == ["TRACE", "GET"])
    #expect(fake.requests.map { Self.isSent("Authorization", with: $0) } == [false, true])
    // The folder is removed with its object.
    #expect(try folder.names == ["netrc"])
  }

  @Test("Fields of the caller are sent") func ownFields() async throws {
    let fixture = try CookieFixture()
    fixture.put("sid", domain: "a.test")
    let headers: HTTPHeaders = ["Cookie": "own=1", "Authorization": "Bearer t"]
    _ = await fixture.session.request("http://a.test/", method: .trace, headers: headers).end()
    #expect(fixture.sent == ["own=1"])
    #expect(fixture.fake.requests.first?.value("Authorization") == "Bearer t")
  }

  @Test(
    "A cURL command has neither cookies of the storage nor credentials", arguments: [HTTPMethod.trace, .get])
  func curl(method: HTTPMethod) async throws {
    let fixture = try CookieFixture()
    fixture.put("sid", domain: "a.test")
    let request = fixture.session.request("http://a.test/", method: method)
      .authenticate(username: "u", password: "p")
    _ = await request.end()
    let command = request.cURLDescription()
    #expect(command.contains("-b ") == (method == .get), "\(command)")
    #expect(command.contains("-u u:p") == (method == .get), "\(command)")
  }

  @Test("A body is refused before anything is sent") func body() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    let response = await session.request(server.url("/get"), method: .trace, parameters: ["a": "b"]).end()
    let error = try #require(response.error?.underlyingError as? URLError)
    #expect(error.code == .badURL)
    #expect(error.localizedDescription.contains("TRACE request cannot carry a body"), "\(error)")
  }
}
