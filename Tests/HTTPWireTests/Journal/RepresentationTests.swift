import HTTPWire
import Testing

/// The representation of which a file has bytes, and the responses that continue it.
@Suite("Representations") struct RepresentationTests {
  private static let noon = HTTPDate(secondsSince1970: 1_720_000_000)
  private static let modified = ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
  private static let later = ("Date", "Mon, 01 Jan 2024 00:00:01 GMT")

  private static func head(_ status: Int, _ fields: [(String, String)]) -> ResponseHead {
    ResponseHead(status: status, fields: fields.map { HTTPHeader(name: $0.0, value: $0.1) })
  }

  @Test("The length is the whole file's, unless the body is coded") func lengths() {
    for (status, fields, length) in [
      (200, [("Content-Length", "7")], 7), (200, [], nil), (200, [("Content-Length", "+7")], nil),
      (200, [("Content-Length", "7"), ("Content-Length", "8")], nil),
      (200, [("Content-Length", "7"), ("Content-Length", "7")], 7), (200, [("Content-Length", "7, 7")], 7),
      (200, [("Content-Length", "99999999999999999999")], nil),
      (200, [("Content-Length", "7"), ("Content-Encoding", "gzip")], nil),
      (200, [("Content-Length", "7"), ("Content-Encoding", "Identity")], 7),
      (206, [("Content-Length", "7"), ("Content-Range", "bytes 3-9/10")], 10),
      (206, [("Content-Range", "bytes 3-9/*")], nil), (404, [("Content-Length", "7")], nil),
    ] as [(Int, [(String, String)], Int?)] {
      #expect(Representation(Self.head(status, fields), now: Self.noon).length == length, "\(fields)")
    }
  }

  @Test("The validator is a strong entity tag, or a date a second before the response") func validators() {
    for (fields, validator) in [
      ([("ETag", "\"a\"")], "\"a\""), ([("ETag", "W/\"a\""), Self.modified, Self.later], nil),
      ([Self.modified, Self.later], Self.modified.1), ([Self.modified], nil),
      ([Self.modified, ("Date", Self.modified.1)], nil), ([("ETag", "\"a"), Self.modified, Self.later], nil),
    ] as [([(String, String)], String?)] {
      #expect(Representation(Self.head(200, fields), now: Self.noon).validator == validator, "\(fields)")
    }
  }

  @Test("The rest of a response can be asked for by its strong validator, if it is not coded")
  func resumable() {
    let tag = ("ETag", "\"a\"")
    for (status, fields, offset, isResumable) in [
      (200, [tag], 0, true), (200, [], 0, false), (200, [("ETag", "W/\"a\"")], 0, false),
      (404, [tag], 0, false),
      (200, [Self.modified, Self.later], 0, true), (200, [Self.modified], 0, false),
      (200, [tag, ("Content-Encoding", "gzip")], 0, false),
      (200, [tag, ("Content-Encoding", "Identity")], 0, true),
      (200, [tag, ("Accept-Ranges", "None")], 0, false), (200, [tag, ("Accept-Ranges", "bytes")], 0, true),
      (206, [tag, Self.range], 4, true), (206, [tag, Self.range], 5, false), (206, [tag], 0, false),
      (206, [tag, ("Content-Range", "bytes */10")], 0, false),
      (206, [tag, ("Content-Range", "bytes 0-4/10")], 0, false),
      (206, [tag, ("Content-Range", "bytes 0-4/*")], 0, false),
      (206, [tag, ("Content-Range", "bytes 0-9/10")], 0, true),
    ] as [(Int, [(String, String)], Int64, Bool)] {
      let made = Representation(resumable: Self.head(status, fields), from: offset, now: Self.noon)
      #expect((made != nil) == isResumable, "\(status) \(fields) from \(offset)")
    }
  }

  @Test("Validators are compared by their bytes") func bytes() {
    let tags = ["\"\u{E9}\"", "\"e\u{301}\"", "\"\u{301}\""]
    for tag in tags {
      let version = Representation(length: 10, validator: tag)
      #expect(version.isValid)
      let same = version.continuation(after: 4, by: Self.head(206, [("ETag", tag), Self.range]))
      #expect(same == Self.rest)
      for other in tags where !other.utf8.elementsEqual(tag.utf8) {
        #expect(version != Representation(length: 10, validator: other))
        let answer = version.continuation(after: 4, by: Self.head(206, [("ETag", other), Self.range]))
        #expect(answer == .otherVersion)
      }
    }
  }

  private static let range = ("Content-Range", "bytes 4-9/10")
  private static let rest = Representation.Continuation.rest(4..<10, total: 10)

  @Test(
    "A part continues a file if it begins with the next byte and repeats the validator",
    arguments: [
      ("\"a\"", [range, ("ETag", "\"a\"")], rest), ("\"a\"", [range], .otherVersion),
      ("\"a\"", [range, ("ETag", "W/\"a\"")], .otherVersion), ("\"a\"", [range, modified], .otherVersion),
      (modified.1, [range, modified], rest), (modified.1, [range], rest),
      (modified.1, [range, ("ETag", "\"a\"")], .otherVersion),
      (modified.1, [range, ("Last-Modified", "Mon")], .otherVersion),
      (nil, [range], rest), (nil, [range, ("ETag", "\"b\"")], rest),
      (nil, [("Content-Range", "bytes 4-9/*")], rest),
      (nil, [("Content-Range", "bytes 4-8/*")], .rest(4..<9, total: 10)),
      (nil, [("Content-Range", "bytes 4-10/*")], .otherVersion),
      (nil, [("Content-Range", "bytes 4-9/11")], .otherVersion),
      (nil, [("Content-Range", "bytes 5-9/10")], .otherPart), (nil, [], .otherPart),
      (nil, [("Content-Range", "bytes */10")], .otherPart), (nil, [range, range], .otherPart),
      (nil, [range, ("Content-Length", "6")], rest), (nil, [range, ("Content-Length", "7")], .otherPart),
      (nil, [range, ("Content-Length", "6"), ("Content-Length", "6")], rest),
      (nil, [range, ("Content-Length", "6, 7")], .otherPart),
      (nil, [range, ("Content-Length", "x")], .otherPart),
      (nil, [range, ("Content-Encoding", "gzip")], .otherPart),
    ] as [(String?, [(String, String)], Representation.Continuation)])
  func continuations(
    validator: String?, fields: [(String, String)], expected: Representation.Continuation
  ) {
    let version = Representation(length: 10, validator: validator)
    #expect(version.continuation(after: 4, by: Self.head(206, fields)) == expected)
    #expect(version.continuation(after: 4, by: Self.head(200, fields)) == .otherPart)
  }

  @Test("Without a length, a part of a file may end anywhere") func unknownLength() {
    let version = Representation(length: nil, validator: "\"a\"")
    for (range, total) in [("bytes 4-9/*", nil), ("bytes 4-9/20", 20)] as [(String, Int64?)] {
      let head = Self.head(206, [("Content-Range", range), ("ETag", "\"a\"")])
      #expect(version.continuation(after: 4, by: head) == .rest(4..<10, total: total))
    }
    let other = Self.head(206, [("Content-Range", "bytes 4-9/*"), ("ETag", "\"b\"")])
    #expect(version.continuation(after: 4, by: other) == .otherVersion)
  }
}
