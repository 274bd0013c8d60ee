import HTTPWire
import Testing

@Suite struct RedirectTests {
  static func request(
    _ method: String = "GET", url: String = "https://a.example/x/y?z", hasBody: Bool = false
  ) -> Redirect.Request {
    let origin = Origin(url: url) ?? Origin(scheme: "http", host: "", port: nil)
    return Redirect.Request(url: url, origin: origin, method: method, hasBody: hasBody)
  }

  static func plan(_ decision: Redirect.Decision) -> RedirectPlan? {
    guard case .follow(let plan) = decision else { return nil }
    return plan
  }

  /// Status, method before, method after, whether the body is sent.
  static let methods: [(Int, String, String, Bool)] = [
    (301, "GET", "GET", true), (301, "HEAD", "HEAD", true), (301, "POST", "GET", false),
    (301, "PUT", "PUT", true), (301, "DELETE", "DELETE", true), (301, "PATCH", "PATCH", true),
    (302, "GET", "GET", true), (302, "HEAD", "HEAD", true), (302, "POST", "GET", false),
    (302, "PUT", "PUT", true), (302, "QUERY", "QUERY", true), (302, "post", "post", true),
    (303, "GET", "GET", false), (303, "HEAD", "HEAD", false), (303, "POST", "GET", false),
    (303, "PUT", "GET", false), (303, "DELETE", "GET", false), (303, "OPTIONS", "GET", false),
    (307, "GET", "GET", true), (307, "HEAD", "HEAD", true), (307, "POST", "POST", true),
    (307, "PUT", "PUT", true), (308, "POST", "POST", true), (308, "PATCH", "PATCH", true),
    (308, "DELETE", "DELETE", true),
  ]

  @Test("Method and body of the next request follow from the status", arguments: methods)
  func methodAndBody(
    status: Int, before: String, after: String, resendsBody: Bool
  ) throws {
    let decision = Redirect.decide(
      status: status, location: "/n", request: Self.request(before, hasBody: true))
    let plan = try #require(Self.plan(decision))
    #expect(plan.method == after)
    #expect(plan.resendsBody == resendsBody)
    #expect(plan.dropsContentFields == !resendsBody)
  }

  @Test("A missing body is not sent") func missingBody() throws {
    let plan = try #require(Self.plan(Redirect.decide(status: 307, location: "/", request: Self.request())))
    #expect(!plan.resendsBody)
    #expect(!plan.dropsContentFields)
  }

  @Test(
    "Other statuses are responses",
    arguments: [100, 200, 201, 204, 300, 304, 305, 306, 309, 399, 400, 401, 500])
  func otherStatuses(status: Int) {
    let decision = Redirect.decide(status: status, location: "/n", request: Self.request())
    #expect(decision == .notARedirect)
  }

  @Test(
    "Without Location the redirect is the response", arguments: [301, 302, 303, 307, 308],
    [nil, "", "  \t "] as [String?])
  func missingLocation(status: Int, location: String?) {
    #expect(Redirect.decide(status: status, location: location, request: Self.request()) == .notARedirect)
  }

  static let targets: [(String, String)] = [
    ("/n", "https://a.example/n"), ("n", "https://a.example/x/n"), ("../n", "https://a.example/n"),
    ("?q", "https://a.example/x/y?q"), ("//b.example/n", "https://b.example/n"),
    ("http://b.example", "http://b.example"), ("HTTP://B.Example/P", "http://b.example/P"),
    ("https://b.example:8443/é x", "https://b.example:8443/%C3%A9%20x"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("https://u:p@b.example/", "https://u:p@b.example/"),
    (#"\\b.example\n"#, "https://a.example/x/%5C%5Cb.example%5Cn"), ("#f", "https://a.example/x/y?z#f"),
  ]

  @Test("The target is resolved against the URL of the request", arguments: targets)
  func resolvedTargets(location: String, url: String) throws {
    let plan = try #require(
      Self.plan(Redirect.decide(status: 302, location: location, request: Self.request())))
    #expect(plan.url == url)
    #expect(plan.origin == Origin(url: url))
  }

  static let fragments: [(String, String)] = [
    ("/n", "https://a.example/n#top"), ("/n#", "https://a.example/n#"), ("/n#end", "https://a.example/n#end"),
    ("https://b.example/", "https://b.example/#top"),
  ]

  @Test("A target without a fragment inherits it", arguments: fragments)
  func inheritedFragments(location: String, url: String) throws {
    let request = Self.request(url: "https://a.example/x#top")
    let plan = try #require(Self.plan(Redirect.decide(status: 301, location: location, request: request)))
    #expect(plan.url == url)
  }

  static let refusals: [(String, Redirect.Refusal)] = [
    ("ftp://a.example/", .unsupportedScheme("ftp")), ("file:///etc/passwd", .unsupportedScheme("file")),
    ("data:,x", .unsupportedScheme("data")), ("javascript:alert(1)", .unsupportedScheme("javascript")),
    ("FILE:/x", .unsupportedScheme("file")), ("mailto:a@b", .unsupportedScheme("mailto")),
    ("https:///x", .badLocation), ("https:x", .badLocation), ("https://h:99999/", .badLocation),
    ("https://[::1/", .badLocation), ("//", .badLocation), ("https://a b/", .badLocation),
  ]

  @Test("Other schemes and invalid targets are refused", arguments: refusals)
  func refusedTargets(location: String, refusal: Redirect.Refusal) {
    #expect(Redirect.decide(status: 302, location: location, request: Self.request()) == .refuse(refusal))
  }

  @Test("The number of redirects is limited") func limit() {
    let request = Self.request()
    #expect(
      Self.plan(Redirect.decide(status: 302, location: "/", request: request, redirectCount: 19, limit: 20))
        != nil
    )
    let beyond = Redirect.decide(status: 302, location: "/", request: request, redirectCount: 20, limit: 20)
    #expect(beyond == .refuse(.tooMany(limit: 20)))
    let none = Redirect.decide(status: 302, location: "/", request: request, limit: 0)
    #expect(none == .refuse(.tooMany(limit: 0)))
    #expect(Redirect.decide(status: 200, location: "/", request: request, redirectCount: 20) == .notARedirect)
  }

