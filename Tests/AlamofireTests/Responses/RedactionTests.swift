import Alamofire
import Foundation
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct RedactionTests {
  @Test("Descriptions contain no credentials") func credentials() async throws {
    let server = try HTTPTestServer(routes: .none)
    var reply = Reply.text("ok")
    reply.headers.append(HTTPHeader(name: "Set-Cookie", value: "session=top-secret-3"))
    server.enqueue(reply)
    let url = server.url("/").replacing("http://", with: "http://anna:top-secret-0@")
    let response = await Session.real(configuration: .isolated).request(
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
    #expect(text.contains("Cookie: a=<redacted>"))
    #expect(text.contains("Set-Cookie: session=<redacted>"))
    #expect(text.contains("X-Kept: shown"))
    #expect(text.contains("redacted@"))
  }

  @Test("Descriptions contain no passwords of URLs") func passwords() async throws {
    let server = try HTTPTestServer()
    let request = Session.real(configuration: .isolated).request(
      server.url("/get").replacing("http://", with: "http://anna:top-secret@"))
    let response = await request.serializingData().response
    let metrics = try #require(response.metrics)
    let text = "\(request) \(metrics) \(response)"
    #expect(text.contains("redacted@") && !text.contains("top-secret"), "\(text)")
  }

  @Test(
    "Errors contain no passwords of URLs",
    arguments: [
      "ftp://anna:top-secret@example.com/a", "http://anna:top-secret@/", "http://anna:top-secret@a b/",
      "http://top-secret@a b/", "ftp://top-secret@a/", "top-secret@example.com/a",
      "anna:top-secret@example.com/a",
      "http://anna:top:secret/@a/", "https://anna:top-secret@example.com:99999/", "x://anna:top-secret@:80",
    ])
  func passwordsInErrors(url: String) async throws {
    let response = await Session.real(configuration: .isolated).request(url).serializingData().response
    let error = try #require(response.error)
    let inner = error.underlyingError as? URLError
    let text = [
      // An invalid URL is unchanged in the error, so that the caller can read it.
      error.localizedDescription, error.isInvalidURLError ? "" : response.debugDescription,
      inner?.localizedDescription ?? "",
      "\(inner?.userInfo ?? [:])", inner?.failingURL?.absoluteString ?? "",
    ].joined(separator: " ")
    #expect(!text.contains("top-secret"), "\(text)")
  }

  @Test("Protected header fields are secret in descriptions") func protectedHeaders() async throws {
    let server = try HTTPTestServer()
    let response = await Session.real(configuration: .isolated)
      .request(server.url("/get"), headers: ["X-Customer": "top-secret", "X-API-Key": "top-secret"])
      .transportOptions { $0.protectedHeaders = ["X-Customer"] }
      .serializingData().response
    let request = response.debugDescription.components(separatedBy: "[Response]:")[0]
    #expect(request.contains("X-Customer: <redacted>") && request.contains("X-API-Key: <redacted>"))
    #expect(!request.contains("top-secret"))
  }

  @Test(
    "Protected header fields are secret if the request ended before it was sent, and for responses without HTTP",
    arguments: ["http://127.0.0.1:9/", "data:,text"])
  func protectedHeadersWithoutHop(url: String) async {
    struct Refusal: Error {}
    let adapter = Adapter { request, _, completion in
      completion(request.url?.scheme == "http" ? .failure(Refusal()) : .success(request))
    }
    let request = Session.real(configuration: .isolated)
      .request(url, headers: ["X-Customer": "top-secret"], interceptor: adapter)
      .transportOptions { $0.protectedHeaders = ["X-Customer"] }
    let response = await request.serializingData().response
    #expect((response.error == nil) == (url == "data:,text"))
    let text = response.debugDescription
    #expect(text.contains("X-Customer: <redacted>") && !text.contains("top-secret"), "\(text)")
  }

  @Test("Protected header fields of a download are secret if a retrier has replaced its error")
  func protectedHeadersOfReplacedError() async throws {
    struct Refusal: Error {}
    let server = try HTTPTestServer()
    let retrier = Retrier { _, _, _, completion in completion(.doNotRetryWithError(Refusal())) }
    let download = Session.real(configuration: .isolated)
      .download(server.url("/get"), headers: ["X-Customer": "top-secret"], interceptor: retrier)
      .transportOptions { $0.protectedHeaders = ["X-Customer"] }
    let response = await withCheckedContinuation { continuation in
      download.responseDecodable(of: Int.self) { continuation.resume(returning: $0) }
    }
    #expect(response.error?.isRequestRetryError == true)
    let request = response.debugDescription.components(separatedBy: "[Response]:")[0]
    #expect(request.contains("X-Customer: <redacted>") && !request.contains("top-secret"), "\(request)")
  }
}
