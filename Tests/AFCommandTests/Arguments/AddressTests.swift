import AFCommand
import Testing

@Suite struct AddressTests {
  @Test(
    "Short forms are completed",
    arguments: [
      (":8080/path?x=1", "http://localhost:8080/path?x=1"), (":8080", "http://localhost:8080"),
      (":", "http://localhost"), (":/path", "http://localhost/path"),
      ("localhost", "http://localhost"), ("LOCALHOST:80/x", "http://LOCALHOST:80/x"),
      ("api.localhost", "http://api.localhost"), ("127.0.0.1:1", "http://127.0.0.1:1"),
      ("[::1]:8080/", "http://[::1]:8080/"), ("user:pass@localhost", "http://user:pass@localhost"),
      ("example.com", "https://example.com"), ("example.com:8443/a:b", "https://example.com:8443/a:b"),
      ("localhost.example.com", "https://localhost.example.com"), ("//example.com", "https://example.com"),
      ("example.com?next=http.localhost", "https://example.com?next=http.localhost"),
      (":80/?u=http://a/b", "http://localhost:80/?u=http://a/b"),
      ("example.com#://", "https://example.com#://"),
      (":1/?a={x}&b=%2F", "http://localhost:1/?a=%7Bx%7D&b=%2F"),
      (":1/a[b]%20?c=100%", "http://localhost:1/a%5Bb%5D%20?c=100%25"),
      ("http://example.com", "http://example.com"), ("HTTPS://example.com", "HTTPS://example.com"),
    ])
  func shortForms(typed: String, expected: String) throws {
    #expect(try Address.expand(typed) == expected)
  }

  @Test(
    "Invalid URLs are refused", arguments: ["", "ftp://x", "http://", "https:///x", "[::", "x:port"])
  func refusals(typed: String) {
    #expect(throws: UsageError.self) { try Address.expand(typed) }
  }
}
