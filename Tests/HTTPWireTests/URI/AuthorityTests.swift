import HTTPWire
import Testing

@Suite struct AuthorityTests {
  static let origins: [(String, Origin?)] = [
    ("http://example.org", Origin(scheme: "http", host: "example.org", port: 80)),
    ("https://example.org/", Origin(scheme: "https", host: "example.org", port: 443)),
    ("HTTPS://EXAMPLE.org:8443?q", Origin(scheme: "https", host: "example.org", port: 8443)),
    ("http://example.org:/x", Origin(scheme: "http", host: "example.org", port: 80)),
    ("http://user:p@ss@example.org#x", Origin(scheme: "http", host: "example.org", port: 80)),
    ("http://a@b:1/@c", Origin(scheme: "http", host: "b", port: 1)),
    ("http://[::1]:8080/x", Origin(scheme: "http", host: "::1", port: 8080)),
    ("http://[2001:DB8::1]", Origin(scheme: "http", host: "2001:db8::1", port: 80)),
    ("http://[fe80::1%25eth0]/", Origin(scheme: "http", host: "fe80::1%25eth0", port: 80)),
    ("http://[FE80::1%25vEthernet]/", Origin(scheme: "http", host: "fe80::1%25vEthernet", port: 80)),
    ("http://[1:2:3:4:5:6:7::]", Origin(scheme: "http", host: "1:2:3:4:5:6:7::", port: 80)),
    ("http://[::2:3:4:5:6:7:8]", Origin(scheme: "http", host: "::2:3:4:5:6:7:8", port: 80)),
    ("http://[1:2:3:4:5:6:7:8:9]", nil),
    ("http://127.0.0.1:0", Origin(scheme: "http", host: "127.0.0.1", port: 0)),
    ("http://ex%61mple.org/", Origin(scheme: "http", host: "example.org", port: 80)),
    ("http://Bücher.example/", Origin(scheme: "http", host: "xn--bcher-kva.example", port: 80)),
    ("http://b%C3%BCcher.example/", Origin(scheme: "http", host: "xn--bcher-kva.example", port: 80)),
    ("http://日本語。jp", Origin(scheme: "http", host: "xn--wgv71a119e.jp", port: 80)),
    ("http://a_b.example", Origin(scheme: "http", host: "a_b.example", port: 80)),
    ("ftp://example.org", nil), ("example.org", nil), ("//example.org", nil), ("http:/example.org", nil),
    ("http:example.org", nil), ("http://", nil), ("http:///path", nil), ("http://:80", nil),
    ("http://user@/", nil), ("http://h:65536", nil), ("http://h:8a", nil), ("http://h:-1", nil),
    ("http://[::1", nil), ("http://[::1]x", nil), ("http://[abc]", nil), ("http://[::g]", nil),
    ("http://[::1%25]", nil), ("http://[::1%eth0]", nil), ("http://a b/", nil), ("http://a%20b/", nil),
    ("http://a%2Fb/", nil), ("http://a%zz/", nil), ("http://a%F/", nil), ("http://%FF/", nil),
    ("http://a\\b/", nil), ("http://a<b", nil), ("http://::1/", nil),
    ("http://99999999999999999999:1/x:", Origin(scheme: "http", host: "99999999999999999999", port: 1)),
    ("http://h:99999999999999999999", nil), ("", nil), ("http", nil),
  ]

  @Test("The origin of an absolute URL is found", arguments: origins)
  func originOfURL(url: String, origin: Origin?) {
    #expect(Origin(url: url) == origin)
  }

  @Test("An authority preserves its user and normalizes its host") func authority() throws {
    let authority = try #require(Authority("u:p@Bücher.EXAMPLE:8080"))
    #expect(authority.userInfo == "u:p")
    #expect(authority.text == "u:p@xn--bcher-kva.example:8080")
    #expect(Authority("[::1]")?.text == "[::1]")
    #expect(Authority("[FE80::1%25vEthernet]")?.host == "fe80::1%25vEthernet")
    #expect(Authority("h:")?.text == "h")
  }

