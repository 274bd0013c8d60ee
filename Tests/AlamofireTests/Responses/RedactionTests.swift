import Alamofire
import Foundation
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(1))) struct RedactionTests {
  @Test func descriptionsShowNoCredentials() async throws {
    let server = try HTTPTestServer(routes: .none)
    var reply = Reply.text("ok")
    reply.headers.append(HTTPHeader(name: "Set-Cookie", value: "session=top-secret-3"))
    server.enqueue(reply)
    let url = server.url("/").replacing("http://", with: "http://anna:top-secret-0@")
    let response = await Session.real(configuration: .solitary).request(
      url,
      headers: [
        "Authorization": "Bearer top-secret-1", "Proxy-Authorization": "top-secret-2",
        "Cookie": "a=top-secret-4",
        "X-Kept": "shown",
      ]
    ).serializingString().response
    #expect(response.value == "ok")
    let text = response.debugDescription
    #expect(!text.contains("top-secret"), "\(text)")
    #expect(text.contains("Authorization: Bearer <redacted>"))
    #expect(text.contains("Proxy-Authorization: <redacted>"))
    #expect(text.contains("Cookie: <redacted>"))
    #expect(text.contains("Set-Cookie: <redacted>"))
    #expect(text.contains("X-Kept: shown"))
    #expect(text.contains("anna:redacted@"))
  }
}
