import FoundationEssentials
import Testing

@testable import HTTPWire

/// The trailer fields of requests: how a head announces them, and which ones are sent (RFC 9110 §6.5).
@Suite("Trailers of requests") struct RequestTrailerTests {
  private static func request(
    _ body: RequestBody = .bytes(Data([1, 2, 3])), _ fields: [(String, String)] = [], method: String = "PUT",
    names: [String] = []
  ) -> WireRequest {
    WireRequest(
      url: "https://a.example/b", origin: Origin(scheme: "https", host: "a.example", port: nil),
      profile: ConnectionProfile()
    ) {
      $0.method = method
      $0.fields = fields.map { HTTPHeader(name: $0, value: $1) }
      $0.body = body
      $0.trailers = RequestTrailers(names: names) { $0([]) }
    }
  }

  /// Returns the lines of the HTTP/1.1 head after the `Host` line.
  private static func lines(
    of request: WireRequest, withholdsContent: Bool = false
  ) throws(RequestHeadViolation) -> [String] {
    var bytes: [UInt8] = []
    _ = try RequestHeadWriter(request, form: .origin, withholdsContent: withholdsContent).write(into: &bytes)
    return String(decoding: bytes, as: UTF8.self).split(separator: "\r\n").dropFirst(2).map(String.init)
  }

  private static func fields2(of request: WireRequest) throws(RequestFields.Violation) -> [String] {
    lines(of: try RequestFields(request)).filter { !$0.hasPrefix(":") }
  }

  private static func lines(of fields: RequestFields) -> [String] {
    var lines: [String] = []
    fields.forEach { name, value in
      lines.append("\(String(decoding: name, as: UTF8.self)): \(String(decoding: value, as: UTF8.self))")
    }
    return lines
  }

  private static let chunked = "Transfer-Encoding: chunked"

