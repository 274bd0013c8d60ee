import HTTPWire
import Testing

/// The rules of `Documentation/HTTPReading.md` that concern heads.
@Suite("Strict reading of heads") struct HeadReadingTests {
  private static func violation(_ lines: String...) -> HeadViolation? {
    var assembly = ResponseAssembly()
    var last: HeadViolation?
    for line in lines {
      let action = Array((line + "\r\n").utf8).withUnsafeBytes { assembly.lineReceived($0) }
      if case .refuse(let violation) = action { last = last ?? violation }
    }
    return last
  }

  private static func assembly(_ lines: String...) -> ResponseAssembly {
    var assembly = ResponseAssembly()
    for line in lines { ResponseAssemblyTests.feed(&assembly, line) }
    return assembly
  }

  static let fieldLines: [(String, HeadViolation?)] = [
    ("A: b", nil), ("A:b", nil), ("A:", nil), ("A: \t ", nil), ("!#$%&'*+-.^_`|~09az: b", nil),
    ("A: b\tc\u{1}\u{7F}é", nil), ("A: b: c", nil),
    ("no colon", .missingColon), ("A", .missingColon),
    (":", .fieldName("")), (": b", .fieldName("")), ("A B: c", .fieldName("A B")), ("Ä: b", .fieldName("Ä")),
    ("A\u{0}: b", .fieldName("A\u{0}")), ("A,B: c", .fieldName("A,B")), ("\u{B}A: b", .fieldName("\u{B}A")),
    ("A : b", .spaceBeforeColon("A")), ("A\t \t: b", .spaceBeforeColon("A")),
    ("A: b\rc", .fieldValue(field: "A", character: 0x0D)),
    ("A: b\r", .fieldValue(field: "A", character: 0x0D)),
    ("A: \u{0}", .fieldValue(field: "A", character: 0)), ("A:\u{0}b", .fieldValue(field: "A", character: 0)),
  ]

  @Test("Field lines", arguments: fieldLines)
  func fieldLine(line: String, expected: HeadViolation?) {
    #expect(Self.violation("HTTP/1.1 200 OK", line) == expected)
    #expect(Self.violation("HTTP/1.1 103 Early", line) == expected, "informational heads are heads too")
    #expect(Self.violation("HTTP/1.1 200 OK", "", line) == expected, "trailers")
    #expect(expected?.message.contains("RFC") ?? true)
  }

  static let lengths: [(String, HeadViolation?)] = [
    ("5", nil), ("005", nil), ("5, 5", nil), ("5 ,\t5", nil), ("9223372036854775807", nil), ("0", nil),
    ("9223372036854775808", .contentLength), ("99999999999999999999", .contentLength),
    ("18446744073709551621", .contentLength), ("", .contentLength), (",", .contentLength),
    ("5,", .contentLength),
    ("+5", .contentLength), ("-5", .contentLength), ("5a", .contentLength), ("0x5", .contentLength),
    ("1e2", .contentLength), ("5 5", .contentLength), ("5.0", .contentLength), ("\"5\"", .contentLength),
    ("٥", .contentLength), ("5, 6", .contradictingContentLengths), ("6,5,6", .contradictingContentLengths),
  ]

  @Test("Content-Length", arguments: lengths)
  func contentLength(value: String, expected: HeadViolation?) {
    #expect(Self.violation("HTTP/1.1 200 OK", "Content-Length: \(value)") == expected)
    #expect(Self.violation("HTTP/2 200", "content-length:\(value)") == expected)
  }

