import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct UploadTests {
  private let server: HTTPTestServer
  private let session = Session.real()

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }) }

  private func file(_ data: Data) throws -> URL {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("upload-\(UUID().uuidString)")
    try data.write(to: url)
    return url
  }

  private func code(_ response: AFDataResponse<Data?>) -> URLError.Code? {
    (response.error?.underlyingError as? URLError)?.code
  }

  @Test("Data is sent and is not the body of the request") func data() async throws {
    server.enqueue(.text("thanks"))
    let body = bytes(200_000)
    let request = session.upload(body, to: server.url("/"))
    let response = await request.end()
    #expect(response.data == Data("thanks".utf8))
    let seen = try await server.takeRequest()
    #expect(seen.method == "POST")
    #expect(Data(seen.body) == body)
    #expect(seen.header("Content-Type") == nil)
    #expect(response.request?.httpBody == nil)
    guard case .data(body) = request.uploadable else {
      Issue.record("the uploadable is what was given")
      return
    }
    #expect(request.uploadProgress.fractionCompleted == 1)
  }

  @Test("The upload replaces the body of the request") func bodyOfRequest() async throws {
    server.enqueue(.ok)
    var request = try URLRequest(url: server.url("/"), method: .put)
    request.httpBody = Data("not this".utf8)
    _ = await session.upload(Data("this".utf8), with: request).end()
    let seen = try await server.takeRequest()
    #expect(seen.bodyText == "this")
    #expect(seen.method == "PUT")
  }

  @Test("A file is sent and not removed") func file() async throws {
    server.enqueue(.ok)
    let body = bytes(1_000_000)
    let url = try file(body)
    defer { try? FileManager.default.removeItem(at: url) }
    let fractions = Recorder<Double>()
    let response = await session.upload(url, to: server.url("/"))
      .uploadProgress(queue: .global()) { fractions.add($0.fractionCompleted) }.end()
    #expect(response.error == nil)
    #expect(Data(try await server.takeRequest().body) == body)
    #expect(FileManager.default.fileExists(atPath: url.path))
    #expect(!fractions.values.isEmpty)
  }

  @Test("A temporary file is removed with the request") func temporaryFile() async throws {
    server.enqueue(.ok)
    let url = try file(bytes(10))
    _ = await session.upload(TemporaryUpload(url: url), request: server.url("/")).end()
    #expect(try await server.takeRequest().body.count == 10)
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }

  @Test("A missing file is an error with its path") func missingFile() async throws {
    let response = await session.upload(URL(fileURLWithPath: "/nowhere/file"), to: server.url("/")).end()
    #expect(code(response) == .fileDoesNotExist)
    #expect(response.error?.localizedDescription.contains("/nowhere/file") == true)
    #expect(server.requestCount == 0)
  }

  @Test("A folder and a web address are not files") func notAFile() async throws {
    let folder = await session.upload(FileManager.default.temporaryDirectory, to: server.url("/")).end()
    #expect(code(folder) == .fileIsDirectory)
    let web = try #require(URL(string: "https://example.com/file"))
    #expect(code(await session.upload(web, to: server.url("/")).end()) == .badURL)
    #expect(server.requestCount == 0)
  }

  @Test("A stream is sent in chunks") func stream() async throws {
    server.enqueue(.ok)
    let body = bytes(500_000)
    let response = await session.upload(InputStream(data: body), to: server.url("/")).end()
    #expect(response.error == nil)
    let seen = try await server.takeRequest()
    #expect(Data(seen.body) == body)
    #expect(seen.isChunked)
  }

  @Test("A stream with a length is sent with Content-Length") func streamWithLength() async throws {
    server.enqueue(.ok)
    let stream = InputStream(data: bytes(1000))
    _ = await session.upload(stream, to: server.url("/"), headers: ["Content-Length": "1000"]).end()
    let seen = try await server.takeRequest()
    #expect(seen.body.count == 1000)
    #expect(!seen.isChunked)
    #expect(seen.header("Content-Length") == "1000")
  }

  // The stream is read in pieces of 65,536 bytes.
  @Test(
    "A stream of another length is an error",
    arguments: [(900, 1000, "longer"), (1100, 1000, "shorter"), (65_536, 70_000, "longer")])
  func wrongLength(length: Int, count: Int, word: String) async throws {
    server.enqueue(.ok)
    let stream = InputStream(data: bytes(count))
    let headers: HTTPHeaders = ["Content-Length": String(length)]
    let response = await session.upload(stream, to: server.url("/"), headers: headers).end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(response.error?.localizedDescription.contains(word) == true)
  }

  @Test(
    "Nothing is sent of a request whose stream is announced as empty and is not",
    arguments: ["upload", "body", "redirect"])
  func announcedAsEmpty(way: String) async throws {
    let headers: HTTPHeaders = ["Content-Length": "0"]
    let request: DataRequest
    switch way {
    case "body":
      var post = try URLRequest(url: server.url("/"), method: .post, headers: headers)
      post.httpBodyStream = InputStream(data: bytes(10))
      request = session.request(post)
    case "redirect":
      server.enqueue(.redirect(to: "/there", status: 303))
      request = session.request(server.url("/"))
        .redirect(
          using: .modify { _, next, _ in
            var next = next
            next.method = .put
            next.headers = headers
            next.httpBodyStream = InputStream(data: Data("more".utf8))
            return next
          })
    default: request = session.upload(InputStream(data: bytes(10)), to: server.url("/"), headers: headers)
    }
    server.enqueue(.ok)
    let response = await request.end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(response.error?.localizedDescription.contains("longer") == true)
    #expect(server.recordedRequests.map(\.method) == (way == "redirect" ? ["GET"] : []))
  }

  @Test("An empty stream is sent with the length 0") func emptyStream() async throws {
    server.enqueue(.ok)
    let headers: HTTPHeaders = ["Content-Length": "0"]
    let response = await session.upload(InputStream(data: Data()), to: server.url("/"), headers: headers)
      .end()
    #expect(response.error == nil)
    let seen = try await server.takeRequest()
    #expect(seen.body.isEmpty && !seen.isChunked && seen.header("Content-Length") == "0")
  }

  @Test("A stream that cannot be opened is an error", arguments: [nil, "0"])
  func unopenableStream(length: String?) async throws {
    server.enqueue(.ok)
    let stream = try #require(InputStream(fileAtPath: "/nowhere/file"))
    let headers: HTTPHeaders? = length.map { ["Content-Length": $0] }
    let response = await session.upload(stream, to: server.url("/"), headers: headers).end()
    #expect(code(response) == .requestBodyStreamExhausted)
    let text = response.error?.localizedDescription ?? ""
    #expect(text.contains("could not be read: No such file or directory."), "\(text)")
    if length != nil { #expect(server.requestCount == 0) }
  }

  @Test("The body stream of a request is sent") func bodyStream() async throws {
    server.enqueue(.ok)
    var request = try URLRequest(url: server.url("/"), method: .post)
    request.httpBodyStream = InputStream(data: Data("from a stream".utf8))
    let response = await session.request(request).end()
    #expect(response.error == nil)
    #expect(try await server.takeRequest().bodyText == "from a stream")
  }

  @Test("A stream that blocks does not delay other requests") func blockingStream() async throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let stream = try #require(InputStream(fileAtPath: "/dev/fd/\(ends[0])"))
    server.enqueue(.text("slow"))
    async let slow = session.upload(stream, to: server.url("/")).end()
    let other = try HTTPTestServer(routes: .none)
    other.enqueue(.text("other"))
    #expect(await session.request(other.url("/")).end().data == Data("other".utf8))
    let text = Array("late".utf8)
    #expect(write(ends[1], text, text.count) == text.count)
    close(ends[1])
    #expect(await slow.data == Data("slow".utf8))
    #expect(try await server.takeRequest().bodyText == "late")
    close(ends[0])
  }

  @Test("A redirect that preserves the body sends a file again and not a stream") func redirect() async throws
  {
    let url = try file(bytes(100))
    defer { try? FileManager.default.removeItem(at: url) }
    server.enqueue(.redirect(to: "/there", status: 307), .ok)
    #expect(await session.upload(url, to: server.url("/")).end().error == nil)
    #expect(server.recordedRequests.map(\.body.count) == [100, 100])
    server.enqueue(.redirect(to: "/there", status: 307), .ok)
    let response = await session.upload(InputStream(data: bytes(100)), to: server.url("/")).end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(response.error?.localizedDescription.contains("can be read once") == true)
    #expect(server.requestCount == 3)
  }

  @Test("A retry creates the body again") func retry() async throws {
    server.enqueue(.status(503), .ok)
    let numbers = Numbered()
    let response = await session.upload(
      numbers, request: server.url("/"), interceptor: RetryOnce()
    ).validate().end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map(\.bodyText) == ["body 1", "body 2"])
  }

  @Test("A file that is removed after the upload is there for a retry", arguments: [false, true])
  func retryOfTemporaryFile(isConvertible: Bool) async throws {
    server.enqueue(.status(503), .ok)
    let url = try file(bytes(100))
    let request =
      isConvertible
      ? session.upload(TemporaryUpload(url: url), request: server.url("/"), interceptor: RetryOnce())
      : session.upload(
        UploadRequest.Uploadable.file(url, shouldRemove: true), request: server.url("/"),
        interceptor: RetryOnce())
    #expect(await request.validate().end().error == nil)
    #expect(server.recordedRequests.map(\.body.count) == [100, 100])
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }

  @Test("A file that is removed after the upload is there for a retry after a failed serializer")
  func retryOfSerializer() async throws {
    server.enqueue(.text("{"), .text("[1]"))
    let url = try file(bytes(100))
    let retrier = Retrier { request, _, _, completion in
      completion(request.retryCount == 0 ? .retry : .doNotRetry)
    }
    let request = session.upload(
      UploadRequest.Uploadable.file(url, shouldRemove: true), request: server.url("/"),
      interceptor: Interceptor(adapters: [], retriers: [retrier]))
    let values = Recorder<[Int]?>()
    request.response(queue: .global()) { _ in values.add([]) }
    request.responseDecodable(of: [Int].self, queue: .global()) { values.add($0.value) }
    #expect(await values.wait(for: 2) == [[], [1]])
    #expect(server.recordedRequests.map(\.body.count) == [100, 100])
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }

  @Test("A form with a stream is sent again after a failed serializer") func retryOfForm() async throws {
    server.enqueue(.text("{"), .text("[1]"))
    let retrier = Retrier { request, _, _, completion in
      completion(request.retryCount == 0 ? .retry : .doNotRetry)
    }
    let request = session.upload(
      multipartFormData: {
        $0.append(
          InputStream(data: Data("streamed".utf8)), withLength: 8, name: "a", fileName: "b", mimeType: "c/d")
      }, to: server.url("/"), usingThreshold: 0, interceptor: Interceptor(adapters: [], retriers: [retrier]))
    #expect(await request.serializingDecodable([Int].self).response.value == [1])
    let bodies = server.recordedRequests.map(\.bodyText)
    #expect(bodies.count == 2 && bodies[0] == bodies[1] && bodies[0].contains("streamed"))
  }

  @Test("The file of each attempt is removed when the next one has another") func filesOfAttempts()
    async throws
  {
    server.enqueue(.status(503), .ok)
    let urls = [try file(bytes(1)), try file(bytes(2))]
    let made = Recorder<URL>()
    let upload = MadeUpload {
      made.add(urls[min(made.count, 1)])
      return .file(urls[made.count - 1], shouldRemove: true)
    }
    let retrier = Retrier { _, _, _, completion in completion(made.count < 2 ? .retry : .doNotRetry) }
    let response = await session.upload(
      upload, request: server.url("/"), interceptor: Interceptor(adapters: [], retriers: [retrier])
    ).validate().end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map(\.body.count) == [1, 2])
    #expect(urls.allSatisfy { !FileManager.default.fileExists(atPath: $0.path) })
  }

  @Test("A retry can write its file to the path of the last attempt") func fixedPath() async throws {
    server.enqueue(.status(503), .ok)
    let url = try file(bytes(1))
    try FileManager.default.removeItem(at: url)
    let upload = MadeUpload {
      let form = MultipartFormData()
      form.append(Data("value".utf8), withName: "name")
      // It refuses to replace a file.
      try form.writeEncodedData(to: url)
      return .file(url, shouldRemove: true)
    }
    let retrier = Retrier { request, _, _, completion in
      completion(request.retryCount == 0 ? .retry : .doNotRetry)
    }
    let response = await session.upload(
      upload, request: server.url("/"), interceptor: Interceptor(adapters: [], retriers: [retrier])
    ).validate().end()
    #expect(response.error == nil && server.requestCount == 2)
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }

  @Test("A body that cannot be created is an error") func creationFailure() async throws {
    struct Broken: UploadableConvertible {
      struct Reason: Error {}
      func createUploadable() throws -> UploadRequest.Uploadable { throw Reason() }
    }
    let response = await session.upload(Broken(), request: server.url("/")).end()
    guard case .createUploadableFailed(let error)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(error is Broken.Reason)
    #expect(server.requestCount == 0)
  }
}

/// A file that is removed after the upload.
private struct TemporaryUpload: UploadableConvertible {
  let url: URL
  func createUploadable() throws -> UploadRequest.Uploadable { .file(url, shouldRemove: true) }
}

/// A body that a closure makes for each attempt.
private struct MadeUpload: UploadableConvertible {
  let make: @Sendable () throws -> UploadRequest.Uploadable
  func createUploadable() throws -> UploadRequest.Uploadable { try make() }
}

private final class Numbered: UploadableConvertible {
  private let count = Recorder<Int>()
  func createUploadable() throws -> UploadRequest.Uploadable {
    count.add(1)
    return .data(Data("body \(count.count)".utf8))
  }
}

private struct RetryOnce: RequestInterceptor {
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    completion(request.retryCount == 0 ? .retry : .doNotRetry)
  }
}

private struct Post: URLRequestConvertible {
  let url: String

  func asURLRequest() throws -> URLRequest { try URLRequest(url: url, method: .post) }
}

extension Session {
  /// Uploads a value of the test.
  fileprivate func upload(
    _ body: any UploadableConvertible, request url: String, interceptor: (any RequestInterceptor)? = nil
  ) -> UploadRequest {
    upload(body, with: Post(url: url), interceptor, nil, .default)
  }
}
