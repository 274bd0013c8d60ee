import Alamofire
import Testing

private struct Search: Encodable {
  var b = "x y"
  var a = [2, 1]
}

private struct Failing: Encodable {
  struct Failure: Error {}
  func encode(to encoder: any Encoder) throws { throw Failure() }
}

struct JSONParameterEncoderTests {
  private func post(_ value: (some Encodable & Sendable)?, _ encoder: some ParameterEncoder) throws
    -> URLRequest
  {
    try encoder.encode(value, into: try URLRequest(url: "https://example.com/", method: .post))
  }

  @Test("The value becomes the body and its type")
  func body() throws {
    let request = try post(Search(), JSONParameterEncoder.sortedKeys)
    #expect(request.httpBody == Data(#"{"a":[2,1],"b":"x y"}"#.utf8))
    #expect(request.headers == ["Content-Type": "application/json"])
  }

  @Test("nil does not change the request")
  func nothing() throws {
    let request = try post(Search?.none, .json)
    #expect(request.httpBody == nil)
    #expect(request.headers.isEmpty)
  }

  @Test("An existing content type is preserved")
  func contentType() throws {
    var request = try URLRequest(url: "https://example.com/", method: .post)
    request.headers = [.contentType("application/custom")]
    #expect(try JSONParameterEncoder.default.encode(1, into: request).headers == request.headers)
  }

  @Test("The shorthands return encoders with their settings")
  func shorthands() throws {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    struct Named: Encodable { var oneTwo = 1 }
    #expect(try post(Named(), .json(encoder: encoder)).httpBody == Data(#"{"one_two":1}"#.utf8))
    #expect(try post([1], .json).httpBody == Data("[1]".utf8))
    #expect(try post([1], JSONParameterEncoder.prettyPrinted).httpBody?.contains(UInt8(ascii: "\n")) == true)
  }

  @Test("The shared shorthands are immutable")
  func freshEncoders() {
    JSONParameterEncoder.default.encoder.outputFormatting = .prettyPrinted
    #expect(JSONParameterEncoder.default.encoder.outputFormatting == [])
    URLEncodedFormParameterEncoder.default.encoder.allowedCharacters = .alphanumerics
    #expect(URLEncodedFormParameterEncoder.default.encoder.allowedCharacters == .afURLQueryAllowed)
    let form: String? = try? URLEncodedFormEncoder().encode(["a": "-_"])
    #expect(form == "a=-_")
  }

  @Test("A request without a URL is refused")
  func missingURL() throws {
    var request = try URLRequest(url: "https://example.com/", method: .post)
    request.url = nil
    let error = try #require(throws: AFError.self) {
      try JSONParameterEncoder.default.encode(["a": 1], into: request)
    }
    guard case .parameterEncoderFailed(.missingRequiredComponent(.url)) = error else {
      Issue.record("not the expected error: \(error)")
      return
    }
  }

  @Test("A failure is reported as parameterEncodingFailed")
  func failure() throws {
    let error = try #require(throws: AFError.self) { try post(Failing(), .json) }
    guard case .parameterEncodingFailed(.jsonEncodingFailed) = error else {
      Issue.record("not the expected error: \(error)")
      return
    }
    #expect(error.underlyingError is Failing.Failure)
  }
}

struct URLEncodedFormParameterEncoderTests {
  private func encode(
    _ value: (some Encodable & Sendable)?, _ method: HTTPMethod, url: String = "https://example.com/",
    _ encoder: URLEncodedFormParameterEncoder = .default
  ) throws -> URLRequest {
    try encoder.encode(value, into: try URLRequest(url: url, method: method))
  }