  @Test("Content-Length over several fields")
  func repeatedContentLength() {
    #expect(Self.violation("HTTP/1.1 200 OK", "Content-Length: 5", "CONTENT-LENGTH: 05") == nil)
    #expect(
      Self.violation("HTTP/1.1 200 OK", "Content-Length: 5", "A: b", "Content-Length: 6")
        == .contradictingContentLengths)
    #expect(
      Self.violation(
        "HTTP/1.1 103 Early", "Content-Length: 5", "", "HTTP/1.1 200 OK", "Content-Length: 6", "")
        == nil, "another head has another length")
    #expect(Self.assembly("HTTP/1.1 200 OK", "Content-Length: 7").framing.contentLength == 7)
    #expect(!Self.assembly("HTTP/1.1 200 OK", "Content-Length: 7").framing.isChunked)
  }

  static let codings: [(String, HeadViolation?)] = [
    ("chunked", nil), ("Chunked", nil), (" , chunked ,", nil), ("identity", nil),
    ("gzip", .transferCoding("gzip")), ("gzip, chunked", .transferCoding("gzip")),
    ("chunked, gzip", .transferCoding("gzip")), ("chunked, chunked", .transferCoding("chunked")),
    ("identity, chunked", .transferCoding("chunked")), ("chunked;a=b", .transferCoding("chunked;a=b")),
    ("xchunked", .transferCoding("xchunked")), ("\"chunked\"", .transferCoding("\"chunked\"")),
    ("", .transferCoding("")), (",", .transferCoding("")), ("chunked\u{B}", .transferCoding("chunked\u{B}")),
  ]

  @Test("Transfer-Encoding", arguments: codings)
  func transferEncoding(value: String, expected: HeadViolation?) {
    #expect(Self.violation("HTTP/1.1 200 OK", "Transfer-Encoding: \(value)") == expected)
    #expect(Self.violation("HTTP/2 200", "transfer-encoding: \(value)") == .transferCodingInHTTP2)
  }

  @Test("Ambiguous framing")
  func ambiguity() {
    func isAmbiguous(_ lines: String...) -> Bool {
      var assembly = ResponseAssembly()
      for line in lines + [""] { ResponseAssemblyTests.feed(&assembly, line) }
      return assembly.head.map { assembly.framing.isAmbiguous($0.version) } ?? false
    }
    #expect(!isAmbiguous("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"))
    #expect(!isAmbiguous("HTTP/1.0 200 OK", "Content-Length: 5"))
    #expect(isAmbiguous("HTTP/1.0 200 OK", "Transfer-Encoding: chunked"))
    #expect(isAmbiguous("HTTP/1.1 200 OK", "Transfer-Encoding: identity"))
    #expect(isAmbiguous("HTTP/1.1 200 OK", "Content-Length: 5", "Transfer-Encoding: chunked"))
    #expect(
      !isAmbiguous(
        "HTTP/1.1 103 Early", "Transfer-Encoding: identity", "", "HTTP/1.1 200 OK", "Content-Length: 5"))
  }

  @Test("Folded fields")
  func folds() {
    #expect(Self.violation("HTTP/1.1 200 OK", " A: b") == .foldBeforeFirstField)
    #expect(Self.violation("HTTP/1.1 200 OK", "\tA: b") == .foldBeforeFirstField)
    #expect(
      Self.violation("HTTP/1.1 200 OK", "Content-Length: 5", " 6") == .foldedFraming("Content-Length"))
    #expect(
      Self.violation("HTTP/1.1 200 OK", "A: b", "transfer-encoding: chunked", "\t")
        == .foldedFraming("transfer-encoding"))
    #expect(
      Self.violation("HTTP/1.1 200 OK", "B: c", "A: b", " c", " d\u{0}")
        == .fieldValue(field: "A", character: 0))
    #expect(Self.violation("HTTP/1.1 200 OK", "Content-Length: 5", "A: b", " c", "") == nil)
  }

  @Test("Status codes and versions")
  func startLines() {
    #expect(Self.violation("HTTP/1.1 099 OK") == .statusCode(99))
    #expect(Self.violation("HTTP/1.1 000 OK") == .statusCode(0))
    #expect(Self.violation("HTTP/1.1 100 OK") == nil)
    #expect(Self.violation("HTTP/2 101", "") == .unrequestedUpgrade)
    #expect(Self.violation("HTTP/1.0 101 No", "") == .unrequestedUpgrade)
    for (line, version) in [("HTTP/2 200", HTTPVersion.http2), ("HTTP/3 200 ", .http3)] {
      var assembly = ResponseAssembly()
      guard case .verify(version) = ResponseAssemblyTests.feed(&assembly, line) else {
        Issue.record("\(line) is not verified")
        continue
      }
    }
    var assembly = ResponseAssembly()
    guard case .keep = ResponseAssemblyTests.feed(&assembly, "HTTP/1.1 200 OK") else {
      Issue.record("HTTP/1.1 does not need verification")
      return
    }
  }

  @Test("Locations of a redirect")
  func locations() {
    #expect(
      Self.violation("HTTP/1.1 302 Found", "Location: /a", "location: /b", "") == .contradictingLocations)
    #expect(Self.violation("HTTP/1.1 302 Found", "Location: /a", "location:/a ", "") == nil)
    #expect(Self.violation("HTTP/1.1 399 Found", "Location: /a", "Location:", "") == .contradictingLocations)
    #expect(Self.violation("HTTP/1.1 201 Created", "Location: /a", "Location: /b", "") == nil)
  }

  @Test("NUL, CR and LF are found at each position of a value of any length")
  func placesOfForbiddenBytes() {
    for length in 1...20 {
      for place in 0..<length {
        for byte in UInt8(0)...0x1F {
          var value = [UInt8](repeating: 0x7E, count: length)
          value[place] = byte
          let isForbidden = byte == 0x00 || byte == 0x0A || byte == 0x0D
          #expect(
            Self.violation("HTTP/1.1 200 OK", "A:" + String(decoding: value, as: UTF8.self))
              == (isForbidden ? .fieldValue(field: "A", character: byte) : nil))
        }
      }
    }
  }

  @Test("Trailers count against the limit together with the heads")
  func trailerLimit() {
    // "A: 123456\r\n" has eleven bytes.
    for (limit, isRefused) in [(33, false), (32, true)] {
      var assembly = ResponseAssembly(headerSizeLimit: limit)
      ResponseAssemblyTests.feed(&assembly, "HTTP/1.1 200 OK", "A: 123456", "", "A: 123456")
      #expect(assembly.headSizeLeft == limit - 22)
      let last = ResponseAssemblyTests.feed(&assembly, "A: 123456")
      #expect(ResponseAssemblyTests.isRefused(last) == isRefused)
    }
  }

  @Test("Status lines of informational responses count against the limit")
  func informationalStatusLines() {
    // Two status lines of twenty bytes, and a field of eleven.
    for (limit, isRefused) in [(51, false), (50, true)] {
      var assembly = ResponseAssembly(headerSizeLimit: limit)
      ResponseAssemblyTests.feed(
        &assembly, "HTTP/1.1 103 Early", "", "HTTP/1.1 103 Early", "", "HTTP/1.1 200 OK")
      #expect(assembly.headSizeLeft == limit - 40)
      let last = ResponseAssemblyTests.feed(&assembly, "A: 123456")
      #expect(ResponseAssemblyTests.isRefused(last) == isRefused)
    }
  }

  @Test("Informational responses without fields are limited")
  func informationalResponsesWithoutFields() {
    var assembly = ResponseAssembly(headerSizeLimit: 45)
    ResponseAssemblyTests.feed(&assembly, "HTTP/1.1 103 Early", "", "HTTP/1.1 103 Early", "")
    #expect(ResponseAssemblyTests.isRefused(ResponseAssemblyTests.feed(&assembly, "HTTP/1.1 103 Early")))
  }

  @Test("Messages name the field and never its value")
  func messages() {
    let violation = HeadViolation.fieldValue(field: "Set-Cookie\r\n", character: 0x0D)
    #expect(violation.message.contains(#""Set-Cookie\r\n""#) && violation.message.contains("carriage return"))
    let all: [HeadViolation] = [
      .statusLine, .statusCode(3), .version("HTTP/2"), .unrequestedUpgrade, .missingColon, .fieldName("a b"),
      .spaceBeforeColon("a"), .foldBeforeFirstField, .foldedFraming("a"), .contentLength,
      .contradictingContentLengths, .transferCoding("x"), .transferCodingInHTTP2, .contradictingLocations,
      .chunkSize, .chunkExtension, .chunkEnd,
    ]
    #expect(Set(all.map(\.message)).count == all.count)
    for violation in all { #expect(violation.message.contains("(RFC 9") && violation.message.hasSuffix(".")) }
  }
}
