import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Uploads of background sessions that end, and that later sessions continue.
@Suite(.timeLimit(.minutes(5))) struct BackgroundUploadTests {
  private let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  /// Begins an upload and releases its session when the server has received all of it.
  private func abandon(_ method: HTTPMethod, _ file: URL, _ server: HTTPTestServer, _ gate: Gate) async {
    let session = fixture.session()
    let request = session.upload(file, to: server.url("/upload"), method: method)
    let ending = Task { await request.ended() }
    await gate.waitUntilReached()
    withExtendedLifetime((session, ending)) {}
  }

  @Test("An upload leaves nothing behind, and its file stays", arguments: [HTTPMethod.put, .post])
  func plain(method: HTTPMethod) async throws {
    let server = try HTTPTestServer(routes: .standard)
    let session = fixture.session()
    let file = try fixture.folder.file("body", Data(repeating: 7, count: 300_000))
    let response = await session.upload(file, to: server.url("/upload-sink"), method: method).ended()
    #expect(response.data.map { String(decoding: $0, as: UTF8.self).contains("300000") } == true)
    #expect(await fixture.isEmptied())
    #expect(FileManager.default.fileExists(atPath: file.path))
  }

  @Test("Bytes and forms are uploaded from a file of the journal") func spooled() async throws {
    let server = try HTTPTestServer(routes: .standard)
    let session = fixture.session()
    let bytes = await session.upload(Data("bytes".utf8), to: server.url("/echo")).ended()
    #expect(bytes.data == Data("bytes".utf8))
    let form = await session.upload(
      multipartFormData: { $0.append(Data("value".utf8), withName: "name") }, to: server.url("/post"),
      usingThreshold: 0
    ).ended()
    #expect(form.data.map { String(decoding: $0, as: UTF8.self).contains("value") } == true)
    #expect(await fixture.isEmptied())
  }

  @Test("A body in the journal that has lost bytes is not sent", arguments: [true, false])
  func damagedBody(isForm: Bool) async throws {
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .none.adding("/upload") { _, _ in gate.isOpen ? .text("again") : .text("ok").held(by: gate) })
    do {
      let session = fixture.session()
      let form: (MultipartFormData) -> Void = { $0.append(Data("value".utf8), withName: "name") }
      let request =
        isForm
        ? session.upload(
          multipartFormData: form, to: server.url("/upload"), usingThreshold: 0, method: .put)
        : session.upload(Data("value".utf8), to: server.url("/upload"), method: .put)
      let ending = Task { await request.ended() }
      await gate.waitUntilReached()
      withExtendedLifetime((session, ending)) {}
    }
    gate.open()
    let body = try #require(fixture.files.first { $0.hasSuffix(".body") })
    #expect(truncate(fixture.journal.appendingPathComponent(body).path, 2) == 0)
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    let failure = (await request.ended()).error?.underlyingError as? URLError
    #expect(failure?.code == .cannotOpenFile)
    #expect(failure?.localizedDescription.contains("has 2 bytes instead of") == true)
    #expect(server.recordedRequests.count == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("Trailers are not sent, because the next session could not make them") func trailers() async throws {
    let server = try HTTPTestServer(routes: .standard)
    let session = fixture.session()
    let response = await session.upload(Data("bytes".utf8), to: server.url("/echo"))
      .trailers(announcing: ["X-End"]) { ["X-End": "1"] }.ended()
    #expect(response.data == Data("bytes".utf8))
    let request = try #require(server.recordedRequests.last)
    #expect(request.trailers.isEmpty && !request.isChunked && request.header("Trailer") == nil)
    #expect(await fixture.isEmptied())
  }

  @Test("A stream is refused with a clear error") func stream() async throws {
    let server = try HTTPTestServer(routes: .standard)
    let session = fixture.session()
    let response = await session.upload(InputStream(data: Data("x".utf8)), to: server.url("/echo")).ended()
    #expect(response.error?.localizedDescription.contains("InputStream") == true)
    #expect(server.recordedRequests.isEmpty)
    #expect(await fixture.isEmptied())
  }

  @Test("An upload of a URL that is not the URL of a file is an error, and is in no journal")
  func notAFile() async throws {
    let server = try HTTPTestServer(routes: .standard)
    let web = try #require(URL(string: "https://example.com/file"))
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.upload(web, to: server.url("/upload-sink"), method: .put).resume()
      #expect(await eventually { request.isFinished })
      #expect((request.error?.underlyingError as? URLError)?.code == .badURL)
      withExtendedLifetime(session) {}
    }
    let session = fixture.session()
    for request in session.restoredRequests {
      Issue.record("an upload without its body is continued")
      _ = await (request as? UploadRequest)?.ended()
    }
    #expect(server.recordedRequests.isEmpty && fixture.files.isEmpty)
  }

  @Test("An upload by PUT is sent again, one by POST that the server has is not")
  func repeated() async throws {
    for method in [HTTPMethod.put, .post] {
      let gate = Gate()
      let server = try HTTPTestServer(
        routes: .none.adding("/upload") { _, _ in gate.isOpen ? .text("again") : .text("ok").held(by: gate) })
      let file = try fixture.folder.file("body", Data(repeating: 7, count: 100_000))
      await abandon(method, file, server, gate)
      gate.open()
      let session = fixture.session()
      let request = try #require(session.restoredRequests.first as? UploadRequest)
      let response = await request.ended()
      if method == .put {
        #expect(response.data == Data("again".utf8))
        #expect(server.recordedRequests.map(\.bodyLength) == [100_000, 100_000])
      } else {
        let failure = response.error?.underlyingError as? URLError
        #expect(failure?.code == .backgroundSessionWasDisconnected)
        #expect(failure?.localizedDescription.contains("POST") == true)
        #expect(server.recordedRequests.count == 1)
      }
      #expect(await fixture.isEmptied())
    }
  }

  @Test("An upload by POST of which the server has only a part is sent again") func interrupted() async throws
  {
    let server = try HTTPTestServer(routes: .standard)
    let gate = Gate()
    // The server does not read the body, which is larger than all buffers on the path.
    server.enqueue(.earlyReply(200, then: .ignored).held(by: gate))
    let file = try fixture.folder.file("body", Data(repeating: 7, count: 40_000_000))
    do {
      let session = fixture.session()
      let request = session.upload(file, to: server.url("/upload-sink"))
      let ending = Task { await request.ended() }
      await gate.waitUntilReached()
      withExtendedLifetime((session, ending)) {}
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    let response = await request.ended()
    #expect(response.data.map { String(decoding: $0, as: UTF8.self).contains("40000000") } == true)
    #expect(await fixture.isEmptied())
  }

  @Test("An upload that waits for its date waits in another session too") func waiting() async throws {
    let server = try HTTPTestServer(routes: .standard)
    do {
      let session = fixture.session()
      let request = session.upload(Data("x".utf8), to: server.url("/echo"))
        .earliestBeginDate(Date() + 3600)
      let ending = Task { await request.ended() }
      #expect(await eventually { fixture.record != nil })
      withExtendedLifetime((session, ending)) {}
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    async let ending = request.ended()
    #expect(await session.upload(Data("now".utf8), to: server.url("/echo")).ended().data == Data("now".utf8))
    #expect(server.recordedRequests.count == 1)
    request.cancel()
    #expect(await ending.error?.isExplicitlyCancelledError == true)
    #expect(await fixture.isEmptied())
  }

  @Test("The URL of a redirected response is delivered by another session") func redirected() async throws {
    let server = try HTTPTestServer(
      routes: .none.adding("/start") { _, _ in .status(307).with(header: "Location", value: "/there") }
        .adding("/there") { _, _ in .text("there") })
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.upload(Data("body".utf8), to: server.url("/start")).resume()
      #expect(await eventually { request.isFinished })
      withExtendedLifetime(session) {}
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    let response = await request.ended()
    #expect(response.data == Data("there".utf8))
    #expect(response.response?.url?.absoluteString == server.url("/there"))
    #expect(server.recordedRequests.map(\.path) == ["/start", "/there"])
    #expect(await fixture.isEmptied())
  }

  @Test("A response that another session delivers has its fields, among them Set-Cookie") func fields()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    // The cookie has expired, so that no other test sends it.
    server.enqueue(Reply.text("stored").with(header: "Set-Cookie", value: "a=b; Max-Age=0"))
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.upload(Data("body".utf8), to: server.url("/upload")).resume()
      #expect(await eventually { request.isFinished })
      withExtendedLifetime(session) {}
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    #expect((await request.ended()).response?.headers["Set-Cookie"] == "a=b; Max-Age=0")
    #expect(server.recordedRequests.count == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("A response that no handler has received is delivered by another session")
  func undelivered() async throws {
    let server = try HTTPTestServer(routes: .standard)
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.upload(Data("body".utf8), to: server.url("/echo")).resume()
      #expect(await eventually { request.isFinished })
      withExtendedLifetime(session) {}
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    let response = await request.validate().ended()
    #expect(response.data == Data("body".utf8))
    #expect(response.response?.statusCode == 200)
    #expect(server.recordedRequests.count == 1)
    #expect(await fixture.isEmptied())
  }
}