  static let fields: [HTTPHeader] = [
    "Host", "accept", "Content-Type", "content-length", "Content-Encoding", "Content-Language",
    "Content-Location", "Content-Range", "Content-Disposition", "Content-Digest", "repr-digest", "Digest",
    "Content-MD5", "Last-Modified", "Trailer", "Transfer-Encoding", "Expect", "authorization", "Cookie",
    "Cookie2", "Proxy-Authorization", "Proxy-Authenticate", "WWW-Authenticate", "X-API-Key", "Referer",
    "Want-Content-Digest", "X-Other",
  ].map { HTTPHeader(name: $0, value: "v") }

  static let everyField = fields.map(\.name).filter { $0 != "Host" }
  static let contentFields = [
    "Content-Type", "content-length", "Content-Encoding", "Content-Language", "Content-Location",
    "Content-Range", "Content-Disposition", "Content-Digest", "repr-digest", "Digest", "Content-MD5",
    "Last-Modified", "Trailer", "Transfer-Encoding", "Expect",
  ]
  static let secretFields = [
    "authorization", "Cookie", "Cookie2", "Proxy-Authorization", "Proxy-Authenticate", "WWW-Authenticate",
    "X-API-Key",
  ]

  /// Status, location, and the fields that are dropped besides `Host`, which stays at the same origin.
  static let droppedFields: [(Int, String, [String])] = [
    (307, "/n", []),
    (302, "/n", contentFields),
    (303, "/n", contentFields),
    (308, "HTTPS://A.EXAMPLE:443/n", []),
    (307, "https://b.example/", secretFields),
    (307, "https://sub.a.example/", secretFields),
    (307, "https://a.example:8443/", secretFields),
    (307, "http://a.example/", secretFields + ["Referer"]),
    (302, "https://b.example/", contentFields + secretFields),
    (302, "http://b.example:443/", contentFields + secretFields + ["Referer"]),
  ]

  @Test("Fields that are not for another origin are dropped", arguments: droppedFields)
  func fieldsForOrigin(status: Int, location: String, dropped: [String]) throws {
    let decision = Redirect.decide(
      status: status, location: location, request: Self.request("POST", hasBody: true),
      protectedHeaders: ["x-api-key"])
    let plan = try #require(Self.plan(decision))
    let kept = plan.fields(from: Self.fields).map(\.name)
    #expect(kept.contains("Host") == !plan.leavesOrigin)
    #expect(kept.filter { $0 != "Host" } == Self.everyField.filter { !dropped.contains($0) })
  }

  @Test("An upgrade to HTTPS is another origin") func upgrade() throws {
    let request = Self.request(url: "http://a.example/")
    let decision = Redirect.decide(status: 301, location: "https://a.example/", request: request)
    let plan = try #require(Self.plan(decision))
    #expect(plan.leavesOrigin)
    #expect(!plan.leavesSecureScheme)
    #expect(!plan.keeps("Authorization"))
    #expect(plan.keeps("Referer"))
  }

  @Test("The error of a refusal does not contain the target") func refusalMessage() {
    #expect(Redirect.Refusal.tooMany(limit: 3).message.contains("3 times"))
    #expect(Redirect.Refusal.unsupportedScheme("ftp").message.contains("\"ftp\""))
    #expect(Redirect.Refusal.badLocation.message.contains("not a URL"))
  }

  /// The length of the head's limit. It is parsed on a thread that other requests use.
  @Test(
    "A long location is parsed in time",
    arguments: [
      "name", "names", "percent", "up", "down", "dots", "slashes", "empty", "colons", "ats", "digits",
    ])
  func longLocation(kind: String) throws {
    func many(_ text: String) -> String { String(repeating: text, count: 240_000 / text.utf8.count) }
    let letters = String(
      String.UnicodeScalarView((0x4E00..<0x9F00).compactMap { Unicode.Scalar($0 as UInt32) }))
    let encoded = letters.utf8.prefix(80_000 / 3 * 3).map { "%" + String($0, radix: 16) }.joined()
    let location =
      switch kind {
      case "name": "http://\(letters)\(letters)\(letters)/"
      case "names": "http://" + many("\u{FC}.") + "/"
      case "percent": "http://\(encoded)/"
      case "up": many("../")
      case "down": many("a/")
      case "dots": many("/a/./../")
      case "slashes": "http://a.test" + many("/")
      case "empty": many(" ")
      case "colons": "http://" + many(":")
      case "ats": "http://" + many("a@") + "b.test/"
      default: "http://a.test:" + many("0") + "80/"
      }
    let origin = try #require(Origin(url: "http://home.test/"))
    let took = processorTime {
      for status in [302, 307] {
        _ = Redirect.decide(
          status: status, location: location, request: .init(url: "http://home.test/a/b", origin: origin))
      }
    }
    #if THREAD_SANITIZER || ADDRESS_SANITIZER
      #expect(took < .seconds(60), "\(took)")
    #else
      #expect(took < .seconds(10), "\(took)")
    #endif
  }
}
