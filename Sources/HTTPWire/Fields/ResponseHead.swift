/// The status line and the header fields of a response (RFC 9112 §4), stored as received and parsed on demand.
package struct ResponseHead: Sendable {
  /// The role of a response for its request.
  package enum Role: Sendable, Equatable {
    /// A response of HTTP, which may lead elsewhere or ask for credentials.
    case hop
    /// The final response, whatever its status, because its transport follows redirects in another way.
    case answer
    /// No response of HTTP, such as the content of a file. The status is 200 and means nothing.
    case other
    /// No response: a `URLProtocol` class gave data alone. The status is 200 and means nothing.
    case missing

    /// Whether the response came over HTTP.
    package var isOfHTTP: Bool {
      switch self {
      case .hop, .answer: true
      case .other, .missing: false
      }
    }

    package var isHop: Bool { if case .hop = self { true } else { false } }
  }

  package let status: Int
  package let version: HTTPVersion
  package let block: FieldBlock
  package var role = Role.hop

  package init(status: Int, version: HTTPVersion, block: FieldBlock) {
    self.status = status
    self.version = version
    self.block = block
  }

  /// Makes a head of parsed fields, for fakes and tests.
  package init(status: Int, version: HTTPVersion = .http1_1, fields: [HTTPHeader] = []) {
    self.init(status: status, version: version, block: FieldBlock(fields))
  }
}

/// The HTTP version that a response states.
package enum HTTPVersion: UInt8, Sendable {
  case http1_0, http1_1, http2, http3

  /// The version as in a status line: `HTTP/1.1`, `HTTP/2`.
  package var text: String {
    switch self {
    case .http1_0: "HTTP/1.0"
    case .http1_1: "HTTP/1.1"
    case .http2: "HTTP/2"
    case .http3: "HTTP/3"
    }
  }

  /// Its ALPN identifier (RFC 7301), which is how metrics name it.
  package var alpn: String {
    switch self {
    case .http1_0: "http/1.0"
    case .http1_1: "http/1.1"
    case .http2: "h2"
    case .http3: "h3"
    }
  }
}

