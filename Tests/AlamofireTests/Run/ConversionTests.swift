import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Conversion of values to requests", .timeLimit(.minutes(5)))
struct ConversionTests {
  let fake = FakeTransport()

  struct ThrowingRouter: URLRequestConvertible {
    var error: any Error & Sendable
    func asURLRequest() throws -> URLRequest { throw error }
  }

  @Test("An empty string is not a URL") func emptyString() async {
    let session = Session.retained(fake: fake)
    let response = await session.request("").end()
    guard case .invalidURL(let url)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(url as? String == "")
    #expect(response.request == nil)
    #expect(response.metrics?.transactionMetrics.isEmpty == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("An error of a router is wrapped unless it is an AFError") func routerError() async {
    let session = Session.retained(fake: fake)
    let response = await session.request(ThrowingRouter(error: TestError())).end()
    guard case .createURLRequestFailed(let error)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(error as? TestError == TestError())
    let other = await session.request(ThrowingRouter(error: AFError.explicitlyCancelled)).end()
    #expect(other.error?.isExplicitlyCancelledError == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("An error of a modifier is delivered to the handler") func modifierError() async {
    let session = Session.retained(fake: fake)
    let response = await session.request("http://a.test/", requestModifier: { _ in throw TestError() }).end()
    #expect(response.error?.isCreateURLRequestError == true)
    #expect(response.error?.underlyingError as? TestError == TestError())
  }

