import HTTPWire
import Randomness
import Testing

/// Random cookies, checked against an independent formulation of the rules.
@Suite struct RandomCookieTests {
  private static let hosts = [
    "example.com", "www.example.com", "a.www.example.com", "example.org", "badexample.com", "shop.co.uk",
    "other.co.uk", "127.0.0.1", "localhost",
  ]
  private static let paths = ["/", "/a", "/a/", "/a/b", "/ab", "/b"]
  private static let domains = [
    nil, "example.com", ".www.example.com", "com", "co.uk", "shop.co.uk", "127.0.0.1", "localhost", "0.0.1",
    "",
  ]

  @Test("A cookie is sent only where its rules allow it", arguments: 1...8 as ClosedRange<UInt64>)
  func scope(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var jar = Jar()
    var made: [String: (host: String, isTLS: Bool, wish: SetCookie)] = [:]
    for step in 0..<1500 {
      let host = try #require(Self.hosts.randomElement(using: &random))
      let path = try #require(Self.paths.randomElement(using: &random))
      let isTLS = Bool.random(using: &random)
      let port = Bool.random(using: &random) ? ":8443" : ""
      let url = "http\(isTLS ? "s" : "")://\(host)\(port)\(path)"
      guard Bool.random(using: &random) else {
        for cookie in jar.chosen(for: url) {
          let origin = try #require(made[cookie.value])
          expect(cookie, of: origin, mayReach: host, path: path, isTLS: isTLS)
        }
        continue
      }
      var field = "n\(Int.random(in: 0..<3, using: &random))=v\(step)"
      if let domain = try #require(Self.domains.randomElement(using: &random)) {
        field += "; Domain=\(domain)"
      }
      if Bool.random(using: &random) { field += "; Secure" }
      if Bool.random(using: &random), let path = Self.paths.randomElement(using: &random) {
        field += "; Path=\(path)"
      }
      if Int.random(in: 0..<6, using: &random) == 0 { field += "; Max-Age=0" }
      let before = jar.cookies
      jar.receive(field, from: url)
      made["v\(step)"] = (host, isTLS, try SetCookie(Array(field.utf8)))
      // A response without TLS does not remove a secure cookie.
      if !isTLS { for old in before where old.isSecure { #expect(jar.cookies.contains(old)) } }
    }
  }

  private func expect(
    _ cookie: Cookie, of origin: (host: String, isTLS: Bool, wish: SetCookie), mayReach host: String,
    path: String,
    isTLS: Bool
  ) {
    let domain = origin.wish.domain ?? ""
    let labels = host.split(separator: ".")
    let wanted = (domain.isEmpty ? origin.host : domain).split(separator: ".")
    let isPublic = domain == "com" || domain == "co.uk"
    #expect(!isPublic)
    let isBelow = !domain.isEmpty && origin.host != "127.0.0.1" && labels.suffix(wanted.count) == wanted[...]
    #expect(host == origin.host || isBelow, "\(cookie) of \(origin) to \(host)")
    #expect(isTLS || !origin.wish.isSecure)
    #expect(origin.isTLS || !origin.wish.isSecure)
    let folder = cookie.path.split(separator: "/")
    #expect(path.split(separator: "/").prefix(folder.count) == folder[...])
  }

  @Test("Random bytes crash no parser") func randomBytes() throws {
    var random = SeededGenerator(seed: 11)
    let words = [
      "a", "=", ";", "; ", " ", "\t", "Expires=", "Max-Age=", "Domain=", "Path=", "Secure", "HttpOnly",
      "SameSite=",
      "Lax", "__Host-", "__Secure-", "/", ".", "example.com", "com", "-", "0", "99999999999999999999", "Nov",
      "06",
      "1994", "08:49:37", "é", "\u{0}", "\u{7F}", "🍪", "\u{301}", ":", ",", "\"",
    ].map { Array($0.utf8) }
    var jar = Jar()
    for count in 0..<100_000 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0..<12, using: &random) {
        if Int.random(in: 0..<4, using: &random) == 0 {
          bytes.append(UInt8.random(in: 0...255, using: &random))
        } else if let word = words.randomElement(using: &random) {
          bytes += word
        }
      }
      _ = CookieDate.parse(bytes)
      jar.receive(bytes, from: count % 2 == 0 ? "https://www.example.com/a/b" : "http://example.com/")
      if jar.cookies.count > 40 { jar.cookies.removeAll() }
      if count % 64 == 0 { _ = jar.field(for: "https://www.example.com/a/b") }
      let text = String(decoding: bytes, as: UTF8.self)
      _ = jar.suffixes.registrableDomain(of: text)
      _ = CookieTarget(url: "http://" + text)?.defaultPath
    }
  }
}
