import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The parts of a response that arrived before the request failed.
@Suite("Failures after the head", .timeLimit(.minutes(5)))
struct BrokenResponseTests {
  private let server: HTTPTestServer

  init() throws {
    let broken = Reply.bytes(100_000).with(header: "X-Head", value: "seen")
    server = try HTTPTestServer(
      routes: .standard
        .adding("/broken") { _, _ in broken.with(effect: .closeAfterBody(bytes: 40_000)) }
        .adding("/stalled") { _, _ in broken.with(effect: .stallAfterBody(bytes: 40_000)) }
        .adding("/silent") { _, _ in broken.with(effect: .stallAfterBody(bytes: 0)) }
        .adding("/lead") { _, _ in
          Reply.redirect(to: "/bytes/1").with(header: "Content-Length", value: "9")
            .with(effect: .closeAfterBody(bytes: 0))
        })
  }

  private var received: Data { Data(Reply.patternBytes(40_000)) }

  private func end(_ request: DownloadRequest) async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  @Test("A broken connection preserves head, bytes and metrics", arguments: [false, true])
  func brokenConnection(isMonitored: Bool) async throws {
    let spy = EventSpy()
    let session = Session.real(eventMonitors: isMonitored ? [spy] : [])
    let request = session.request(server.url("/broken"))
    let response = await request.end()
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(response.response?.statusCode == 200)
    #expect(response.response?.value(forHTTPHeaderField: "X-Head") == "seen")
    #expect(response.data == received)
    #expect(request.data == received)
    #expect(request.response === response.response)
    let transaction = try #require(response.metrics?.transactionMetrics.last)
    #expect((transaction.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(request.description.hasSuffix("(200)"))
  }

  @Test("Serializers receive the bytes with the error")
  func serializer() async {
    struct Count: DataResponseSerializerProtocol {
      func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?)
        throws -> [Int]
      { [response?.statusCode ?? 0, data?.count ?? 0, error == nil ? 0 : 1] }
    }
    let task = Session.real().request(server.url("/broken")).serializingResponse(using: Count())
    #expect(await task.result.success == [200, 40_000, 1])
  }

  @Test("A cancelled request preserves the received bytes", arguments: [false, true])
  func cancelled(isMonitored: Bool) async {
    let session = Session.real(eventMonitors: isMonitored ? [EventSpy()] : [])
    let request = session.request(server.url("/stalled"))
    request.downloadProgress(queue: .global()) { [weak request] progress in
      if progress.completedUnitCount == 40_000 { request?.cancel() }
    }
    let response = await request.end()
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(response.response?.statusCode == 200)
    #expect(response.data == received)
  }

  @Test(
    "A response that is cancelled at its head preserves the head",
    arguments: ["/broken", "/silent", "/bytes/0"])
  func cancelledAtHead(path: String) async {
    let request = Session.real().request(server.url(path))
    request.onHTTPResponse(on: .global()) { _, decide in decide(.cancel) }
    let response = await request.end()
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(response.response?.statusCode == 200)
  }

  @Test("A timeout after the head preserves the head")
  func timeout() async throws {
    var urlRequest = try URLRequest(url: server.url("/silent"), method: .get)
    urlRequest.timeoutInterval = 0.2
    let response = await Session.real().request(urlRequest).end()
    #expect((response.error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(response.response?.statusCode == 200)
    #expect(response.data == nil)
  }

  @Test("The completion of a broken stream has the head")
  func stream() async throws {
    let recorder = DataRecorder()
    Session.real().streamRequest(server.url("/broken")).responseStream(on: .global(), stream: recorder.note)
    let completion = try await recorder.end()
    #expect(completion.error != nil)
    #expect(completion.response?.statusCode == 200)
    #expect(recorder.data == received)
  }

  @Test("The body of a redirect cannot break the response")
  func redirect() async {
    let response = await Session.real().request(server.url("/lead")).end()
    #expect(response.value == Data(Reply.patternBytes(1)))
    #expect(response.response?.statusCode == 200)
  }

  @Test("A failure before the head has no response")
  func noHead() async {
    let response = await Session.retained(fake: FakeTransport(.failure(.cannotConnectToHost)))
      .request("http://a.test/").end()
    #expect(response.error != nil)
    #expect(response.response == nil)
    #expect(response.data == nil)
  }

  @Test("A retry discards the response of the failed attempt")
  func retry() async {
    let fake = FakeTransport(.chunks(["part"], failure: .connectionLost), .failure(.timedOut))
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1)).request(
      "http://a.test/")
    let response = await request.end()
    #expect(response.response == nil)
    #expect(response.data == nil)
    #expect(request.allMetrics.count == 2)
  }

  @Test("The error of a broken download contains its resume data")
  func resumeData() async throws {
    let file = VersionedFile(size: 100_000)
    let server = try HTTPTestServer(routes: file.routes)
    let seen = Recorder<Data?>()
    let retrier = Retrier { _, _, error, completion in
      seen.add(error.asAFError?.downloadResumeData)
      completion(.doNotRetry)
    }
    let session = Session.real(interceptor: Interceptor(retriers: [retrier]))
    file.breakAfter(30_000)
    let response = await end(session.download(server.url("/file")))
    #expect(response.response?.statusCode == 200)
    let data = try #require(response.error?.downloadResumeData)
    #expect(data == response.resumeData)
    #expect(seen.values == [data])
    let rest = await end(session.download(resumingWith: data))
    defer { rest.removeFile() }
    #expect(try Data(contentsOf: #require(rest.fileURL)) == file.bytes)
    #expect(server.recordedRequests.last?.header("Range") == "bytes=30000-")
  }

  @Test("A download without ranges has no resume data")
  func noRanges() async throws {
    let response = await end(Session.real().download(server.url("/broken")))
    #expect(response.response?.statusCode == 200)
    #expect(response.error?.downloadResumeData == nil)
    #expect(response.resumeData == nil)
    #expect(response.fileURL == nil)
  }

  @Test("A cancelled download has its head", arguments: [false, true])
  func cancelledDownload(producesResumeData: Bool) async throws {
    let file = VersionedFile(size: 100_000)
    let stalled = try HTTPTestServer(
      routes: Routes.none.adding("/file") { _, _ in
        Reply.data(Array(file.bytes)).with(header: "ETag", value: "\"v1\"")
          .with(effect: .stallAfterBody(bytes: 30_000))
      })
    let request = Session.real().download(stalled.url("/file"))
    request.downloadProgress(queue: .global()) { [weak request] progress in
      if progress.completedUnitCount == 30_000 {
        request?.cancel(producingResumeData: producesResumeData)
      }
    }
    let response = await end(request)
    defer { response.removeFile() }
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(response.response?.statusCode == 200)
    #expect((response.resumeData != nil) == producesResumeData)
    #expect(response.fileURL == nil)
  }
}
