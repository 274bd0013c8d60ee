import Alamofire
import Testing

struct JSONEncodingTests {
  private let request: URLRequest

  init() throws {
    request = try URLRequest(url: "https://example.com/", method: .post)
  }

  private func text(_ request: URLRequest) -> String? {
    request.httpBody.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("nil does not change the request")
  func nothing() throws {
    #expect(try JSONEncoding.default.encode(request, with: nil) == request)
    #expect(try JSONEncoding.default.encode(request) == request)
  }

  @Test("Parameters become the body and its type")
  func parameters() throws {
    let items: [any Sendable] = ["a", 1, true]
    let nested: Parameters = ["a": 1.0, "b": [1.5, 2]]
    let parameters: Parameters = [
      "foo": "bar", "baz": items, "qux": nested, "n": NSNull(), "u": UInt64.max,
    ]
    let encoded = try JSONEncoding(options: .sortedKeys).encode(request, with: parameters)
    #expect(
      text(encoded)
        == #"{"baz":["a",1,true],"foo":"bar","n":null,"qux":{"a":1,"b":[1.5,2]},"u":18446744073709551615}"#)
    #expect(encoded.headers == ["Content-Type": "application/json"])
  }

  @Test("Pretty-printed JSON has line breaks")
  func prettyPrinted() throws {
    let encoded = try JSONEncoding.prettyPrinted.encode(request, with: ["a": 1])
    #expect(text(encoded)?.contains("\n") == true)
    #expect(text(try JSONEncoding.default.encode(request, with: ["a": 1])) == #"{"a":1}"#)
  }

  @Test("The root can be an array")
  func arrayRoot() throws {
    let encoded = try JSONEncoding.default.encode(request, withJSONObject: ["a", 1, ["b": true]])
    #expect(text(encoded) == #"["a",1,{"b":true}]"#)
  }

  @Test("An existing content type is preserved")
  func contentType() throws {
    var request = request
    request.headers = ["content-TYPE": "application/custom+json"]
    let encoded = try JSONEncoding.default.encode(request, with: ["a": 1])
    #expect(encoded.headers == ["content-TYPE": "application/custom+json"])
  }

  @Test(
    "A value that JSON cannot represent is refused",
    arguments: [["d": Date()], ["d": Data()], ["d": Double.nan], ["d": ["x": Double.infinity]]]
      as [Parameters])
  func invalidObjects(parameters: Parameters) throws {
    let error = try #require(throws: AFError.self) {
      try JSONEncoding.default.encode(request, with: parameters)
    }
    #expect(error.isParameterEncodingError)
    guard case .parameterEncodingFailed(.jsonEncodingFailed(JSONEncoding.Error.invalidJSONObject)) = error
    else {
      Issue.record("not the expected error: \(error)")
      return
    }
    #expect(error.localizedDescription.contains("dates"))
  }

  @Test("A root that is neither an array nor a dictionary is refused")
  func invalidRoot() {
    #expect(throws: AFError.self) { try JSONEncoding.default.encode(request, withJSONObject: "text") }
  }

  @Test("A request without a URL is refused")
  func missingURL() throws {
    var request = request
    request.url = nil
    let error = try #require(throws: AFError.self) {
      try JSONEncoding.default.encode(request, with: ["a": 1])
    }
    guard case .parameterEncodingFailed(.missingURL) = error else {
      Issue.record("not the expected error: \(error)")
      return
    }
  }
}
