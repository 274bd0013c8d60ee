import HTTPWire
import Randomness
import Testing

@Suite("Fields of a request in HTTP/2") struct RequestFieldsTests {
  static let origin = Origin(scheme: "https", host: "a.test", port: 443)

  /// Returns the fields as lines.
  static func lines(
    _ fields: [(String, String)] = [], method: String = "GET", origin: Origin = RequestFieldsTests.origin,
    target: String = "/", protocolName: String? = nil, length: Int64? = nil, isChunked: Bool = false
  ) throws(RequestFields.Violation) -> [String] {
    let result = try RequestFields(
      .init(method: method, origin: origin, target: target, protocolName: protocolName),
      fields: fields.map { HTTPHeader(name: $0, value: $1) }, contentLength: length, isChunked: isChunked)
    var lines: [String] = []
    result.forEach { name, value in
      lines.append("\(String(decoding: name, as: UTF8.self))=\(String(decoding: value, as: UTF8.self))")
    }
    return lines
  }

  static let control = [":method=GET", ":scheme=https", ":authority=a.test", ":path=/"]

  @Test("Pseudo-header fields come first, and names are in lower case") func order() throws {
    let lines = try Self.lines(
      [("X-A", "1"), ("Cookie", "a=1; b=2"), ("x-a", "Two")], method: "POST", target: "/p?q=%C3", length: 12)
    #expect(
      lines == [
        ":method=POST", ":scheme=https", ":authority=a.test", ":path=/p?q=%C3", "x-a=1", "cookie=a=1; b=2",
        "x-a=Two",
        "content-length=12",
      ])
    #expect(try Self.lines() == Self.control)
    #expect(try Self.lines(length: 0) == Self.control + ["content-length=0"])
  }

  @Test(
    "The authority is the given Host, otherwise the origin's",
    arguments: [
      ("https", "a.test", 443, nil, "a.test"), ("https", "a.test", 80, nil, "a.test:80"),
      ("http", "a.test", 80, nil, "a.test"), ("http", "a.test", 443, nil, "a.test:443"),
      ("https", "::1", 443, nil, "[::1]"), ("https", "fe80::1%25eth0", 1, nil, "[fe80::1]:1"),
      ("https", "::1", 8443, nil, "[::1]:8443"),
      ("https", "a.test", 443, "b.test:1", "b.test:1"), ("https", "a.test", 444, " b.test\t", "b.test"),
      ("https", "a.test", 444, "", "a.test:444"), ("https", "a.test", 443, " ", "a.test"),
    ] as [(String, String, Int, String?, String)])
  func authority(scheme: String, host: String, port: Int, given: String?, authority: String) throws {
    let lines = try Self.lines(
      given.map { [("hOst", $0)] } ?? [], origin: Origin(scheme: scheme, host: host, port: port))
    #expect(lines == [":method=GET", ":scheme=\(scheme)", ":authority=\(authority)", ":path=/"])
  }

  @Test("Of several Host fields the first one counts, and none is sent") func severalHosts() throws {
    #expect(
      try Self.lines([("Host", "b.test"), ("host", "c.test")])
        == [":method=GET", ":scheme=https", ":authority=b.test", ":path=/"])
  }

  @Test(
    "An authority that is none is refused",
    arguments: ["a b", "u@a.test", "a/b", "a?b", "a#b", "a\\b", "é.test"])
  func authorityViolations(host: String) {
    #expect(throws: RequestFields.Violation.authority) { try Self.lines([("Host", host)]) }
  }

  @Test(
    "A target is a path, or the asterisk of OPTIONS",
    arguments: [
      ("GET", "", "/"), ("GET", "?a=b", "/?a=b"), ("GET", "/", "/"), ("GET", "//x", "//x"),
      ("GET", "/~!'()*", "/~!'()*"),
      ("OPTIONS", "*", "*"), ("OPTIONS", "/*", "/*"), ("GET", "*", nil), ("OPTIONS", "*a", nil),
      ("GET", "a", nil),
      ("GET", "http://a.test/", nil), ("GET", "/a b", nil), ("GET", "/\u{1}", nil), ("GET", "/\u{7F}", nil),
      ("GET", "/é", nil), ("GET", "/a#b", nil), ("GET", "/a\r\nb", nil), ("GET", "?a b", nil),
    ] as [(String, String, String?)])
  func targets(method: String, target: String, path: String?) throws {
    guard let path else {
      #expect(throws: RequestFields.Violation.target) { try Self.lines(method: method, target: target) }
      return
    }
    #expect(try Self.lines(method: method, target: target).last == ":path=\(path)")
  }

  @Test("Fields of the connection are left out") func connectionFields() throws {
    let fields = [
      ("Connection", "close, X-Hop"), ("connection", " Y-Hop ,,TE"), ("Keep-Alive", "1"),
      ("Proxy-Connection", "x"),
      ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AA"),
      ("X-Hop", "1"), ("x-hop", "2"), ("Y-HOP", "3"), ("Close", "4"), ("X-Hope", "5"), ("Accept", "*/*"),
    ]
    #expect(try Self.lines(fields, isChunked: true) == Self.control + ["x-hope=5", "accept=*/*"])
    #expect(try Self.lines(fields, length: 9, isChunked: true).last == "content-length=9")
  }

  @Test("The caller's length or coding must not contradict the body") func framing() throws {
    #expect(try Self.lines([("content-length", " 9")], length: 9) == Self.control + ["content-length=9"])
    #expect(try Self.lines([("content-length", "0")]) == Self.control)
    #expect(try Self.lines([("Transfer-Encoding", "Chunked")], isChunked: true) == Self.control)
    let cases: [(String, String, Int64?)] = [
      ("Content-Length", "8", 9), ("Content-Length", "09", 9), ("Content-Length", "9", nil),
      ("Content-Length", "", 0),
      ("Transfer-Encoding", "gzip", nil), ("Transfer-Encoding", "gzip, chunked", 9),
      ("Transfer-Encoding", "chunked", 9), ("Transfer-Encoding", "chunked", nil),
    ]
    for (name, value, length) in cases {
      #expect(throws: RequestFields.Violation.head(.contradictingFraming(name)), "\(name): \(value)") {
        try Self.lines([(name, value)], length: length)
      }
    }
  }

  @Test("A head has at most 1,000,000 bytes") func size() throws {
    let control = Self.control.reduce(0) { $0 + $1.utf8.count - 1 }
    let longest = String(repeating: "a", count: 1_000_000 - control - 1)
    #expect(try Self.lines([("a", longest)]).count == 5)
    #expect(throws: RequestFields.Violation.head(.tooLarge)) { try Self.lines([("a", longest + "a")]) }
  }

  @Test(
    "TE names trailers only",
    arguments: [
      ("trailers", true), ("Trailers", true), ("gzip, trailers", true), ("trailers;q=1", false),
      ("gzip", false),
      ("", false), (" trailers\t", true),
    ])
  func te(value: String, isSent: Bool) throws {
    #expect(
      try Self.lines([("TE", value), ("Connection", "TE")]) == Self.control + (isSent ? ["te=trailers"] : []))
  }

  @Test("White space around a value is left out") func whiteSpace() throws {
    let fields = [("A", " \tx y\t "), ("B", ""), ("C", "  "), ("D", "\t")]
    #expect(try Self.lines(fields) == Self.control + ["a=x y", "b=", "c=", "d="])
    #expect(try Self.lines([("A", "é")]) == Self.control + ["a=é"])
  }

  @Test("What no request may contain is refused") func violations() {
    let cases: [(String, (String, String))] = [
      ("an empty name", ("", "1")), ("a pseudo-header field", (":path", "/")), ("a space", ("a b", "1")),
      ("a line feed", ("a", "1\n2")), ("a NUL", ("a", "\0")), ("a carriage return", ("a", "\r")),
      ("a letter beyond ASCII", ("é", "1")),
    ]
    for (name, field) in cases {
      #expect(throws: RequestFields.Violation.self, "\(name)") { try Self.lines([field]) }
    }
    #expect(throws: RequestFields.Violation.head(.field(.method("G T")))) { try Self.lines(method: "G T") }
    #expect(throws: RequestFields.Violation.head(.field(.name(":a")))) { try Self.lines([(":a", "")]) }
  }

  @Test("CONNECT has a method and an authority with a port") func connect() throws {
    #expect(
      try Self.lines([("Host", "b.test"), ("A", "1")], method: "CONNECT", target: "ignored")
        == [":method=CONNECT", ":authority=a.test:443", "a=1"])
    #expect(
      try Self.lines(method: "CONNECT", origin: Origin(scheme: "http", host: "::1", port: 80))
        == [":method=CONNECT", ":authority=[::1]:80"])
  }

  @Test("Extended CONNECT has a protocol, and the fields of other requests") func extendedConnect() throws {
    #expect(
      try Self.lines(
        [("Upgrade", "websocket"), ("Connection", "Upgrade")], method: "CONNECT", target: "/chat",
        protocolName: "websocket")
        == [
          ":method=CONNECT", ":scheme=https", ":authority=a.test", ":path=/chat", ":protocol=websocket",
        ])
    for (method, name) in [("GET", "websocket"), ("CONNECT", ""), ("CONNECT", "a b")] {
      #expect(throws: RequestFields.Violation.protocolName, "\(method) \(name)") {
        try Self.lines(method: method, protocolName: name)
      }
    }
  }

  @Test("Violations have messages without values") func messages() {
    for violation in [RequestFields.Violation.target, .authority, .protocolName, .head(.field(.name("x y")))]
    {
      #expect(violation.message.contains("RFC"))
      #expect(violation.message.hasSuffix("."))
    }
  }

  @Test("Random fields have valid names and values, or are refused", arguments: 0..<4 as Range<UInt64>)
  func walks(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let names = [
      "A", "te", "Connection", "Host", "x-b", "UPGRADE", "content-length", "Cookie", ":a", "é", "",
    ]
    let values = ["", "1", " x ", "a, x-b", "trailers", "b.test", "\n", "\u{7F}", "a\tb", "é"]
    for walk in 0..<3_000 {
      let fields = (0..<Int.random(in: 0..<6, using: &random)).map { _ in
        (names.randomElement(using: &random) ?? "", values.randomElement(using: &random) ?? "")
      }
      guard let lines = try? Self.lines(fields) else { continue }
      var hasFields = false
      for line in lines {
        let name = line.dropFirst().prefix { $0 != "=" }
        let isPseudo = line.hasPrefix(":")
        #expect(!(isPseudo && hasFields), "seed \(seed), walk \(walk): \(line)")
        hasFields = hasFields || !isPseudo
        #expect(name.lowercased() == String(name), "seed \(seed), walk \(walk)")
        let value = line.drop { $0 != "=" }.dropFirst()
        #expect(value.first != " " && value.last != " ", "seed \(seed), walk \(walk): \(line)")
        #expect(!["connection", "upgrade", "host", "content-length"].contains { line.hasPrefix("\($0)=") })
      }
      #expect(
        lines.prefix(4).map { $0.prefix { $0 != "=" } } == [":method", ":scheme", ":authority", ":path"])
    }
  }
}
