import AlamofireV3
import Foundation
import FoundationNetworking
import Testing

@Suite struct ParameterEncodingTests {
  private func encode(
    _ encoding: ParameterEncoding, _ parameters: [String: Any]?, method: String = "GET",
    url: String = "http://example.com/"
  ) throws -> (url: String, body: String?, type: String?, error: NSError?) {
    let request = NSMutableURLRequest(url: try #require(URL(string: url)))
    request.httpMethod = method
    let (encoded, error) = encoding.encode(request, parameters: parameters)
    return (
      encoded.url?.absoluteString ?? "", encoded.httpBody.map { String(decoding: $0, as: UTF8.self) },
      encoded.value(forHTTPHeaderField: "Content-Type"), error
    )
  }

  @Test(
    "The method decides between query and body",
    arguments: [
      ("GET", true), ("HEAD", true), ("DELETE", true), ("POST", false), ("PUT", false), ("PATCH", false),
    ])
  func destination(method: String, isQuery: Bool) throws {
    let form = try encode(.URL, ["b": "2", "a": 1], method: method)
    #expect(form.url == (isQuery ? "http://example.com/?a=1&b=2" : "http://example.com/"))
    #expect(form.body == (isQuery ? nil : "a=1&b=2"))
    #expect(form.type == (isQuery ? nil : "application/x-www-form-urlencoded; charset=utf-8"))
    let inURL = try encode(.URLEncodedInURL, ["a": 1], method: method)
    #expect(inURL.url == "http://example.com/?a=1")
    #expect(inURL.body == nil)
  }

  @Test("Values are encoded by their types") func types() throws {
    let parameters: [String: Any] = ["foo": "bar", "baz": ["a", 1], "qux": ["x": 1, "y": 2, "z": 3]]
    let body = try encode(.URL, parameters, method: "POST").body
    #expect(
      body == "baz%5B%5D=a&baz%5B%5D=1&foo=bar&qux%5Bx%5D=1&qux%5By%5D=2&qux%5Bz%5D=3")
    #expect(
      try encode(.URL, ["q": "a b&ä", "t": true, "f": 1.5]).url.hasSuffix("/?f=1.5&q=a%20b%26%C3%A4&t=1"))
  }

  @Test("An existing query is preserved, and empty parameters add nothing") func existingQuery() throws {
    #expect(
      try encode(.URL, ["a": 1], url: "http://example.com/?x=%20").url
        == "http://example.com/?x=%20&a=1")
    #expect(try encode(.URL, [:]).url == "http://example.com/")
    let none = try encode(.URL, nil, method: "POST")
    #expect(none.body == nil && none.type == nil && none.error == nil)
  }

  @Test("JSON and property lists are encoded in the body for every method") func body() throws {
    let json = try encode(.JSON, ["a": [1, 2], "b": ["c": NSNull()]])
    #expect(json.type == "application/json")
    let read = try JSONSerialization.jsonObject(with: Data((json.body ?? "").utf8)) as? [String: Any]
    #expect(read?["a"] as? [Int] == [1, 2])
    let list = try encode(.PropertyList(format: .xml, options: 0), ["a": 1], method: "POST")
    #expect(list.type == "application/x-plist")
    #expect(list.body?.contains("<key>a</key>") == true)
    #expect(try encode(.PropertyList(.xml, 0), ["a": 1], method: "POST").body == list.body)
  }

  @Test("A content type of the request is not changed") func contentType() throws {
    let request = NSMutableURLRequest(url: try #require(URL(string: "http://example.com/")))
    request.setValue("own/type", forHTTPHeaderField: "Content-Type")
    let (encoded, _) = ParameterEncoding.JSON.encode(request, parameters: ["a": 1])
    #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "own/type")
    #expect(request.httpBody == nil)
  }

  /// A router that returns the same object again.
  private final class StoringRouter: URLRequestConvertible {
    let URLRequest: NSMutableURLRequest

    init(_ method: String) throws {
      URLRequest = NSMutableURLRequest(url: try #require(URL(string: "http://example.com/")))
      URLRequest.httpMethod = method
    }
  }

  @Test("The object of a router is not changed") func storedRequest() throws {
    let (get, post) = (try StoringRouter("GET"), try StoringRouter("POST"))
    for _ in 0..<2 {
      let (encoded, _) = ParameterEncoding.URL.encode(get, parameters: ["a": 1])
      #expect(encoded.url?.absoluteString == "http://example.com/?a=1")
      #expect(ParameterEncoding.JSON.encode(post, parameters: ["a": 1]).0.httpBody != nil)
    }
    #expect(get.URLRequest.url?.absoluteString == "http://example.com/")
    #expect(post.URLRequest.httpBody == nil && post.URLRequest.allHTTPHeaderFields?.isEmpty != false)
    #expect(ParameterEncoding.URL.encode(post, parameters: nil).0 !== post.URLRequest)
  }

  @Test("A value that cannot be encoded is an error") func invalidValue() throws {
    let json = try encode(.JSON, ["a": Date()], method: "POST")
    #expect(json.error?.domain == NSCocoaErrorDomain)
    #expect(json.body == nil)
    let list = try encode(.PropertyList(format: .xml, options: 0), ["a": NSNull()], method: "POST")
    #expect(list.error?.domain == NSCocoaErrorDomain)
  }

  @Test("A closure makes the request") func closure() throws {
    let encoding = ParameterEncoding.Custom { request, parameters in
      let made = request.URLRequest
      made.httpBody = Data("\(parameters?["a"] ?? "")".utf8)
      return (made, nil)
    }
    #expect(try encode(encoding, ["a": 5], method: "POST").body == "5")
  }

  @Test("Parts of the encoding are public") func publicParts() {
    #expect(
      ParameterEncoding.URL.escape("a b?/:#[]@!$&'()*+,;=")
        == "a%20b?/%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D")
    let pairs = ParameterEncoding.URL.queryComponents("k", ["x": [1, 2]])
    #expect(pairs.map { "\($0)=\($1)" } == ["k%5Bx%5D%5B%5D=1", "k%5Bx%5D%5B%5D=2"])
  }
}
