import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct FormUploadTests {
  private struct Echo: Decodable, Sendable {
    let form: [String: String]
    let files: [String: String]
    let headers: [String: String]
  }

  private let server: HTTPTestServer
  private let session = Session.real()

  init() throws { server = try HTTPTestServer() }

  private static func fill(_ form: MultipartFormData) {
    form.append(Data("value".utf8), withName: "name")
    form.append(
      Data("contents".utf8), withName: "file", fileName: "a \"quoted\" name.txt", mimeType: "text/plain")
  }

  @Test("A form is sent from memory and from disk", arguments: [UInt64.max, 0])
  func form(threshold: UInt64) async throws {
    let request = session.upload(
      multipartFormData: Self.fill, to: server.url("/post"), usingThreshold: threshold)
    let echo = try await request.serializingDecodable(Echo.self).value
    #expect(echo.form == ["name": "value"])
    #expect(echo.files == ["file": "contents"])
    #expect(echo.headers["Content-Type"]?.hasPrefix("multipart/form-data; boundary=") == true)
    switch request.uploadable {
    case .data: #expect(threshold > 0)
    case .file(let url, let isRemoved):
      #expect(threshold == 0 && isRemoved)
      #expect(!FileManager.default.fileExists(atPath: url.path), "the file goes with the request")
    case .stream, nil: Issue.record("a form is not a stream")
    }
  }

  @Test("A form replaces the content type of its request") func contentType() async throws {
    var request = try URLRequest(url: server.url("/post"), method: .post)
    request.headers.add(.contentType("text/plain"))
    let form = MultipartFormData()
    Self.fill(form)
    let echo = try await session.upload(multipartFormData: form, with: request)
      .serializingDecodable(Echo.self).value
    #expect(echo.headers["Content-Type"] == form.contentType)
    #expect(echo.form == ["name": "value"])
  }

  @Test("An empty form is valid") func emptyForm() async throws {
    let echo = try await session.upload(multipartFormData: { _ in }, to: server.url("/post"))
      .serializingDecodable(Echo.self).value
    #expect(echo.form.isEmpty && echo.files.isEmpty)
  }

  @Test("A missing file of a form is an error") func missingFile() async throws {
    let response = await session.upload(
      multipartFormData: { $0.append(URL(fileURLWithPath: "/nowhere/a.txt"), withName: "f") },
      to: server.url("/post")
    ).end()
    #expect(response.error?.isMultipartEncodingError == true)
    #expect(server.requestCount == 0)
  }

  @Test("A retry encodes the form again") func retry() async throws {
    let replies = try HTTPTestServer(routes: .none)
    replies.enqueue(.status(503), .ok)
    let response = await session.upload(
      multipartFormData: Self.fill, to: replies.url("/"), usingThreshold: 0,
      interceptor: .retryPolicy(
        retryLimit: 1, exponentialBackoffScale: 0.001, retryableHTTPMethods: [.post])
    ).validate().end()
    #expect(response.error == nil)
    let bodies = replies.recordedRequests.map(\.bodyText)
    #expect(bodies.count == 2 && bodies[0] == bodies[1])
    #expect(bodies[0].contains("contents"))
  }

  private static func fillWithStream(_ form: MultipartFormData) {
    fill(form)
    form.append(
      InputStream(data: Data("streamed".utf8)), withLength: 8, name: "stream", fileName: "s.txt",
      mimeType: "text/plain")
  }

  /// Returns the path of the temporary file; `nil` for a form in memory.
  private func filePath(of request: UploadRequest) -> String? {
    if case .file(let url, _)? = request.uploadable { url.path } else { nil }
  }

  @Test("A form with a stream is sent again by retries", arguments: [UInt64.max, 0])
  func retryOfStream(threshold: UInt64) async throws {
    let replies = try HTTPTestServer(routes: .none)
    replies.enqueue(.status(503), .status(503), .ok)
    let request = session.upload(
      multipartFormData: Self.fillWithStream, to: replies.url("/"), usingThreshold: threshold,
      interceptor: .retryPolicy(
        retryLimit: 2, exponentialBackoffScale: 0.001, retryableHTTPMethods: [.post]))
    #expect(await request.validate().end().error == nil)
    let bodies = replies.recordedRequests.map(\.bodyText)
    #expect(bodies.count == 3 && Set(bodies).count == 1)
    #expect(bodies[0].contains("contents") && bodies[0].contains("streamed"))
    let path = filePath(of: request)
    #expect((path != nil) == (threshold == 0))
    if let path { #expect(!FileManager.default.fileExists(atPath: path), "the file goes with the request") }
  }

  @Test("The file of a form with a stream goes with a request that is cancelled before its retry")
  func cancelledRetry() async throws {
    let replies = try HTTPTestServer(routes: .none)
    replies.enqueue(.status(503))
    let files = Recorder<Bool>()
    let retrier = Retrier { request, _, _, completion in
      if case .file(let url, _)? = (request as? UploadRequest)?.uploadable {
        files.add(FileManager.default.fileExists(atPath: url.path))
      }
      request.cancel()
      completion(.retry)
    }
    let request = session.upload(
      multipartFormData: Self.fillWithStream, to: replies.url("/"), usingThreshold: 0,
      interceptor: Interceptor(adapters: [], retriers: [retrier]))
    #expect(await request.validate().end().error != nil)
    #expect(files.values == [true])
    let path = try #require(filePath(of: request))
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(replies.requestCount == 1)
  }

  @Test("The file of a resumable form goes with a request that is not sent") func unsentForm() async throws {
    let folder = try TemporaryFolder()
    let adapter = Adapter { _, _, completion in completion(.failure(TestError())) }
    let request = session.upload(
      multipartFormData: Self.fillWithStream, to: server.url("/post"), usingThreshold: 0,
      interceptor: Interceptor(adapters: [adapter], retriers: [SpyInterceptor(retries: 1)]),
      fileManager: FolderFileManager(folder)
    ).resumable()
    #expect(await request.end().error?.isRequestAdaptationError == true)
    #expect(request.retryCount == 1)
    #expect(try folder.names.filter { !$0.hasSuffix(".lock") } == [])
    #expect(server.requestCount == 0)
  }

  @Test("A form with a stream cannot be sent again after its end, because its file is gone")
  func sentAgain() async throws {
    let replies = try HTTPTestServer(routes: .none)
    replies.enqueue(.ok, .ok)
    let request = session.upload(
      multipartFormData: Self.fillWithStream, to: replies.url("/"), usingThreshold: 0)
    #expect(await request.end().error == nil)
    session.retryRequest(request, withDelay: nil)
    #expect(await request.end().error?.isMultipartEncodingError == true)
    let path = try #require(filePath(of: request))
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(replies.requestCount == 1)
  }
}