  @Test("A host has 255 bytes at most, in each of its forms") func longHosts() {
    func labels(_ count: Int) -> String {
      String(String(repeating: "a.", count: 200).prefix(count - 1)) + "b"
    }
    #expect(WireTarget("http://\(labels(255))/")?.origin.host == labels(255))
    #expect(Origin(url: "http://\(labels(255)):8080/") != nil)
    #expect(Authority(String(repeating: "%61", count: 255))?.host.utf8.count == 255)
    let tooLong = [
      labels(256), String(repeating: "a.", count: 130_000) + "b", String(repeating: "%61", count: 256),
      String(repeating: "ü.", count: 40) + "b", "[fe80::1%25\(labels(250))]", labels(256).uppercased(),
    ]
    for host in tooLong {
      #expect(
        WireTarget("http://\(host)/") == nil && Origin(url: "http://\(host)") == nil, "\(host.prefix(20))")
      #expect(WireTarget("https://\(host):443/x?y") == nil && WireTarget("http://u@\(host)/") == nil)
      #expect(Authority(host) == nil, "\(host.prefix(20))")
    }
  }

  static let punycode: [(String, String)] = [
    // Samples of RFC 3492 §7.1, in small letters.
    ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
    ("почемужеонинеговорятпорусски", "b1abfaaepdrnnbgefbadotcwatmq2g4l"),
    ("3年b組金八先生", "3b-ww4c5e180e575a65lsy2b"),
    ("ひとつ屋根の下2", "2-u9tlzr9756bt3uc0v"),
    ("そのスピードで", "d9juau41awczczp"),
  ]

  @Test("Labels beyond ASCII are encoded", arguments: punycode)
  func punycodeLabels(label: String, code: String) {
    #expect(Authority(label)?.host == "xn--" + code)
  }

  @Test("A host with a label that is too long for DNS is refused") func longLabel() {
    #expect(Authority(String(repeating: "ü", count: 200)) == nil)
  }
}

@Suite("Internationalised host names") struct InternationalNameTests {
  static let mapped: [(String, String?)] = [
    // ASCII is converted to lower case and otherwise preserved, also A-labels and invalid ones.
    ("EXAMPLE.Com", "example.com"), ("a..b", "a..b"), ("", ""), ("[::1]", "[::1]"), ("A_b.x", "a_b.x"),
    ("xn--bcher-kva.example", "xn--bcher-kva.example"), ("XN--.example", "xn--.example"),
    ("xn--zzzzzzzz.example", "xn--zzzzzzzz.example"), ("*.A.example.", "*.a.example."),
    // U-labels.
    ("bücher.example", "xn--bcher-kva.example"), ("BÜCHER.example.", "xn--bcher-kva.example."),
    ("*.Bücher.example", "*.xn--bcher-kva.example"), ("faß.de", "xn--fa-hia.de"), ("ẞ.de", "xn--zca.de"),
    ("ΣΑΣ.example", "xn--mxa9ab.example"), ("σς.example", "xn--3xab.example"), ("☃", "xn--n3h"),
    ("İ.com", "xn--i-9bb.com"), ("א1.example", "xn--1-zhc.example"), ("xn--ü", "xn--xn---3ra"),
    // The other full stops of UTS 46 are dots.
    ("日本語。example", "xn--wgv71a119e.example"), ("a．b｡c", "a.b.c"), ("ü..b", "xn--tda..b"),
    // No other mapping of UTS 46, so that such a name is only equal to itself.
    ("①.example", "xn--orh.example"), ("bu\u{308}cher.x", "xn--bucher-xyd.x"),
    ("ex\u{AD}ample.com", "xn--example-mka.com"), ("１２７.0.0.1", "xn--8g7ccp.0.0.1"),
    ("ａ.example", "xn--mi7c.example"), ("［］", "xn--gi7ce"), ("℀.example", "xn--z1g.example"),
    ("a\u{200D}b.example", "xn--ab-m1t.example"), ("\u{200C}a.example", "xn--a-rgn.example"),
    // A label has 63 bytes at most.
    (String(repeating: "ü", count: 50), "xn--tda" + String(repeating: "a", count: 49)),
    (String(repeating: "ü", count: 60), nil), ("ü" + String(repeating: "a", count: 60), nil),
  ]

  @Test("A name beyond ASCII has one form in ASCII", arguments: mapped)
  func ascii(name: String, ascii: String?) {
    #expect(InternationalName.ascii(name) == ascii)
  }
}
