import HTTPWire
import Testing

struct HTTPMethodTests {
  @Test(
    "The constants are the names in upper case",
    arguments: [
      (HTTPMethod.connect, "CONNECT"), (.delete, "DELETE"), (.get, "GET"), (.head, "HEAD"),
      (.options, "OPTIONS"), (.patch, "PATCH"), (.post, "POST"), (.put, "PUT"), (.query, "QUERY"),
      (.trace, "TRACE"),
    ])
  func constants(method: HTTPMethod, name: String) {
    #expect(method.rawValue == name)
    #expect(method == HTTPMethod(rawValue: name))
  }

  @Test("Methods are case-sensitive")
  func caseCounts() {
    // RFC 9110 §9.1.
    #expect(HTTPMethod(rawValue: "get") != .get)
    #expect(Set([HTTPMethod(rawValue: "get"), .get, .get]).count == 2)
  }

  @Test("A method is printed as its raw value")
  func printing() {
    #expect("\(HTTPMethod.get)" == #"HTTPMethod(rawValue: "GET")"#)
    #expect("\(HTTPMethod.get.rawValue)" == "GET")
  }
}
