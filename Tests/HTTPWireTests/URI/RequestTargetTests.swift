import HTTPWire
import Testing

@Suite struct RequestTargetTests {
  private static let origin = Origin(scheme: "http", host: "a.example", port: 80)

  @Test(
    "A target that libcurl would change is passed separately",
    arguments: [
      ("http://a.example/a?", "/a?"), ("http://a.example?", "/?"), ("http://a.example/?#f", "/?"),
      ("http://a.example/%7ea%2F", "/%7ea%2F"), ("http://a.example/a?x=%c3%A4&y=?", "/a?x=%c3%A4&y=?"),
      ("http://a.example?%20", "/?%20"), ("http://a.example/%41/../b#%42", "/%41/../b"),
      ("https://a.example:8080/a?", "/a?"),
    ])
  func originForm(url: String, target: String) {
    #expect(RequestTarget.verbatim(of: url, .origin, at: Self.origin) == target)
  }

  @Test(
    "A target that libcurl does not change is not passed separately",
    arguments: [
      "http://a.example", "http://a.example/", "http://a.example/a/../b?c=d", "http://a.example/a??",
      "http://a.example/a?b?", "http://a.example/a#?", "http://a.example/a#%41", "?", "%",
    ])
  func keptTarget(url: String) {
    #expect(RequestTarget.verbatim(of: url, .origin, at: Self.origin) == nil)
    #expect(RequestTarget.verbatim(of: url, .absolute, at: Self.origin) == nil)
  }

  @Test(
    "The absolute form has the origin without a default port",
    arguments: [
      (Self.origin, "http://a.example/a?"),
      (Origin(scheme: "http", host: "a.example", port: 443), "http://a.example:443/a?"),
      (Origin(scheme: "https", host: "a.example", port: 443), "https://a.example/a?"),
      (Origin(scheme: "http", host: "::1", port: 8080), "http://[::1]:8080/a?"),
    ])
  func absoluteForm(origin: Origin, target: String) {
    #expect(RequestTarget.verbatim(of: "http://x/a?#f", .absolute, at: origin) == target)
  }
}