/// Header fields as bytes: lines `name: value`, each ended by CRLF or LF, in the order in which they
/// came. Looking one up scans the bytes and allocates only the answer.
package struct FieldBlock: Sendable, Equatable {
  package let bytes: [UInt8]
  /// Marks of the fields that are looked up in every response.
  package let marks: FieldMarks

  package init(bytes: [UInt8]) {
    self.init(bytes: bytes, marks: FieldMarks(ofLines: bytes))
  }

  /// Makes a block with the marks of all lines, if each line has been parsed already.
  init(bytes: [UInt8], marks: FieldMarks) {
    self.bytes = bytes
    self.marks = marks
  }

  package init(_ fields: [HTTPHeader]) {
    self.init(bytes: fields.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) })
  }

  /// Returns the values of all fields of this name, joined by `, ` (RFC 9110 §5.3), or `nil` if there is none.
  package func value(of name: StaticString) -> String? {
    var result: String?
    forEachLine(of: name) { field in
      // Appended in place, because a server may repeat a name thousands of times.
      if result == nil { return result = field.value }
      result?.append(", ")
      result?.append(field.value)
    }
    return result
  }

  /// Returns the values of all fields of this name, not joined.
  package func values(of name: StaticString) -> [String] {
    var values: [String] = []
    forEachLine(of: name) { values.append($0.value) }
    return values
  }

  /// Whether there is a field of this name.
  package func contains(_ name: StaticString) -> Bool {
    var found = false
    forEachLine(of: name) { _ in found = true }
    return found
  }

  /// All fields in their order, with repeated ones separate.
  package var fields: [HTTPHeader] {
    var fields: [HTTPHeader] = []
    fields.reserveCapacity(12)
    forEachLine { fields.append(HTTPHeader(name: $0.name, value: $0.value)) }
    return fields
  }

  /// Returns the values of the fields of this name as received, not joined.
  package func rawValues(of name: StaticString) -> [[UInt8]] {
    var values: [[UInt8]] = []
    forEachLine(of: name) { values.append(Array($0.valueBytes)) }
    return values
  }

  /// Returns the elements of all fields of this name, which are separated by commas (RFC 9110 §5.6.1).
  func elements(of name: StaticString) -> [Substring] {
    values(of: name).flatMap { value in
      value.split(separator: ",").map(Self.trimmed).filter { !$0.isEmpty }
    }
  }

  /// The length that all fields `Content-Length`, and all members of their lists, state (RFC 9110 §8.6). `nil` without
  /// one, and unless all of them are the same decimal number below 2^63.
  package var contentLength: Int64? {
    var found: Int64?
    for value in values(of: "Content-Length") {
      for member in value.split(separator: ",", omittingEmptySubsequences: false) {
        guard let length = DecimalNumber.whole(Self.trimmed(member)), found == nil || found == length else {
          return nil
        }
        found = length
      }
    }
    return found
  }

  /// The time in seconds since the response left its origin: the first value of `Age` (RFC 9111 §5.1), at most
  /// ``longestAge``. It is 0 without a valid field.
  package var age: Int64 {
    guard let text = value(of: "Age") else { return 0 }
    let first = text.prefix { $0 != "," }.filter { $0 != " " && $0 != "\t" }
    guard !first.isEmpty, first.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return 0 }
    return min(Int64(first) ?? Self.longestAge, Self.longestAge)
  }

  /// The age for which a larger one counts (RFC 9111 §1.2.2).
  private static let longestAge: Int64 = 1 << 31

  /// Visits the elements of all fields of this name, without the white space around each; empty ones are left out (RFC
  /// 9110 §5.6.1). Allocates nothing.
  func forEachElement(of name: StaticString, _ body: (UnsafeRawBufferPointer) -> Void) {
    forEachLine(of: name) { line in
      let value = UnsafeRawBufferPointer(line.valueBytes)
      var start = 0
      while start <= value.count {
        var end = start
        while end < value.count, value[end] != UInt8(ascii: ",") { end += 1 }
        let element = FieldName.trimmed(UnsafeRawBufferPointer(rebasing: value[start..<end]))
        if !element.isEmpty { body(element) }
        start = end + 1
      }
    }
  }

  /// Whether the fields of this name list `token`, which has no capitals, without regard to case.
  package func lists(_ token: StaticString, in name: StaticString) -> Bool {
    var isFound = false
    forEachElement(of: name) { if FieldName.equal($0, lowercase: token) { isFound = true } }
    return isFound
  }

  private static func trimmed(_ text: Substring) -> Substring {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    let bytes = text.utf8
    guard let start = bytes.firstIndex(where: { !isSpace($0) }),
      let end = bytes.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return text[start...end]
  }

  /// Calls `body` with the fields of this name. The lines of other fields are not parsed.
  private func forEachLine(of name: StaticString, _ body: (Line) -> Void) {
    forEachLine(where: { Self.beginsWith(name, $0) }, body)
  }

  private func forEachLine(
    where matches: (UnsafeBufferPointer<UInt8>) -> Bool = { _ in true }, _ body: (Line) -> Void
  ) {
    bytes.withUnsafeBufferPointer { buffer in
      var start = 0
      while start < buffer.count {
        let end = Self.endOfLine(in: UnsafeRawBufferPointer(buffer), from: start)
        let text = UnsafeBufferPointer(rebasing: buffer[start..<end])
        if matches(text), let line = Line(text) { body(line) }
        start = end + 1
      }
    }
  }

  /// Whether a line is one of the field `name`.
  private static func beginsWith(_ name: StaticString, _ line: UnsafeBufferPointer<UInt8>) -> Bool {
    let count = name.utf8CodeUnitCount
    guard line.count > count, line[count] == 0x3A else { return false }
    for index in 0..<count {
      let byte = FieldName.lowercased(name.utf8Start[index])
      guard FieldName.lowercased(line[index]) == byte else { return false }
    }
    return true
  }

  /// Returns the position of the next line feed, or the end, looking at eight bytes at a time.
  private static func endOfLine(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while bytes.count - index >= 8 {
      let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      // The highest bit of each byte that is a line feed; the first one found is always right.
      let other = word ^ 0x0A0A_0A0A_0A0A_0A0A
      let found = (other &- 0x0101_0101_0101_0101) & ~other & 0x8080_8080_8080_8080
      if found != 0 { return index + found.trailingZeroBitCount / 8 }
      index += 8
    }
    while index < bytes.count, bytes[index] != 0x0A { index += 1 }
    return index
  }

  /// One line, cut at its colon; white space around the value is not part of it (RFC 9112 §5.1).
  private struct Line {
    let nameBytes: UnsafeBufferPointer<UInt8>
    let valueBytes: UnsafeBufferPointer<UInt8>

    init?(_ line: UnsafeBufferPointer<UInt8>) {
      guard let colon = line.firstIndex(of: 0x3A), colon > 0 else { return nil }
      var start = colon + 1
      var end = line.count
      while end > start, Self.isSpace(line[end - 1]) { end -= 1 }
      while start < end, Self.isSpace(line[start]) { start += 1 }
      nameBytes = UnsafeBufferPointer(rebasing: line[0..<colon])
      valueBytes = UnsafeBufferPointer(rebasing: line[start..<end])
    }

    var name: String { String(decoding: nameBytes, as: UTF8.self) }

    /// The value; bytes that are not UTF-8 are read as ISO Latin 1, so that none are lost. In a URL, the bytes beyond
    /// ASCII are escaped instead, because in another encoding it would lead to another resource.
    var value: String {
      if let text = String(validating: valueBytes, as: UTF8.self) { return text }
      return isURL ? escapedValue : String(String.UnicodeScalarView(valueBytes.map { Unicode.Scalar($0) }))
    }

    /// Whether the whole value is a URL, or a relative reference.
    private var isURL: Bool {
      let name = UnsafeRawBufferPointer(nameBytes)
      return FieldName.equal(name, lowercase: "location")
        || FieldName.equal(name, lowercase: "content-location")
    }

    private var escapedValue: String {
      let digits = Array("0123456789ABCDEF".utf8)
      var text: [UInt8] = []
      for byte in valueBytes {
        if byte < 0x80 {
          text.append(byte)
        } else {
          text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
      }
      return String(decoding: text, as: UTF8.self)
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
      byte == 0x20 || byte == 0x09 || byte == 0x0D
    }
  }
}

