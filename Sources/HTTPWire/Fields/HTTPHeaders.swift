import FoundationEssentials

/// The header fields of a message: ordered, each name once, names compared without regard to case.
///
/// The last write for a name wins and also gives the spelling; it keeps the position of the entry that it replaces. A
/// new name goes to the end, and fields are sent in this order.
///
/// ```swift
/// var headers: HTTPHeaders = ["Accept": "application/json"]
/// headers.add(.authorization(bearerToken: "secret"))
/// headers["accept"] = "text/plain"  // replaces the first
/// ```
///
/// Two values are equal when they hold the same fields in the same order and spelling.
public struct HTTPHeaders: Equatable, Hashable, Sendable {
  private var fields: [HTTPHeader] = []
  /// The positions of the names, for lists that are too long for a linear search; `nil` until needed.
  private var positions: FieldIndex?

  /// Makes an empty list.
  public init() {}

  /// Makes a list of the given fields; of a name that comes twice the last one wins.
  public init(_ headers: [HTTPHeader]) {
    fields.reserveCapacity(headers.count)
    for header in headers { update(header) }
  }

  /// Makes a list of a dictionary, in the dictionary's order; names that differ only in case collapse.
  public init(_ dictionary: [String: String]) {
    fields.reserveCapacity(dictionary.count)
    for (name, value) in dictionary { update(name: name, value: value) }
  }

  /// Makes a list of received fields. Values of a repeated name are joined by `, ` (RFC 9110 §5.3), under the spelling
  /// that came first.
  package init(joining headers: [HTTPHeader]) {
    fields.reserveCapacity(headers.count)
    // Joined at the end, because a server may repeat a name thousands of times.
    var repeated: [Int: [String]] = [:]
    for header in headers {
      if let position = position(of: header.name) {
        repeated[position, default: [fields[position].value]].append(header.value)
      } else {
        update(header)
      }
    }
    for (position, values) in repeated {
      fields[position] = HTTPHeader(name: fields[position].name, value: values.joined(separator: ", "))
    }
  }

  /// Sets a field; the same as ``update(name:value:)``.
  public mutating func add(name: String, value: String) {
    update(HTTPHeader(name: name, value: value))
  }

  /// Sets a field; the same as ``update(_:)``.
  public mutating func add(_ header: HTTPHeader) {
    update(header)
  }

  /// Replaces the field of this name without moving it, or appends it.
  public mutating func update(name: String, value: String) {
    update(HTTPHeader(name: name, value: value))
  }

  /// Replaces the field of this name without moving it, or appends it.
  public mutating func update(_ header: HTTPHeader) {
    if positions == nil, fields.count >= FieldIndex.threshold { positions = FieldIndex(fields) }
    if let position = position(of: header.name) {
      fields[position] = header
    } else {
      fields.append(header)
      positions?.note(header.name, at: fields.count - 1)
    }
  }

  /// Removes the field of this name, if there is one.
  public mutating func remove(name: String) {
    guard let position = position(of: name) else { return }
    fields.remove(at: position)
    positions = nil
  }

  /// Sorts the fields by their lower-cased names.
  public mutating func sort() {
    fields.sort { $0.name.lowercased() < $1.name.lowercased() }
    positions = nil
  }

  /// Returns the fields, sorted by their lower-cased names.
  public func sorted() -> HTTPHeaders {
    var copy = self
    copy.sort()
    return copy
  }

  /// Returns the value of the field of this name, or `nil`.
  public func value(for name: String) -> String? {
    position(of: name).map { fields[$0].value }
  }

  /// The value of the field of this name; setting `nil` removes it.
  public subscript(_ name: String) -> String? {
    get { value(for: name) }
    set {
      if let newValue {
        update(name: name, value: newValue)
      } else {
        remove(name: name)
      }
    }
  }

  /// The fields as a dictionary; the order is lost.
  public var dictionary: [String: String] {
    Dictionary(fields.map { ($0.name, $0.value) }, uniquingKeysWith: { _, last in last })
  }

  /// The fields as an array.
  package var all: [HTTPHeader] { fields }