  @Test("A request without a URL fails, whatever would be added to it") func missingURL() async {
    // In a separate process, because Foundation ends the process that changes a copy of such a request.
    await #expect(processExitsWith: .success) {
      var bare = try URLRequest(url: "http://a.test/", method: .post)
      bare.httpBody = Data("body".utf8)
      bare.url = nil
      var query = try URLRequest(url: "http://a.test/", method: .get)
      query.url = nil
      let session = Session.retained(fake: FakeTransport())
      let body = AsyncStream<Data> { $0.finish() }
      let errors = [
        await session.request(bare).end().error,
        await session.request(bare, interceptor: .gzipCompressor).end().error,
        await session.upload(multipartFormData: { $0.append(Data(), withName: "a") }, with: bare).end().error,
        await session.upload(body, with: bare, length: 0).end().error,
        await session.upload(Data("body".utf8), with: bare).resumable(UploadFixture.options(.tus)).end()
          .error,
      ]
      for (index, error) in errors.enumerated() {
        #expect((error?.underlyingError as? URLError)?.code == .badURL, "\(index): \(error as Any)")
      }
      let segments = session.segmentedDownload(query, to: URL(fileURLWithPath: "/nowhere/file"))
      #expect(await segments.response.error != nil)
      await #expect(throws: AFError.self) {
        for try await _ in session.eventSourceRequest(query).events() {}
      }
    }
  }

  @Test("The modifier runs before the parameters are encoded") func modifierOrder() async {
    let session = Session.retained(fake: fake)
    let response = await session.request(
      "http://a.test/", parameters: ["a": 1],
      requestModifier: { request in
        request.url = URL(string: "http://b.test/x")
        request.timeoutInterval = 7
      }
    ).end()
    #expect(response.error == nil)
    #expect(fake.urls == ["http://b.test/x?a=1"])
    #expect(fake.requests.first?.idleTimeout == .seconds(7))
  }

  /// An encoding that contains what it writes.
  private struct OwnBody: ParameterEncoding {
    let calls = Recorder<Bool>()

    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
      calls.add(parameters == nil)
      var request = try urlRequest.asURLRequest()
      request.httpBody = Data("own".utf8)
      return request
    }
  }

  @Test("An encoding of the caller's is called for a request without parameters") func ownEncoding() async {
    let session = Session.retained(fake: fake)
    let encoding = OwnBody()
    let request = session.request("http://a.test/", method: .post, encoding: encoding)
    #expect(await request.end().error == nil)
    let download = session.download("http://a.test/", method: .post, encoding: encoding)
    let response = await download.ended()
    response.removeFile()
    #expect(response.error == nil)
    #expect(fake.requests.map { $0.body.bytes } == [Data("own".utf8), Data("own".utf8)])
    #expect(encoding.calls.values == [true, true])
  }

  @Test("The built-in encodings leave a request without parameters unchanged") func builtInEncodings() async {
    let session = Session.retained(fake: fake)
    let encodings: [any ParameterEncoding] = [
      URLEncoding.default, URLEncoding.httpBody, JSONEncoding.default,
    ]
    for encoding in encodings {
      #expect(await session.request("http://a.test/?a", method: .post, encoding: encoding).end().error == nil)
    }
    #expect(fake.urls == ["http://a.test/?a", "http://a.test/?a", "http://a.test/?a"])
    #expect(fake.requests.allSatisfy { !$0.body.isPresent && $0.value("Content-Type") == nil })
  }

  private struct ThrowingEncoding: ParameterEncoding, ParameterEncoder {
    var error: any Error & Sendable

    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
      throw error
    }

    func encode<Value: Encodable & Sendable>(_ parameters: Value?, into request: URLRequest) throws
      -> URLRequest
    {
      throw error
    }
  }

  @Test("An error of an encoding or an encoder is wrapped unless it is an AFError") func encoderErrors() async
  {
    let session = Session.retained(fake: fake)
    func errors(_ error: any Error & Sendable) async -> [AFError?] {
      let throwing = ThrowingEncoding(error: error)
      return [
        await session.request("http://a.test/", parameters: ["a": 1], encoding: throwing).end().error,
        await session.request("http://a.test/", parameters: ["a": "1"], encoder: throwing).end().error,
      ]
    }
    for error in await errors(TestError()) {
      #expect(error?.isCreateURLRequestError == true)
      #expect(error?.underlyingError as? TestError == TestError())
    }
    let own = AFError.parameterEncodingFailed(reason: .customEncodingFailed(error: TestError()))
    for error in await errors(own) { #expect(error?.isParameterEncodingError == true) }
    #expect(fake.requests.isEmpty)
  }

  @Test("A GET with a body is refused unless it is allowed") func bodyOfGET() async throws {
    let session = Session.retained(fake: fake)
    var request = try URLRequest(url: "http://a.test/", method: .get)
    request.httpBody = Data("x".utf8)
    let refused = await session.request(request).end()
    guard case .urlRequestValidationFailed(.bodyDataInGETRequest(let data))? = refused.error else {
      Issue.record("\(String(describing: refused.error))")
      return
    }
    #expect(data == Data("x".utf8))
    #expect(fake.requests.isEmpty)

    let allowed = await session.request(request).transportOptions { $0.allowsBodyInGETRequests = true }.end()
    #expect(allowed.error == nil)
    #expect(fake.requests.last?.body.bytes == Data("x".utf8))
    #expect(fake.requests.last?.method == "GET")

    let upload = await session.upload(Data("y".utf8), to: "http://a.test/", method: .get).end()
    #expect(upload.error == nil, "only the body of the request itself is looked at")
    #expect(fake.requests.last?.body.bytes == Data("y".utf8) && fake.requests.last?.method == "GET")

    var options = TransportOptions()
    options.allowsBodyInGETRequests = true
    #expect(await Session.retained(fake: fake, options: options).request(request).end().error == nil)
  }

  static let unusable: [(String, URLError.Code)] = [
    ("/invalid/path", .unsupportedURL), ("invalid", .unsupportedURL), ("ftp://a.test/x", .unsupportedURL),
    ("gopher://example.com/1", .unsupportedURL), ("http:///x", .badURL), ("mailto:a@b.test", .unsupportedURL),
    ("http://", .badURL), ("//a.test/x", .unsupportedURL), ("?q", .unsupportedURL),
    ("http://a.test:99999/", .badURL),
  ]

  @Test("A URL that cannot be requested ends with its error code", arguments: unusable)
  func urls(url: String, code: URLError.Code) async {
    let response = await Session.retained(fake: fake).request(url).end()
    guard case .sessionTaskFailed(let error as URLError)? = response.error else {
      Issue.record("\(url): \(String(describing: response.error))")
      return
    }
    #expect(error.code == code)
    #expect(!error.localizedDescription.isEmpty)
    #expect(fake.requests.isEmpty)
  }

  @Test(
    "A field with a line break is refused",
    arguments: [
      ("X-A", "one\r\nX-B: two"), ("X-A", "one\ntwo"), ("X-A", "a\0b"), ("X A", "b"), ("", "b"), ("X-Ä", "b"),
    ])
  func fields(name: String, value: String) async {
    let response = await Session.retained(fake: fake).request("http://a.test/", headers: [name: value]).end()
    guard case .sessionTaskFailed(let error as URLError)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(error.code == .badURL)
    #expect(!error.localizedDescription.contains("two"), "the value may be a secret")
    #expect(fake.requests.isEmpty)
  }

  @Test("A method that is not a token is refused", arguments: ["", "GE T", "GET / HTTP/1.1\r\nX: y", "Ä"])
  func methods(method: String) async {
    let response = await Session.retained(fake: fake).request(
      "http://a.test/", method: HTTPMethod(rawValue: method)
    ).end()
    // Foundation replaces an empty method by GET.
    if method.isEmpty, response.error == nil {
      #expect(fake.requests.first?.method == "GET")
      return
    }
    #expect((response.error?.underlyingError as? URLError)?.code == .badURL)
    #expect(fake.requests.isEmpty)
  }

  @Test("A relative URL is resolved against its base") func relativeURL() async throws {
    let base = try #require(URL(string: "http://a.test/b/c"))
    let url = try #require(URL(string: "d?e", relativeTo: base))
    let session = Session.retained(fake: fake)
    #expect(await session.request(url).end().error == nil)
    #expect(await session.request(url, parameters: ["a": 1]).end().error == nil)
    #expect(await session.request(url, parameters: ["a": "1"], encoder: .urlEncodedForm).end().error == nil)
    #expect(fake.urls == ["http://a.test/b/d?e", "http://a.test/b/d?e&a=1", "http://a.test/b/d?e&a=1"])
  }

  @Test("The URL of the response has the fragment of the request") func fragment() async {
    let response = await Session.retained(fake: fake).request("http://a.test/b#part").end()
    #expect(response.response?.url?.absoluteString == "http://a.test/b#part")
  }

  @Test("Each attempt converts the request anew") func conversionOfAttempts() async {
    let count = Recorder<Void>()
    struct Router: URLRequestConvertible {
      let count: Recorder<Void>
      func asURLRequest() throws -> URLRequest {
        count.add(())
        return try URLRequest(url: "http://a.test/\(count.count)", method: .get)
      }
    }
    let fake = FakeTransport(.failure(.connectionLost))
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1)).request(
      Router(count: count))
    let response = await request.end()
    #expect(response.error == nil)
    #expect(fake.urls == ["http://a.test/1", "http://a.test/2"])
    #expect(request.requests.map(\.url?.absoluteString) == ["http://a.test/1", "http://a.test/2"])
    #expect(request.firstRequest?.url?.path == "/1")
    #expect(request.lastRequest?.url?.path == "/2")
    #expect(request.request == request.lastRequest)
  }

  @Test("A failed conversion is offered to retriers") func retryOfConversion() async {
    let spy = SpyInterceptor(retries: 1)
    let response = await Session.retained(fake: fake, interceptor: spy).request("").end()
    #expect(response.error?.isInvalidURLError == true)
    #expect(spy.retryCount == 2)
    #expect(spy.adaptCount == 0)
  }
}
