import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import Alamofire

/// The trailer fields of responses in the public API.
@Suite("Trailers of responses", .timeLimit(.minutes(5))) struct ResponseTrailerTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer(routes: .none)
  }

  private static func reply(_ text: String = "body", _ trailers: (String, String)..., status: Int = 200)
    -> Reply
  {
    var reply = Reply(status: status, body: .parts([.bytes(Array(text.utf8))]))
    reply.trailers = (trailers.isEmpty ? [("X-End", "1"), ("Set-Cookie", "a=b")] : trailers)
      .map { HTTPHeader(name: $0.0, value: $0.1) }
    return reply
  }

  private static let expected: HTTPHeaders = ["X-End": "1", "Set-Cookie": "a=b"]

  @Test("A data request has them in its response, apart from the header") func data() async throws {
    server.enqueue(Self.reply())
    let session = Session.real(configuration: .isolated)
    let request = session.request(server.url("/"), headers: ["TE": "trailers"])
    #expect(request.responseTrailers == nil)
    let response = await request.serializingString().response
    #expect(response.value == "body" && response.trailers == Self.expected)
    #expect(request.responseTrailers == Self.expected)
    #expect(response.map { $0.count }.trailers == Self.expected)
    #expect(response.response?.value(forHTTPHeaderField: "X-End") == nil)
    #expect(response.response?.value(forHTTPHeaderField: "Set-Cookie") == nil)
    let cookies = session.sessionConfiguration.httpCookieStorage?.cookies ?? []
    #expect(cookies.isEmpty, "a cookie of a trailer is not stored")
    let sent = try #require(server.recordedRequests.last)
    #expect(sent.header("TE") == "trailers" && sent.headers(named: "Connection") == ["TE"])
  }

  @Test("A response without trailers has nil") func without() async {
    server.enqueue(.text("a"), .parts("b"), .status(204))
    let session = Session.real(configuration: .isolated)
    for _ in 0..<3 {
      let request = session.request(server.url("/"))
      let response = await request.end()
      #expect(response.error == nil && response.trailers == nil && request.responseTrailers == nil)
    }
  }

  @Test("Values of a repeated name are joined") func repeated() async {
    server.enqueue(Self.reply("body", ("X-A", "1"), ("X-B", "2"), ("x-a", "3")))
    let response = await Session.real(configuration: .isolated).request(server.url("/")).end()
    #expect(response.trailers == ["X-A": "1, 3", "X-B": "2"])
  }

  @Test("A download has them in its response") func download() async {
    server.enqueue(Self.reply())
    let request = Session.real(configuration: .isolated).download(server.url("/"))
    let response = await request.serializingString().response
    #expect(response.value == "body" && response.trailers == Self.expected)
    #expect(request.responseTrailers == Self.expected)
    response.removeFile()
  }

  @Test("A stream has them in its completion") func stream() async throws {
    server.enqueue(Self.reply())
    let recorder = DataRecorder()
    let request = Session.real(configuration: .isolated).streamRequest(server.url("/"))
    request.responseStream(on: .global(), stream: recorder.note)
    let completion = try await recorder.end()
    #expect(recorder.text == "body" && completion.trailers == Self.expected)
    #expect(request.responseTrailers == Self.expected)
  }

  @Test("They belong to the response after redirects and retries") func lastResponse() async {
    let redirect = Reply.redirect(to: "/there").with(trailers: [HTTPHeader(name: "X-Redirect", value: "1")])
    server.enqueue(redirect, Self.reply("failed", ("X-Failed", "1"), status: 503), .redirect(to: "/last"))
    server.enqueue(Self.reply())
    let session = Session.real(
      configuration: .isolated, interceptor: RetryPolicy(exponentialBackoffScale: 0))
    let request = session.request(server.url("/")).validate()
    let response = await request.serializingString().response
    #expect(response.value == "body" && request.retryCount == 1)
    #expect(response.trailers == Self.expected && request.responseTrailers == Self.expected)
  }

  @Test("A response that fails validation has them, one that is cut off has none") func failures() async {
    server.enqueue(
      Self.reply(status: 404), .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\n"))
    let session = Session.real(configuration: .isolated)
    let refused = await session.request(server.url("/")).validate().serializingData().response
    #expect(refused.error != nil && refused.trailers == Self.expected)
    let cut = await session.request(server.url("/"), method: .post).serializingData().response
    #expect(cut.error != nil && cut.response?.statusCode == 200 && cut.trailers == nil)
  }

  @Test("A response that is created from its parts has none") func made() {
    let response = DataResponse<Int, AFError>(
      request: nil, response: nil, data: nil, metrics: nil, serializationDuration: 0, result: .success(1))
    #expect(response.trailers == nil)
  }

  @Test("A wire log shows them without secrets") func wireLog() async {
    server.enqueue(Self.reply("body", ("X-End", "1"), ("X-Token", "planted HTTP/1.1")))
    let entries = Recorder<WireLog.Entry>()
    let log = WireLog { entries.add($0) }
    let session = Session.real(configuration: .isolated, eventMonitors: [log])
    let response = await session.upload(Data("a".utf8), to: server.url("/"))
      .trailers { ["X-Sent": "1", "X-Token": "planted"] }.serializingString().response
    #expect(response.value == "body")
    log.queue.sync {}
    let texts = entries.values.map { "\($0)" }
    #expect(texts.contains("> X-Sent: 1\n> X-Token: <redacted>"), "\(texts)")
    #expect(texts.contains("< X-End: 1\n< X-Token: <redacted>"), "\(texts)")
    #expect(!texts.joined().contains("planted"))
  }
}