  private func position(of name: String) -> Int? {
    if let positions { return positions.position(of: name) }
    return fields.firstIndex { FieldName.equal($0.name, name) }
  }
}

extension HTTPHeaders {
  /// Returns whether two lists hold the same fields in the same order and spelling.
  public static func == (left: HTTPHeaders, right: HTTPHeaders) -> Bool { left.fields == right.fields }

  /// Feeds the fields in their order into `hasher`.
  public func hash(into hasher: inout Hasher) { hasher.combine(fields) }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
  /// Makes a list of `"name": "value"` pairs in their order; of a name that comes twice the last wins.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { update(name: name, value: value) }
  }

  /// Makes a list of fields; of a name that comes twice the last wins.
  public init(arrayLiteral elements: HTTPHeader...) {
    self.init(elements)
  }
}

extension HTTPHeaders: Sequence, Collection {
  /// Iterates over the fields in their order.
  public func makeIterator() -> IndexingIterator<[HTTPHeader]> { fields.makeIterator() }
  /// The position of the first field.
  public var startIndex: Int { fields.startIndex }
  /// The position after the last field.
  public var endIndex: Int { fields.endIndex }
  /// The field at a position between ``startIndex`` and ``endIndex``.
  public subscript(position: Int) -> HTTPHeader { fields[position] }
  /// Returns the position after `index`.
  public func index(after index: Int) -> Int { fields.index(after: index) }
}

extension HTTPHeaders: CustomStringConvertible {
  /// One `Name: value` line a field, in their order.
  public var description: String {
    fields.map(\.description).joined(separator: "\n")
  }
}

/// One header field: a name and a value (RFC 9110 §5).
///
/// ```swift
/// let field = HTTPHeader(name: "X-Request-ID", value: "42")
/// let token = HTTPHeader.authorization(bearerToken: "secret")
/// ```
public struct HTTPHeader: Equatable, Hashable, Sendable, CustomStringConvertible {
  /// The name, in the spelling that is sent; compared case-insensitively.
  public let name: String
  /// The value, exactly as sent.
  public let value: String

  /// Makes a field. Neither part is checked here; a line break or another forbidden character makes
  /// the request fail with a clear error before anything is sent.
  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }

  /// `name: value`.
  public var description: String { ReadableText.line("\(name): \(value)") }
}

extension HTTPHeader {
  /// Makes an `Accept` field (RFC 9110 §12.5.1).
  public static func accept(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Accept", value: value)
  }

  /// Makes an `Accept-Charset` field (RFC 9110 §12.5.2).
  public static func acceptCharset(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Accept-Charset", value: value)
  }

  /// Makes an `Accept-Language` field (RFC 9110 §12.5.4).
  public static func acceptLanguage(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Accept-Language", value: value)
  }

  /// Makes an `Accept-Encoding` field (RFC 9110 §12.5.3).
  public static func acceptEncoding(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Accept-Encoding", value: value)
  }

  /// Makes an `Authorization` field with Basic credentials (RFC 7617): base64 of the UTF-8 `user:password`.
  public static func authorization(username: String, password: String) -> HTTPHeader {
    let credentials = Data("\(username):\(password)".utf8).base64EncodedString()
    return authorization("Basic \(credentials)")
  }

  /// Makes an `Authorization` field with a bearer token (RFC 6750 §2.1).
  public static func authorization(bearerToken: String) -> HTTPHeader {
    authorization("Bearer \(bearerToken)")
  }

  /// Makes an `Authorization` field with any credentials (RFC 9110 §11.6.2).
  public static func authorization(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Authorization", value: value)
  }

  /// Makes a `Content-Disposition` field (RFC 6266).
  public static func contentDisposition(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Content-Disposition", value: value)
  }

  /// Makes a `Content-Encoding` field (RFC 9110 §8.4).
  public static func contentEncoding(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Content-Encoding", value: value)
  }

  /// Makes a `Content-Type` field (RFC 9110 §8.3).
  public static func contentType(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Content-Type", value: value)
  }