  @Test(
    "The destination follows the method",
    arguments: [
      (HTTPMethod.get, true), (.head, true), (.delete, true), (.post, false), (.put, false), (.patch, false),
      (.query, false),
    ])
  func destinationByMethod(method: HTTPMethod, inQuery: Bool) throws {
    let request = try encode(Search(), method)
    let form = "a%5B%5D=1&a%5B%5D=2&b=x%20y"
    #expect(request.url?.query(percentEncoded: true) == (inQuery ? form : nil))
    #expect(request.httpBody == (inQuery ? nil : Data(form.utf8)))
    #expect(
      request.headers["Content-Type"]
        == (inQuery ? nil : "application/x-www-form-urlencoded; charset=utf-8"))
  }

  @Test("The destination can be fixed")
  func fixedDestination() throws {
    let query = URLEncodedFormParameterEncoder(destination: .queryString)
    let body = URLEncodedFormParameterEncoder(destination: .httpBody)
    #expect(try encode(["a": 1], .post, query).url?.query == "a=1")
    #expect(try encode(["a": 1], .get, body).httpBody == Data("a=1".utf8))
  }

  @Test("An existing query is preserved, and an empty value adds nothing")
  func existingQuery() throws {
    #expect(
      try encode(["a": 1], .get, url: "https://example.com/?k=%5B1%5D").url?.absoluteString
        == "https://example.com/?k=%5B1%5D&a=1")
    #expect(try encode([String: Int](), .get).url?.absoluteString == "https://example.com/")
    #expect(try encode([String: Int](), .get, url: "https://example.com/?k").url?.query == "k")
    #expect(try encode([String: Int](), .post).httpBody == Data())
  }

  @Test("nil does not change the request")
  func nothing() throws {
    let request = try encode(Search?.none, .post)
    #expect(request.httpBody == nil)
    #expect(request.headers.isEmpty)
  }

  @Test("Characters that are invalid in a query are encoded even if they are allowed")
  func charactersThatCannotStandInAQuery() throws {
    let form = URLEncodedFormEncoder(
      allowedCharacters: CharacterSet(charactersIn: "\u{0}"..."\u{10FFFF}"))
    let value = ["k[]": "100% #é\"|"]
    let query = try encode(value, .get, URLEncodedFormParameterEncoder(encoder: form))
    #expect(query.url?.query(percentEncoded: true) == "k%5B%5D=100%25%20%23%C3%A9%22%7C")
    let body = try encode(value, .post, URLEncodedFormParameterEncoder(encoder: form))
    #expect(body.httpBody == Data("k[]=100%%20#%C3%A9\"|".utf8))
  }

  @Test("The shorthands return encoders with their settings")
  func shorthands() throws {
    let request = try URLRequest(url: "https://example.com/", method: .post)
    func body(_ encoder: some ParameterEncoder) throws -> String {
      String(decoding: try encoder.encode(["a": [true]], into: request).httpBody ?? Data(), as: UTF8.self)
    }
    #expect(try body(.urlEncodedForm) == "a%5B%5D=1")
    #expect(
      try body(.urlEncodedForm(encoder: URLEncodedFormEncoder(boolEncoding: .literal))) == "a%5B%5D=true")
    #expect(try body(.urlEncodedForm(destination: .queryString)) == "")
  }

  @Test("A request without a URL is refused")
  func missingURL() throws {
    var request = try URLRequest(url: "https://example.com/", method: .get)
    request.url = nil
    let error = try #require(throws: AFError.self) {
      try URLEncodedFormParameterEncoder.default.encode(["a": 1], into: request)
    }
    guard case .parameterEncoderFailed(.missingRequiredComponent(.url)) = error else {
      Issue.record("not the expected error: \(error)")
      return
    }
  }

  @Test("Failures of the value and of the root are reported as parameterEncoderFailed")
  func failures() throws {
    let failure = try #require(throws: AFError.self) { try encode(Failing(), .get) }
    #expect(failure.isParameterEncoderError)
    #expect(failure.underlyingError is Failing.Failure)
    let root = try #require(throws: AFError.self) { try encode([1], .get) }
    #expect(root.underlyingError is URLEncodedFormEncoder.Error)
    #expect(root.localizedDescription.contains("an array"))
  }
}

/// A session encodes in place where it can. That must not show.
@Suite("Encoders in requests of a session", .timeLimit(.minutes(2))) struct SessionEncoderTests {
  private final class OwnJSON: JSONParameterEncoder, @unchecked Sendable {
    override func encode<Parameters: Encodable>(_ parameters: Parameters?, into request: URLRequest) throws
      -> URLRequest
    {
      var request = try super.encode(parameters, into: request)
      request.headers.add(name: "X-Own", value: "json")
      return request
    }
  }

  private final class OwnForm: URLEncodedFormParameterEncoder, @unchecked Sendable {
    override func encode<Parameters: Encodable>(_ parameters: Parameters?, into request: URLRequest) throws
      -> URLRequest
    {
      var request = try super.encode(parameters, into: request)
      request.headers.add(name: "X-Own", value: "form")
      return request
    }
  }

  private func request(_ encoder: some ParameterEncoder, _ method: HTTPMethod) async -> URLRequest? {
    await Session.retained(fake: FakeTransport()).request(
      "http://a.test/?q=1", method: method, parameters: Search(), encoder: encoder, headers: ["X-A": "b"]
    ).end().request
  }

  @Test("An encoder gives the same in a session and by itself", arguments: [HTTPMethod.delete, .post])
  func same(method: HTTPMethod) async throws {
    let encoders: [any ParameterEncoder] = [
      JSONParameterEncoder.sortedKeys, URLEncodedFormParameterEncoder.default, OwnJSON(), OwnForm(),
      URLEncodedFormParameterEncoder(destination: .queryString),
    ]
    for encoder in encoders {
      let plain = try URLRequest(url: "http://a.test/?q=1", method: method, headers: ["X-A": "b"])
      let expected = try encoder.encode(Search(), into: plain)
      let sent = try #require(await request(encoder, method))
      #expect(sent.url == expected.url && sent.httpBody?.count == expected.httpBody?.count, "\(encoder)")
      #expect(sent.headers.dictionary == expected.headers.dictionary, "\(encoder)")
      let own = encoder is OwnJSON ? "json" : encoder is OwnForm ? "form" : nil
      #expect(sent.headers["X-Own"] == own, "a subclass is asked")
    }
  }

  @Test("An encoder that fails ends the request with its error") func failure() async {
    let session = Session.retained(fake: FakeTransport())
    let encoders: [any ParameterEncoder] = [
      JSONParameterEncoder.default, URLEncodedFormParameterEncoder.default,
    ]
    for encoder in encoders {
      let error = await session.request(
        "http://a.test/", method: .post, parameters: Failing(), encoder: encoder
      ).end().error
      let isJSON = encoder is JSONParameterEncoder
      #expect(error?.isParameterEncodingError == isJSON && error?.isParameterEncoderError == !isJSON)
      #expect(error?.underlyingError is Failing.Failure)
    }
  }
}
