import Alamofire
import Testing

struct URLRequestTests {
  @Test("The initialiser sets URL, method and every header field")
  func initialiser() throws {
    let request = try URLRequest(
      url: "https://example.com/a", method: .patch, headers: ["X-One": "1", "X-Two": "2"])
    #expect(request.url?.absoluteString == "https://example.com/a")
    #expect(request.method == .patch)
    #expect(request.headers.sorted() == ["X-One": "1", "X-Two": "2"])
  }

  @Test("The initialiser throws the error of the URL")
  func initialiserThrows() {
    #expect(throws: AFError.self) { try URLRequest(url: "", method: .get) }
  }

  @Test("A request without header fields has none")
  func noHeaders() throws {
    let request = try URLRequest(url: "https://example.com", method: .get)
    #expect(request.headers.isEmpty)
    #expect(request.value(forHTTPHeaderField: "Accept") == nil)
  }

  @Test("Any method is preserved")
  func anyMethod() throws {
    var request = try URLRequest(url: "https://example.com", method: HTTPMethod(rawValue: "purge"))
    #expect(request.httpMethod == "purge")
    request.method = .query
    #expect(request.httpMethod == "QUERY")
  }

  @Test("Setting the header fields replaces all of them")
  func settingHeadersReplaces() throws {
    var request = try URLRequest(url: "https://example.com", method: .get, headers: ["X-Old": "1"])
    request.headers = ["X-New": "2"]
    #expect(request.allHTTPHeaderFields == ["X-New": "2"])
    request.headers.add(.accept("text/plain"))
    #expect(request.value(forHTTPHeaderField: "accept") == "text/plain")
    #expect(request.headers.count == 2)
  }

  @Test("A GET with a body is refused, also with an empty one")
  func getWithBody() throws {
    var request = try URLRequest(url: "https://example.com", method: .get)
    try request.validate()
    for body in [Data("body".utf8), Data()] {
      request.httpBody = body
      let error = try #require(throws: AFError.self) { try request.validate() }
      guard case .urlRequestValidationFailed(.bodyDataInGETRequest(body)) = error else {
        Issue.record("not the expected error: \(error)")
        continue
      }
    }
  }

  @Test("A GET with a body is accepted if that is allowed, and other methods always are")
  func bodiesThatPass() throws {
    var request = try URLRequest(url: "https://example.com", method: .get)
    request.httpBody = Data("body".utf8)
    try request.validate(allowingBodyInGET: true)
    for method in [HTTPMethod.post, .delete, .query, .head] {
      request.method = method
      try request.validate()
    }
  }

  @Test("A response returns its header fields")
  func responseHeaders() throws {
    let url = try "https://example.com".asURL()
    let response = try #require(
      HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: "HTTP/1.1",
        headerFields: ["Content-Type": "text/plain", "X-A": "1"]))
    #expect(response.headers["content-type"] == "text/plain")
    #expect(response.headers.count == 2)
  }
}