  @Test("Content of known length is sent in chunks if trailers follow it") func framing() throws {
    #expect(try Self.lines(of: Self.request()) == [Self.chunked])
    #expect(
      try Self.lines(of: Self.request(names: ["Digest", "X-A"])) == ["Trailer: Digest, X-A", Self.chunked])
    #expect(try Self.lines(of: Self.request(.bytes(Data()))) == [Self.chunked], "empty content")
    #expect(try Self.lines(of: Self.request(.none, names: ["A"])) == ["Content-Length: 0"], "no content")
    #expect(
      try Self.lines(of: Self.request(names: ["A"]), withholdsContent: true) == ["Content-Length: 0"],
      "a round of a login")
  }

  @Test("The length of the content is announced over HTTP/2") func length() throws {
    #expect(
      try Self.fields2(of: Self.request(names: ["Digest"])) == ["content-length: 3", "trailer: Digest"])
    #expect(try Self.fields2(of: Self.request(.none, names: ["A"])) == ["content-length: 0"], "no content")
  }

  @Test("A given length is left out over HTTP/1.1 if it is right, and refused if not") func givenLength()
    throws
  {
    #expect(try Self.lines(of: Self.request(.bytes(Data([1])), [("content-length", "1")])) == [Self.chunked])
    #expect(throws: RequestHeadViolation.contradictingFraming("Content-Length")) {
      try Self.lines(of: Self.request(.bytes(Data([1])), [("Content-Length", "2")]))
    }
    #expect(
      try Self.lines(of: Self.request(.bytes(Data([1])), [("Transfer-Encoding", "chunked")])) == [
        Self.chunked
      ])
  }

  @Test("The caller's Trailer field takes precedence") func givenNames() throws {
    let request = Self.request(.bytes(Data([1])), [("trailer", "Other")], names: ["Digest"])
    #expect(try Self.lines(of: request) == ["trailer: Other", Self.chunked])
    #expect(try Self.fields2(of: request) == ["trailer: Other", "content-length: 1"])
  }

  @Test(
    "A HEAD or TRACE request with a body is refused with trailers too",
    arguments: [("HEAD", RequestHeadViolation.contentOfHead), ("TRACE", .contentOfTrace)])
  func head(method: String, violation: RequestHeadViolation) {
    #expect(throws: violation) { try Self.lines(of: Self.request(method: method)) }
    #expect(throws: RequestFields.Violation.head(violation)) {
      try Self.fields2(of: Self.request(method: method))
    }
  }

  /// Names that a trailer must not have.
  private static let forbidden = [
    "content-length", "Transfer-Encoding", "HOST", "Trailer", "TE", "Connection", "keep-alive", "Upgrade",
    "Proxy-Connection", "Expect", "Content-Encoding", "Content-Type", "Content-Range", "Authorization",
    "Proxy-Authorization", "Cookie", "Set-Cookie", "Cache-Control", "Range", "If-Match", "Max-Forwards",
  ]

  @Test("Names that must not be trailers are refused before anything is sent", arguments: forbidden)
  func forbiddenName(name: String) {
    let request = Self.request(names: ["A", name])
    #expect(throws: RequestHeadViolation.trailer(name)) { try Self.lines(of: request) }
    #expect(throws: RequestFields.Violation.head(.trailer(name))) { try Self.fields2(of: request) }
    let fields = [HTTPHeader(name: "A", value: "1"), HTTPHeader(name: name, value: "1")]
    var bytes: [UInt8] = [7]
    #expect(throws: RequestHeadViolation.trailer(name)) {
      try RequestChunks.appendEnd(trailers: fields, to: &bytes)
    }
    #expect(bytes == [7])
    #expect(throws: RequestFields.Violation.head(.trailer(name))) { try RequestFields(trailers: fields) }
  }

  @Test(
    "The same names and values are refused as in header fields",
    arguments: [("a b", "1"), ("", "1"), (":status", "1"), ("a", "b\r\nc: d"), ("a", "\u{0}")])
  func invalid(name: String, value: String) {
    let fields = [HTTPHeader(name: name, value: value)]
    var bytes: [UInt8] = []
    #expect(throws: RequestHeadViolation.self) { try RequestChunks.appendEnd(trailers: fields, to: &bytes) }
    #expect(throws: RequestFields.Violation.self) { try RequestFields(trailers: fields) }
    if name != "a" {
      #expect(throws: RequestHeadViolation.self) { try Self.lines(of: Self.request(names: [name])) }
    }
  }

  @Test("Trailers have the limit of a head") func limit() throws {
    let fits = HTTPHeader(name: "a", value: String(repeating: "x", count: 1_000_000 - 5))
    let tooLong = HTTPHeader(name: "a", value: fits.value + "x")
    var bytes: [UInt8] = []
    try RequestChunks.appendEnd(trailers: [fits], to: &bytes)
    #expect(throws: RequestHeadViolation.tooLarge) {
      try RequestChunks.appendEnd(trailers: [tooLong], to: &bytes)
    }
    #expect(throws: RequestFields.Violation.head(.tooLarge)) { try RequestFields(trailers: [tooLong]) }
  }

  @Test("Names of trailers are in lower case over HTTP/2") func lowerCase() throws {
    let fields = [HTTPHeader(name: "X-A", value: " One "), HTTPHeader(name: "x-a", value: "")]
    let trailers = try RequestFields(trailers: fields)
    #expect(Self.lines(of: trailers) == ["x-a: One", "x-a: "])
    #expect(String(decoding: trailers.trailerLines, as: UTF8.self) == "x-a: One\r\nx-a: \r\n\r\n")
  }

  @Test(
    "Connection names TE over HTTP/1.1, once",
    arguments: [
      ([("TE", "trailers")], ["TE: trailers", "Connection: TE"]),
      ([("te", "trailers"), ("connection", "close, Te")], ["te: trailers", "connection: close, Te"]),
      (
        [("Connection", "close"), ("TE", "trailers")],
        ["Connection: close", "TE: trailers", "Connection: TE"]
      ),
      ([("Connection", "TEA")], ["Connection: TEA"]), ([("X-TE", "trailers")], ["X-TE: trailers"]),
    ])
  func te(fields: [(String, String)], expected: [String]) throws {
    let request = WireRequest(
      url: "http://a.example/", origin: Origin(scheme: "http", host: "a.example", port: nil),
      profile: ConnectionProfile()
    ) { $0.fields = fields.map { HTTPHeader(name: $0, value: $1) } }
    #expect(try Self.lines(of: request) == expected)
  }

  @Test("Values of a repeated name are joined") func joined() {
    let fields = [("A", "1"), ("b", "2"), ("a", "3"), ("B", ""), ("A", "4")]
    let headers = HTTPHeaders(joining: fields.map { HTTPHeader(name: $0, value: $1) })
    #expect(headers == [HTTPHeader(name: "A", value: "1, 3, 4"), HTTPHeader(name: "b", value: "2, ")])
    #expect(HTTPHeaders(joining: []).isEmpty)
  }
}
