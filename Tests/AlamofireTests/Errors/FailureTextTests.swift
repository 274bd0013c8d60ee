import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// The texts that a program prints when a request has failed.
@Suite("Texts of failures", .timeLimit(.minutes(5))) struct FailureTextTests {
  private struct User: Decodable, Sendable {
    struct Track: Decodable, Sendable { let title: String }

    let id: Int
    var tracks: [Track] = []
  }

  private struct Unnamed: Error { let note = "why" }

  private static func fetch(_ url: String) async -> AFDataResponse<User> {
    await Session.real(configuration: .isolated).request(url, headers: ["X-API-Key": "planted-1"])
      .validate().serializingDecodable(User.self).response
  }

  private static func response(to reply: Reply) async throws -> AFDataResponse<User> {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(reply)
    return await fetch(server.url("/users?access_token=planted-2&page=1"))
  }

  private static func json(_ text: String, status: Int = 200, type: String = "application/json") -> Reply {
    Reply(
      status: status, headers: [HTTPHeader(name: "Content-Type", value: type)], body: .bytes(Array(text.utf8))
    )
  }

  @Test(
    "A body that cannot be decoded is described by the position and the two types",
    arguments: [
      (#"{"id": "seven", "tracks": []}"#, "Expected an Int at id, found a string."),
      (#"{"id": true, "tracks": []}"#, "Expected an Int at id, found a bool."),
      (#"{"id": null, "tracks": []}"#, "Expected an Int at id, found null."),
      (#"{"id": {}, "tracks": []}"#, "Expected an Int at id, found an object."),
      (
        #"{"id": 1, "tracks": [{"title": "a"}, {"title": [1]}]}"#,
        "Expected a String at tracks[1].title, found an array."
      ),
      (#"{"id": 1, "tracks": {}}"#, "Expected an array at tracks, found an object."),
      ("[]", "Expected an object at the top, found an array."),
      (#"{"tracks": []}"#, #"There is no value for the key "id" at the top."#),
      ("<html>Log in</html>", #"The body of 19 bytes begins with "<html>Log in</html>"."#),
      (#"{"id": 1, "password": "planted-3"#, #"begins with "{"id": 1, "password": "redacted"""#),
      ("\u{1}\u{2}", "The body of 2 bytes begins with bytes 01 02."),
    ])
  func decoding(body: String, sentence: String) async throws {
    let response = try await Self.response(to: Self.json(body))
    let error = try #require(response.error)
    #expect(error.underlyingError is DecodingError)
    for text in [error.localizedDescription, "\(error)", "\(response)"] {
      #expect(text.contains(sentence), "\(text)")
    }
    // A debug description has the whole body already.
    let isExcerpt = sentence.contains("begins with")
    #expect(response.debugDescription.contains(sentence) != isExcerpt, "\(response.debugDescription)")
  }

  @Test("A failed response names method, URL, status and the beginning of the body, without secrets")
  func failedResponse() async throws {
    let reply = Self.json(#"{"error": "quota", "token": "planted-4"}"#, status: 429)
    let response = try await Self.response(to: reply)
    let lines = response.description.split(separator: "\n")
    try #require(lines.count == 2)
    #expect(
      lines[0].hasPrefix(
        "failure(AFError.responseValidationFailed(reason: unacceptableStatusCode(code: 429)): "))
    #expect(lines[1].hasPrefix("GET http://127.0.0.1:"))
    #expect(
      lines[1].hasSuffix(
        #"/users?access_token=redacted&page=1 (429, application/json, 40 bytes: "{"error": "quota", "token": "redacted"}")"#
      ), "\(lines[1])")
    #expect(!"\(response) \(response.debugDescription)".contains("planted"))
  }

  @Test("A long body is shown in part") func longBody() async throws {
    let text = String(repeating: "é", count: 5_000)
    let response = try await Self.response(to: Self.json(text, status: 500, type: "text/plain"))
    #expect(response.description.contains("10000 bytes: \"ééé"))
    #expect(response.description.hasSuffix("é…\")"))
    #expect(response.description.count < 500)
  }

  @Test("A debug description contains a body once") func bodyOnce() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("only once"))
    let response = await Session.real(configuration: .isolated).request(server.url("/")).serializingString()
      .response
    #expect(response.value == "only once")
    #expect(response.debugDescription.components(separatedBy: "only once").count == 2)
    #expect(response.debugDescription.hasSuffix("[Result]: success(the body as a String of 9 characters)"))

    // Nor does the error of a serializer repeat the beginning of a body that is shown.
    let failed = try await Self.response(to: Self.json("<html>Log in</html>"))
    #expect("\(failed)".contains(#"The body of 19 bytes begins with "<html>Log in</html>"."#))
    #expect(failed.debugDescription.components(separatedBy: "<html>Log in</html>").count == 2)
    #expect(failed.debugDescription.contains("[Result]: failure("))
  }

  @Test(
    "A URL that cannot be used is described by its fault",
    arguments: [
      ("", "the text is empty."),
      ("http://a b/", "It contains white space"),
      ("http://127.0.0.1:abc/", "Its port is not a number"),
      ("http://127.0.0.1:99999/", "The port 99999 of \"http://127.0.0.1:99999/\" is out of range"),
      ("/users/1", "is not absolute; begin it with https:// and a host."),
      ("www.example.com/users", "is not absolute; begin it with https:// and a host."),
      ("localhost:8080/users", "has no scheme; begin it with http:// or https://."),
      ("example.com:8080/?token=planted", "has no scheme; begin it with http:// or https://."),
      ("htp://example.com/", "URLs with htp: are not supported"),
    ])
  func urls(text: String, sentence: String) async throws {
    let response = await Self.fetch(text)
    let error = try #require(response.error)
    #expect(error.localizedDescription.contains(sentence), "\(error.localizedDescription)")
    #expect(!"\(error) \(error.localizedDescription) \(response)".contains("planted"))
  }

  @Test("A failed transfer names method and URL") func transfer() async throws {
    let response = await Self.fetch("http://127.0.0.1:1/a?access_token=planted")
    let error = try #require(response.error)
    #expect("\(error)".hasPrefix("sessionTaskFailed(error: URLError.cannotConnectToHost): "))
    #expect("\(error)".hasSuffix("[GET http://127.0.0.1:1/a?access_token=redacted]"))
    // The line of the response would repeat them.
    #expect(!"\(response)".contains("\n"))
  }

  @Test("A refused redirect and an unsupported scheme name method and URL") func refusals() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "ftp://127.0.0.1/a"))
    let refused = try #require(await Self.fetch(server.url("/a?key=planted")).error)
    #expect("\(refused)".hasSuffix("[GET \(server.url("/a?key=redacted"))]"))
    let unsupported = try #require(await Self.fetch("htps://127.0.0.1/").error)
    #expect("\(unsupported)".hasSuffix("[GET htps://127.0.0.1/]"))
  }

  @Test("A Unix-domain socket is named by its path") func unixSocket() async throws {
    var options = TransportOptions()
    options.unixSocket = "/no/such.socket"
    let session = Session(configuration: .isolated, transportOptions: options)
    let error = try #require(await session.request("http://localhost/").serializingData().response.error)
    #expect((error.underlyingError as? URLError)?.code == .cannotConnectToHost)
    #expect(
      error.localizedDescription.contains(
        "The Unix-domain socket /no/such.socket does not accept the connection: No such file or directory."))
  }

  @Test("The line of a failed response does not repeat the body") func bodyOfFailure() async throws {
    let response = try await Self.response(to: Self.json("<html>Log in</html>", type: "text/html"))
    #expect(response.description.components(separatedBy: "Log in").count == 2)
    #expect(response.description.hasSuffix("(200, text/html, 19 bytes)"), "\(response)")
  }

  @Test("The text about a head that is too large names the option") func largeHead() async throws {
    let response = try await Self.response(to: .garbageHead(.huge(bytes: 1 << 20)))
    let error = try #require(response.error)
    #expect((error.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)
    let text = error.localizedDescription
    #expect(text.contains("is larger than 262144 bytes. Raise headerSizeLimit"), "\(text)")
  }

  @Test("HTTPS at a port for plain HTTP is recognised") func secureAtPlainPort() async throws {
    let server = try HTTPTestServer()
    let error = try #require(await Self.fetch(server.url("/get").replacing("http:", with: "https:")).error)
    #expect((error.underlyingError as? URLError)?.code == .secureConnectionFailed)
    #expect(error.localizedDescription.contains("127.0.0.1 does not speak TLS on this port"))
    #expect(error.localizedDescription.contains("If this is a port for plain HTTP, use http://."))
  }

  @Test("Plain HTTP at a port for TLS is recognised") func plainAtSecurePort() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let error = try #require(await Self.fetch(server.url("/get").replacing("https:", with: "http:")).error)
    #expect(
      error.localizedDescription.contains("It failed, or this is a port for TLS; then use https://."),
      "\(error)")
  }

  @Test("A WebSocket with the wrong scheme is recognised") func webSockets() async throws {
    let plain = try HTTPTestServer()
    let secure = try HTTPTestServer(.tls(.localhost))
    for (url, sentence) in [
      (plain.url("/").replacing("http:", with: "wss:"), "does not speak TLS on this port"),
      (secure.url("/").replacing("https:", with: "ws:"), "If this is a port for TLS, use wss://."),
    ] {
      let request = Session.real(configuration: .isolated).webSocketRequest(to: url)
      for await _ in request.webSocketTask().streamingMessages() {}
      #expect(
        request.error?.localizedDescription.contains(sentence) == true, "\(String(describing: request.error))"
      )
    }
  }

  @Test("Missing files and folders are named") func files() async throws {
    let session = Session.real(configuration: .isolated)
    let missing = URL(fileURLWithPath: "/no/such/file.txt")
    let target = "http://127.0.0.1:1/"
    let errors = [
      await session.request(missing).serializingData().response.error,
      await session.upload(missing, to: target).serializingData().response.error,
      await session.upload(multipartFormData: { $0.append(missing, withName: "f") }, to: target)
        .serializingData().response.error,
    ]
    for error in errors {
      #expect(error?.localizedDescription.contains("/no/such/file.txt") == true)
      #expect(error?.localizedDescription.contains("could not be completed") == false)
    }
  }

  @Test("An error without a message is printed with its values") func unnamedErrors() async throws {
    let server = try HTTPTestServer()
    let response = await Session.real(configuration: .isolated).request(server.url("/get"))
      .validate { _, _, _ in .failure(Unnamed()) }.serializingData().response
    let error = try #require(response.error)
    #expect(error.localizedDescription.hasPrefix("The response was refused: "))
    #expect(error.localizedDescription.contains(#"Unnamed(note: "why")."#))
    #expect("\(error)".contains(#"customValidationFailed(error: Unnamed(note: "why"))"#))
  }
}