/// The fields of interest that a head contains. The marks are noted while the lines of the head are read. So a
/// response without such fields is not searched for each of them.
package struct FieldMarks: OptionSet, Sendable {
  @usableFromInline package let rawValue: UInt8

  @inlinable package init(rawValue: UInt8) { self.rawValue = rawValue }

  @inlinable package static var setCookie: FieldMarks { FieldMarks(rawValue: 1) }
  @inlinable package static var contentEncoding: FieldMarks { FieldMarks(rawValue: 2) }
  /// Fields without which a response cannot answer another request, because they give a freshness lifetime or a
  /// validator: `Cache-Control`, `Expires`, `ETag`, `Last-Modified`.
  @inlinable package static var reusable: FieldMarks { FieldMarks(rawValue: 4) }
  /// Fields about the end of the connection that say more than `keep-alive`: `Connection`, `Proxy-Connection`.
  @inlinable package static var connection: FieldMarks { FieldMarks(rawValue: 8) }
  /// The time for which the server keeps the connection: `Keep-Alive`.
  @inlinable package static var keepAlive: FieldMarks { FieldMarks(rawValue: 16) }

  /// Returns whether the head contains one of the fields with a mark.
  @inlinable package func contains(_ mark: FieldMarks) -> Bool { rawValue & mark.rawValue != 0 }

  /// Makes the mark of a field; empty if it has none.
  ///
  /// - Parameter value: The value without the white space around it.
  init(ofField name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    switch name.count {
    case 4 where FieldName.equal(name, lowercase: "etag"),
      7 where FieldName.equal(name, lowercase: "expires"),
      13 where FieldName.equal(name, lowercase: "cache-control"),
      13 where FieldName.equal(name, lowercase: "last-modified"):
      self = .reusable
    case 10 where FieldName.equal(name, lowercase: "set-cookie"): self = .setCookie
    case 10 where FieldName.equal(name, lowercase: "connection"),
      16 where FieldName.equal(name, lowercase: "proxy-connection"):
      self = FieldName.equal(value, lowercase: "keep-alive") ? [] : .connection
    case 10 where FieldName.equal(name, lowercase: "keep-alive"): self = .keepAlive
    case 16 where FieldName.equal(name, lowercase: "content-encoding"): self = .contentEncoding
    default: self = []
    }
  }

  /// Makes the marks of field lines, each ended by a line feed.
  init(ofLines bytes: [UInt8]) {
    var marks: FieldMarks = []
    bytes.withUnsafeBytes { bytes in
      var start = 0
      while start < bytes.count {
        let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
        if let colon = bytes[start..<end].firstIndex(of: UInt8(ascii: ":")) {
          let name = UnsafeRawBufferPointer(rebasing: bytes[start..<colon])
          let rest = UnsafeRawBufferPointer(rebasing: bytes[colon + 1..<end])
          let value = UnsafeRawBufferPointer(rebasing: rest.last == 0x0D ? rest.dropLast() : rest[...])
          marks.formUnion(FieldMarks(ofField: name, FieldName.trimmed(value)))
        }
        start = end + 1
      }
    }
    self = marks
  }
}

