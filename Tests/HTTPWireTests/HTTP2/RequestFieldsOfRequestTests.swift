import FoundationEssentials
import HTTPWire
import Testing

@Suite("Fields of HTTP/2 for a request") struct RequestFieldsOfRequestTests {
  static func fields(
    _ method: String = "GET", _ url: String = "https://a.example/b?c#d", _ fields: [HTTPHeader] = [],
    body: RequestBody = .none, omitsExpect: Bool = false
  ) throws -> RequestFields {
    let profile = ConnectionProfile(options: TransportOptions(), connectionsPerHost: 6)
    let origin = try #require(Origin(url: url))
    let request = WireRequest(url: url, origin: origin, profile: profile) { parts in
      parts.method = method
      parts.fields = fields
      parts.body = body
    }
    return try RequestFields(request, omitsExpect: omitsExpect)
  }

  static func text(_ fields: RequestFields) -> [String] {
    var lines: [String] = []
    fields.forEach { name, value in
      lines.append("\(String(decoding: name, as: UTF8.self)): \(String(decoding: value, as: UTF8.self))")
    }
    return lines
  }

  @Test(
    "The target is path and query of the URL",
    arguments: [
      ("https://a.example/b?c#d", "/b?c"), ("https://a.example", "/"), ("https://a.example?x", "/?x"),
      ("https://[::1]:8/%7e?", "/%7e?"), ("http://a.example:81/a:b//c", "/a:b//c"),
    ])
  func target(url: String, path: String) throws {
    #expect(Self.text(try Self.fields("GET", url)).contains(":path: \(path)"), "\(url)")
  }

  @Test("The length of the content is announced, even a length of zero if the method implies content")
  func length() throws {
    let data = RequestBody.bytes(Data([1, 2, 3]))
    #expect(Self.text(try Self.fields("GET")).count == 4)
    #expect(Self.text(try Self.fields("GET", body: data)).last == "content-length: 3")
    for method in ["POST", "PUT", "PATCH"] {
      #expect(Self.text(try Self.fields(method)).last == "content-length: 0", "\(method)")
    }
    #expect(Self.text(try Self.fields("DELETE")).count == 4)
    #expect(throws: RequestFields.Violation.head(.contentOfHead)) { try Self.fields("HEAD", body: data) }
    #expect(throws: RequestFields.Violation.head(.contentOfTrace)) { try Self.fields("TRACE", body: data) }
    #expect(Self.text(try Self.fields("TRACE")).count == 4)
  }

  @Test(
    "A field that contradicts the body is refused, as by HTTP/1.1",
    arguments: [
      ("Content-Length", "0", true), ("Content-Length", "4", true), ("Transfer-Encoding", "chunked", true),
      ("Content-Length", "4", false), ("Content-Length", "3", false),
      ("Transfer-Encoding", "chunked", false),
    ])
  func framing(name: String, value: String, isUnknown: Bool) throws {
    let body = isUnknown ? RequestBody.source(UnknownLength()) : .bytes(Data([1, 2, 3]))
    let fields = [HTTPHeader(name: name, value: value)]
    let url = "https://a.example/"
    let origin = try #require(Origin(url: url))
    let request = WireRequest(
      url: url, origin: origin, profile: ConnectionProfile(options: TransportOptions(), connectionsPerHost: 6)
    ) { parts in
      parts.method = "POST"
      parts.fields = fields
      parts.body = body
    }
    var head: [UInt8] = []
    let http1 = Result { try RequestHeadWriter(request, form: .origin).write(into: &head) }
    let http2 = Result { try RequestFields(request) }
    let isSent = if case .success = http1 { true } else { false }
    switch http2 {
    case .success: #expect(isSent)
    case .failure(let error):
      #expect(!isSent && error as? RequestFields.Violation == .head(.contradictingFraming(name)))
    }
  }

  /// A body whose length is not known.
  private final class UnknownLength: BodySource {
    var length: Int64 { -1 }
    var isRepeatable: Bool { false }
    func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? { nil }
    func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading { .end }
    func stop() {}
  }

  @Test("Expect is left out after a refusal", arguments: [true, false]) func expect(omits: Bool) throws {
    let expect = HTTPHeader(name: "Expect", value: "100-continue")
    let text = Self.text(
      try Self.fields(
        "POST", "https://a.example/", [expect], body: .bytes(Data([1])), omitsExpect: omits))
    #expect(text.contains("expect: 100-continue") == !omits)
  }

  @Test("A request without content has no expectation", arguments: ["GET", "POST"])
  func expectationWithoutContent(method: String) throws {
    let fields = [HTTPHeader(name: "Expect", value: "100-Continue"), HTTPHeader(name: "A", value: "b")]
    let text = Self.text(try Self.fields(method, "https://a.example/", fields))
    #expect(text.contains("a: b") && !text.contains { $0.hasPrefix("expect") }, "\(text)")
    let other = Self.text(
      try Self.fields(method, "https://a.example/", [HTTPHeader(name: "Expect", value: "200-ok")]))
    #expect(other.contains("expect: 200-ok"), "only 100-continue waits with content")
    let unknown = Self.text(
      try Self.fields(method, "https://a.example/", fields, body: .source(UnknownLength())))
    #expect(unknown.contains("expect: 100-Continue"), "\(unknown)")
  }

  @Test("The form of HTTP/1.1 has each field once") func lines() throws {
    let fields = try Self.fields("GET", "https://a.example:8/b", [HTTPHeader(name: "X-Y", value: "z")])
    let text = "GET /b HTTP/2\r\nHost: a.example:8\r\nx-y: z\r\n\r\n"
    #expect(String(decoding: fields.lines, as: UTF8.self) == text)
    #expect(fields.lineSize == text.utf8.count)
  }
}