  /// Makes a `User-Agent` field (RFC 9110 §10.1.5).
  public static func userAgent(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "User-Agent", value: value)
  }

  /// Makes a `Sec-WebSocket-Protocol` field (RFC 6455 §11.3.4).
  public static func websocketProtocol(_ value: String) -> HTTPHeader {
    HTTPHeader(name: "Sec-WebSocket-Protocol", value: value)
  }
}

/// Comparison and form of field names (RFC 9110 §5.1).
package enum FieldName {
  /// Whether two names are the same without regard to ASCII case; allocates nothing.
  package static func equal(_ left: String, _ right: String) -> Bool {
    left.utf8.count == right.utf8.count && equalBytes(left, right)
  }

  private static func equalBytes(_ left: String, _ right: String) -> Bool {
    var (left, right) = (left, right)
    return left.withUTF8 { left in
      right.withUTF8 { right in
        for index in 0..<left.count where lowercased(left[index]) != lowercased(right[index]) { return false }
        return true
      }
    }
  }

  /// Whether a name is `other`, which has no capitals, without regard to ASCII case. Neither contains control
  /// characters.
  static func equal(_ name: UnsafeRawBufferPointer, lowercase other: StaticString) -> Bool {
    let count = other.utf8CodeUnitCount
    guard count == name.count else { return false }
    var index = 0
    while count - index >= 8 {
      let word = name.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      let expected = UnsafeRawPointer(other.utf8Start).loadUnaligned(fromByteOffset: index, as: UInt64.self)
      // This bit alone tells capitals from small letters, and control characters from others.
      let bits: UInt64 = 0x2020_2020_2020_2020
      guard word | bits == expected | bits else { return false }
      index += 8
    }
    while index < count {
      guard lowercased(name[index]) == other.utf8Start[index] else { return false }
      index += 1
    }
    return true
  }

  /// Returns a value without the blanks and tabs around it.
  static func trimmed(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var start = 0
    var end = value.count
    while start < end, value[start] == 0x20 || value[start] == 0x09 { start += 1 }
    while end > start, value[end - 1] == 0x20 || value[end - 1] == 0x09 { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: value[start..<end])
  }

  /// Returns the lower-case letter of an ASCII capital, or any other byte unchanged.
  @inline(__always)
  package static func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
  }
}

/// The positions of field names in a long list. Searching such a list for each field that is set would take time that
/// grows with the square of their number.
struct FieldIndex: Sendable {
  /// The length from which a list has an index: below it, searching costs less than hashing.
  static let threshold = 32

  private struct Name: Hashable, Sendable {
    let text: String

    static func == (left: Name, right: Name) -> Bool { FieldName.equal(left.text, right.text) }

    func hash(into hasher: inout Hasher) {
      for byte in text.utf8 { hasher.combine(FieldName.lowercased(byte)) }
    }
  }

  private var positions: [Name: Int] = [:]

  init(_ fields: [HTTPHeader]) {
    positions.reserveCapacity(fields.count * 2)
    for (position, field) in fields.enumerated() { note(field.name, at: position) }
  }

  mutating func note(_ name: String, at position: Int) {
    positions[Name(text: name)] = position
  }

  func position(of name: String) -> Int? { positions[Name(text: name)] }
}

/// Writes lines of header fields.
enum FieldLine {
  /// Appends name, separator, value and a line break. The line is put together on the stack, because a piece that is
  /// appended to an array costs as much as many bytes.
  static func append(
    _ name: UnsafeBufferPointer<UInt8>, _ separator: StaticString, _ value: UnsafeBufferPointer<UInt8>,
    to lines: inout [UInt8]
  ) {
    let separator = UnsafeBufferPointer(start: separator.utf8Start, count: separator.utf8CodeUnitCount)
    let size = name.count + separator.count + value.count + 2
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: size) { line in
      var end = line.initialize(fromContentsOf: name)
      end = line[end...].initialize(fromContentsOf: separator)
      end = line[end...].initialize(fromContentsOf: value)
      line[end] = UInt8(ascii: "\r")
      line[end + 1] = UInt8(ascii: "\n")
      lines.append(contentsOf: line)
    }
  }
}
