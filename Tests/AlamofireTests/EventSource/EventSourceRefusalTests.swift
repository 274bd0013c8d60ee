import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Responses that are not event streams: why they were refused can be read.
@Suite("Refused event streams", .timeLimit(.minutes(5))) struct EventSourceRefusalTests {
  private static let reason = #"{"error":{"message":"context too long"}}"#

  /// Reads a source to its end. Returns its error.
  private func failure(of request: EventSourceRequest) async -> AFError? {
    do {
      for try await event in request.events() { Issue.record("an event: \(event)") }
      return nil
    } catch {
      return error
    }
  }

  @Test(
    "The body of a refusal is stored, and the error's text begins with it", arguments: [400, 401, 429, 500])
  func body(status: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.json(Self.reason).with(status: status))
    let request = Session.real().eventSourceRequest(server.url("/answers"), method: .post)
    let error = await failure(of: request)
    #expect(error?.isResponseValidationError == true && error?.responseCode == status)
    #expect(request.data == Data(Self.reason.utf8))
    #expect(request.response?.statusCode == status)
    let text = error?.localizedDescription ?? ""
    #expect(text.contains("\(status)") && text.contains("context too long"), "\(text)")
    #expect(error.map { "\($0)" }?.contains("context too long") == true)
    let refusal = error?.underlyingError as? ResponseRefusal
    #expect(refusal?.body == request.data)
    guard case .unacceptableStatusCode(status)? = refusal?.reason else {
      Issue.record("\(String(describing: refusal))")
      return
    }
  }

  @Test("A handler receives the refusal, too, and nothing else") func handler() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.json(Self.reason).with(status: 400))
    let request = Session.real().eventSourceRequest(server.url("/"))
    let ends = Recorder<AFError?>()
    request.responseEvents(on: DispatchQueue(label: "test.handlers")) { stream in
      if case .complete(let completion) = stream.event { ends.add(completion.error) } else { ends.add(nil) }
    }
    #expect(await ends.wait(for: 1).map { $0?.responseCode } == [400])
    #expect(request.data == Data(Self.reason.utf8))
  }

  @Test("A page instead of events is refused for its type, with its beginning") func page() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("<html>Sign in</html>").with(header: "Content-Type", value: "text/html"))
    let request = Session.real().eventSourceRequest(server.url("/"))
    let error = await failure(of: request)
    #expect(error?.responseContentType == "text/html")
    #expect(error?.acceptableContentTypes == ["text/event-stream"])
    #expect(error?.localizedDescription.contains("Sign in") == true)
    #expect(request.data == Data("<html>Sign in</html>".utf8))
  }

  @Test(
    "At most 64 KiB are stored, and a longer body does not hide the reason",
    arguments: [65_535, 65_536, 65_537, 5_000_000])
  func longBody(count: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Reply.bytes(count).with(status: 413))
    let request = Session.real().eventSourceRequest(server.url("/"))
    let error = await failure(of: request)
    #expect(error?.responseCode == 413, "\(String(describing: error))")
    #expect(request.data == Data(Reply.patternBytes(min(count, 65_536))))
    #expect(request.response?.statusCode == 413)
    #expect((error?.localizedDescription.utf8.count ?? 0) < 1000)
  }

  @Test("A refusal without an end is over after 64 KiB") func endlessBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(
      Reply(status: 503, headers: [.contentType("text/html")], body: .parts([.pattern(65_537), .gate(gate)])))
    let request = Session.real().eventSourceRequest(server.url("/"))
    #expect(await failure(of: request)?.responseCode == 503)
    #expect(request.data?.count == 65_536 && !gate.isOpen)
    gate.open()
  }

  @Test("Without a body there is no data") func noBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(404))
    let request = Session.real().eventSourceRequest(server.url("/"))
    let error = await failure(of: request)
    #expect(error?.responseCode == 404 && request.data == nil)
    #expect(error?.localizedDescription.contains("body") == false)
  }

  @Test("A body on its way through a terminal or a log is one line without control characters")
  func unsafeBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply.text("a\nb\u{9B}31m\u{202E}\u{85}c password=s3cret&x=1").with(status: 400)
        .with(header: "Content-Type", value: "application/x-www-form-urlencoded"))
    let error = await failure(of: Session.real().eventSourceRequest(server.url("/")))
    let text = error?.localizedDescription ?? ""
    #expect(
      !text.unicodeScalars.contains { [0x0A, 0x85, 0x9B, 0x202E].contains($0.value) },
      "\(text.debugDescription)")
    #expect(!text.contains("s3cret"), "\(text)")
  }

  @Test("The body of an earlier connection is forgotten by the next one") func nextConnection() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .json(Self.reason).with(status: 503),
      .text("data: 1\n\n").with(header: "Content-Type", value: "text/event-stream"), .status(204))
    let request = Session.real().eventSourceRequest(
      server.url("/"), interceptor: RetryPolicy(exponentialBackoffScale: 0.001))
    var data: [String] = []
    for try await event in request.events() { data.append(event.data) }
    #expect(data == ["1"] && request.data == nil)
  }

  @Test("A connection without a response has no body of an earlier one") func connectionWithoutHead()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.json(Self.reason).with(status: 503), .raw("nonsense\r\n\r\n"))
    var configuration = EventSourceRequest.Configuration()
    configuration.maximumFailureCount = 0
    let request = Session.real().eventSourceRequest(
      server.url("/"), configuration: configuration,
      interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.001))
    #expect(await failure(of: request)?.transferCode == .badServerResponse)
    #expect(request.data == nil)
    #expect(server.requestCount == 2)
  }

  @Test("A redirect that is not followed is refused") func declinedRedirect() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.redirect(to: "/elsewhere", status: 301))
    let request = Session.real().eventSourceRequest(server.url("/"))
    request.redirect(using: Redirector.doNotFollow)
    #expect(await failure(of: request)?.responseCode == 301)
  }

  @Test("A response with 204 has neither events nor an error") func noContent() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(204))
    let request = Session.real().eventSourceRequest(server.url("/"))
    #expect(await failure(of: request) == nil)
    #expect(request.data == nil && request.isFinished)
  }

  // MARK: WebSockets

  @Test("A handshake that a validator rejects keeps its body in the error's text", arguments: [false, true])
  func handshake(validates: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.json(Self.reason).with(status: 403))
    let socket = Session.forSockets().webSocketRequest(to: server.socketURL())
    if validates { socket.validate() }
    let ends = Recorder<AFError?>()
    socket.streamMessageEvents(on: .global()) { event in
      if case .completed(let completion) = event.kind { ends.add(completion.error) }
    }
    let error = try #require(try await ends.value(0))
    #expect(socket.data == Data(Self.reason.utf8))
    #expect(error.localizedDescription.contains("context too long"), "\(error)")
    #expect(error.responseCode == (validates ? 403 : nil))
  }
}
