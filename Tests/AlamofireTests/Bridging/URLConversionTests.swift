import Alamofire
import Testing

struct URLConversionTests {
  @Test("Text, URLs and components convert to URLs")
  func conversions() throws {
    let text = "https://example.com/path?a=b"
    let url = try #require(URL(string: text))
    let components = try #require(URLComponents(string: text))
    #expect(try text.asURL() == url)
    #expect(try url.asURL() == url)
    #expect(try components.asURL() == url)
  }

  @Test("A relative reference converts, because the transport reports its error")
  func relativeReference() throws {
    #expect(try "invalid".asURL().absoluteString == "invalid")
  }

  @Test("Text that is not a URL is part of the error", arguments: ["", "http://[::1"])
  func invalidText(text: String) throws {
    let error = try #require(throws: AFError.self) { try text.asURL() }
    #expect(error.isInvalidURLError)
    #expect(error.urlConvertible as? String == text)
    #expect(error.underlyingError == nil)
  }

  @Test("Inconsistent components are part of the error")
  func invalidComponents() throws {
    var components = URLComponents()
    components.host = "example.com"
    components.path = "without-a-slash"
    let error = try #require(throws: AFError.self) { try components.asURL() }
    #expect(error.urlConvertible as? URLComponents == components)
  }

  @Test("A request converts to itself")
  func requestConverts() throws {
    let request = try URLRequest(url: "https://example.com", method: .get)
    #expect(try request.asURLRequest() == request)
    #expect(request.urlRequest == request)
  }

  @Test("urlRequest returns nil for an error")
  func urlRequestSwallowsTheError() {
    struct Broken: URLRequestConvertible {
      func asURLRequest() throws -> URLRequest { try URLRequest(url: "", method: .get) }
    }
    #expect(Broken().urlRequest == nil)
  }
}
