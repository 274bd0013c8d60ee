import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Factories", .timeLimit(.minutes(5))) struct FactoryTests {
  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  private struct Signature: RequestAdapter {
    let threads: Notes<ObjectIdentifier>
    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
      threads.add(ObjectIdentifier(Thread.current))
      var urlRequest = urlRequest
      urlRequest.setValue("signed", forHTTPHeaderField: "X-Signature")
      return urlRequest
    }
  }

  @Test("Request and task exist when the factory returns") func requestAndTask() async {
    let threads = Notes<ObjectIdentifier>()
    manager.adapter = Signature(threads: threads)
    let (request, thread) = made()
    #expect(threads.all == [thread])
    #expect(request.request?.value(forHTTPHeaderField: "X-Signature") == "signed")
    #expect(request.task?.originalRequest?.value(forHTTPHeaderField: "X-Signature") == "signed")
    #expect(request.description == "GET \(server.url("/get"))")
    let response = await request.ended()
    #expect(response.response?.statusCode == 200)
    #expect(request.description == "GET \(server.url("/get")) (200)")
  }

  /// Synchronous, so that it stays on one thread.
  private func made() -> (DataRequest, ObjectIdentifier) {
    (manager.request(server.url("/get")), ObjectIdentifier(Thread.current))
  }

  @Test("A request without handlers is sent") func noHandlers() async throws {
    manager.request(server.url("/anything?x=1"))
    let recorded = try await server.takeRequest()
    #expect(recorded.target == "/anything?x=1")
  }

  @Test("A paused manager sends no request before resume") func pausedManager() async throws {
    manager.startRequestsImmediately = false
    let request = manager.request(server.url("/get?paused"))
    async let response = request.ended()
    manager.startRequestsImmediately = true
    _ = await manager.request(server.url("/get?other")).ended()
    #expect(server.recordedRequests.map(\.target) == ["/get?other"])
    request.resume()
    #expect(await response.response?.statusCode == 200)
    #expect(server.recordedRequests.map(\.target) == ["/get?other", "/get?paused"])
  }

  /// A manager that overrides the methods that take a `URLRequestConvertible`.
  private final class Signing: SessionManager, @unchecked Sendable {
    let calls = Notes<String>()

    private func signed(_ convertible: any URLRequestConvertible, _ name: String) throws -> URLRequest {
      calls.add(name)
      var request = try convertible.asURLRequest()
      request.setValue("signed", forHTTPHeaderField: "X-Signature")
      return request
    }

    override func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
      super.request((try? signed(urlRequest, "request")) ?? urlRequest)
    }

    override func download(
      _ urlRequest: any URLRequestConvertible,
      to destination: DownloadRequest.DownloadFileDestination? = nil
    ) -> DownloadRequest {
      super.download((try? signed(urlRequest, "download")) ?? urlRequest, to: destination)
    }

    override func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
      super.upload(fileURL, with: (try? signed(urlRequest, "file")) ?? urlRequest)
    }

    override func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
      super.upload(data, with: (try? signed(urlRequest, "data")) ?? urlRequest)
    }

    override func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible) -> UploadRequest {
      super.upload(stream, with: (try? signed(urlRequest, "stream")) ?? urlRequest)
    }

    override func upload(
      multipartFormData: @escaping (MultipartFormData) -> Void, usingThreshold threshold: UInt64,
      with urlRequest: any URLRequestConvertible, queue: DispatchQueue?,
      encodingCompletion: ((MultipartFormDataEncodingResult) -> Void)?
    ) {
      super.upload(
        multipartFormData: multipartFormData, usingThreshold: threshold,
        with: (try? signed(urlRequest, "form")) ?? urlRequest, queue: queue,
        encodingCompletion: encodingCompletion)
    }
  }

  @Test("A method that takes a URL calls the overridden method") func overriddenFactories() async throws {
    let manager = Signing(configuration: .isolated)
    let (url, file) = (server.url("/upload-sink"), URL(fileURLWithPath: "/proc/self/comm"))
    let stream = InputStream(data: Data("body".utf8))
    let requests: [DataRequest] = [
      manager.upload(file, to: url), manager.upload(Data(), to: url), manager.upload(stream, to: url),
      manager.request(server.url("/get"), parameters: ["a": 1]),
    ]
    for request in requests {
      _ = await request.ended()
      #expect(request.request?.value(forHTTPHeaderField: "X-Signature") == "signed")
    }
    _ = await manager.download(server.url("/get"), parameters: ["a": 1]).endedWithoutFile()
    #expect(manager.calls.all == ["file", "data", "stream", "request", "download"])
    let form: SessionManager.MultipartFormDataEncodingResult = await awaited { done in
      manager.upload(
        multipartFormData: { $0.append(Data("v".utf8), withName: "k") }, to: url,
        queue: .global(), encodingCompletion: { done(UncheckedBox(value: $0)) })
    }
    guard case .success(let upload, _, _) = form else {
      Issue.record("\(form)")
      return
    }
    _ = await upload.ended()
    #expect(upload.request?.value(forHTTPHeaderField: "X-Signature") == "signed")
    #expect(manager.calls.all.suffix(2) == ["form", "data"])
    #expect(await manager.request("").ended().error is AFError)
    #expect(manager.calls.count == 7, "an invalid URL makes no request")
  }

  @Test("Invalid arguments are reported to the handlers") func invalidArguments() async {
    let invalid = await manager.request("").ended()
    guard case .invalidURL(let url)? = invalid.error as? AFError else {
      Issue.record("\(String(describing: invalid.error))")
      return
    }
    #expect(url as? String == "")
    #expect(invalid.request == nil && invalid.response == nil)
    let encoded = await manager.request(
      server.url("/post"), method: .post, parameters: ["a": Date()], encoding: JSONEncoding.default
    ).ended()
    #expect((encoded.error as? AFError)?.isParameterEncodingError == true)
  }

  @Test("Errors of routers are delivered unchanged and are not retried") func routerErrors() async {
    struct Refusal: Error {}
    struct Router: URLRequestConvertible {
      func asURLRequest() throws -> URLRequest { throw Refusal() }
    }
    let retrier = ScriptedRetrier { _, _ in (true, 0) }
    manager.retrier = retrier
    let request = manager.request(Router())
    let error = await request.ended().error
    #expect(error is Refusal && retrier.calls.count == 0)
    #expect(request.description == "" && request.task == nil)
    #expect(request.debugDescription.hasPrefix("$ curl"))
  }

  @Test("Parameters and header fields are sent") func parameters() async throws {
    let parameters: Parameters = ["foo": "bar", "list": [1, 2]]
    _ = await manager.request(server.url("/get"), parameters: parameters, headers: ["X-A": "b"]).ended()
    let first = try await server.takeRequest()
    #expect(first.target == "/get?foo=bar&list%5B%5D=1&list%5B%5D=2" && first.header("X-A") == "b")
    _ = await manager.request(
      server.url("/post"), method: .post, parameters: ["a": [1, 2]], encoding: JSONEncoding.default
    ).ended()
    let second = try await server.takeRequest()
    #expect(second.header("Content-Type") == "application/json")
    #expect(String(decoding: second.body, as: UTF8.self) == #"{"a":[1,2]}"#)
  }

  @Test("A GET can have a body") func bodyOfGET() async throws {
    let response = await manager.request(
      server.url("/anything"), parameters: ["a": "b"], encoding: URLEncoding.httpBody
    ).ended()
    #expect(response.error == nil)
    let recorded = try await server.takeRequest()
    #expect(recorded.method == "GET" && String(decoding: recorded.body, as: UTF8.self) == "a=b")
  }

  @Test("The cURL command matches the generation") func curl() async throws {
    let get = manager.request(server.url("/get"), headers: ["X-Quote": "a\"b"])
    let text = get.debugDescription
    #expect(text.hasPrefix("$ curl -v \\\n\t") && !text.contains("-X"))
    #expect(text.hasSuffix(" \\\n\t\"\(server.url("/get"))\"") && text.contains(#"-H "X-Quote: a\"b""#))
    let post = manager.request(server.url("/post"), method: .post, parameters: ["a": "b"])
    #expect(post.debugDescription.contains(" \\\n\t-X POST \\\n\t"))
    #expect(post.debugDescription.contains(#"-d "a=b""#))
    var own = URLRequest(url: try server.url("/get").asURL())
    own.httpMethod = "GETALL"
    let other = manager.request(own)
    #expect(other.debugDescription.hasPrefix("$ curl -v \\\n\t-X GETALL \\\n\t"))
    _ = await (get.ended(), post.ended(), other.ended())
  }

  @Test("The default header fields match the generation") func defaultHeaders() async throws {
    let fields = SessionManager.defaultHTTPHeaders
    #expect(fields["Accept-Encoding"] == "gzip;q=1.0, compress;q=0.5" && fields.count == 3)
    #expect(fields["User-Agent"]?.contains("Alamofire/") == true)
    let manager = SessionManager.isolated { $0.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders }
    _ = await manager.request(server.url("/get")).ended()
    #expect(try await server.takeRequest().header("Accept-Encoding") == "gzip;q=1.0, compress;q=0.5")
  }

  @Test("The namespace uses the default manager") func namespace() async {
    let text = await Alamofire.request(server.url("/get"), headers: ["Cache-Control": "no-store"]).text()
    #expect(text.result.isSuccess)
    let upload = await Alamofire.upload(Data("abc".utf8), to: server.url("/post")).ended()
    #expect(upload.error == nil && upload.response?.statusCode == 200)
    let download = await Alamofire.download(server.url("/bytes/10")).endedWithoutFile()
    #expect(download.temporaryURL != nil && download.destinationURL == nil)
  }
}

/// Answers as a closure says, and notes what it was asked.
final class ScriptedRetrier: RequestRetrier, Sendable {
  struct Question: @unchecked Sendable {
    let request: Request
    let error: any Error
    let count: UInt
    let status: Int?
  }

  let calls = Notes<Question>()
  private let answer: @Sendable (any Error, UInt) -> (Bool, TimeInterval)

  init(_ answer: @escaping @Sendable (any Error, UInt) -> (Bool, TimeInterval)) { self.answer = answer }

  func should(
    _ manager: SessionManager, retry request: Request, with error: any Error,
    completion: @escaping RequestRetryCompletion
  ) {
    let status = (request.task?.response as? HTTPURLResponse)?.statusCode
    calls.add(Question(request: request, error: error, count: request.retryCount, status: status))
    let (again, delay) = answer(error, request.retryCount)
    completion(again, delay)
  }
}