/// The value of a field `Content-Range` (RFC 9110 §14.4): the position of a part in the whole representation.
///
/// A value that contradicts itself is refused, because the bytes of the part would be written at the wrong offset.
///
/// ```swift
/// let range = ContentRange("bytes 100-199/1000")
/// ```
///
/// Its ``bounds`` are `100..<200`, and its ``total`` is 1000.
public struct ContentRange: Sendable, Equatable {
  /// The bytes of the part, counted from 0 and never empty. `nil` if the range that was requested could not be
  /// satisfied, as a response with the status 416 says it: `bytes */1000`.
  public let bounds: Range<Int64>?
  /// The number of bytes of the whole representation. `nil` if the server does not know it: `bytes 100-199/*`.
  public let total: Int64?

  /// Parses the value of a field. Returns `nil` for another unit than bytes, for several ranges, for anything but
  /// decimal digits, for a range that ends before it begins, and for one that exceeds the total or the largest `Int64`.
  public init?(_ value: String) {
    let bytes = Array(value.utf8.prefix(Self.longestValue + 1))
    guard bytes.count <= Self.longestValue, bytes.count > 6,
      FieldName.equal(String(value.prefix(6)), "bytes ")
    else { return nil }
    let parts = bytes[6...].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let total = Self.number(parts[1])
    guard total != nil || parts[1].elementsEqual("*".utf8) else { return nil }
    self.total = total
    if parts[0].elementsEqual("*".utf8) {
      guard total != nil else { return nil }
      bounds = nil
      return
    }
    let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    // With the largest number, the end of the range would overflow.
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
      last < total ?? .max
    else { return nil }
    bounds = first..<(last + 1)
  }

  /// The largest numbers take 65 bytes.
  private static let longestValue = 80

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(String(decoding: digits, as: UTF8.self))
  }
}

extension ContentRange {
  /// Reads the field of a response; `nil` without one, and for a field that comes twice.
  package init?(_ head: ResponseHead) {
    guard let value = head.block.value(of: "Content-Range") else { return nil }
    self.init(value)
  }
}
