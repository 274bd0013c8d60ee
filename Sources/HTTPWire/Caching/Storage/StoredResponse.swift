package import FoundationEssentials

/// A stored response, complete or partial (206), with the values that its reuse depends on. An immutable class,
/// because it is passed through many functions.
package final class StoredResponse: Sendable {
  package let key: CacheKey
  package let head: ResponseHead
  /// After decoding, whatever `Content-Encoding` says. Empty if only the head was read.
  package let body: Data
  /// The number of bytes of the body, also of one that was not read.
  package let bodyLength: Int
  /// Whether the body was read, so that the response can be used.
  package let hasBody: Bool
  package let selection: Selection
  /// The time at which the request was sent, and that at which the response came: seconds since 1970.
  package let requestTime: Int64
  package let responseTime: Int64
  /// The directives of ``head``.
  package let control: CacheControl
  /// The `userInfo` of a program, in a form that only its owner reads.
  package let attachment: Data
  /// Whether it stays out of files.
  package let staysInMemory: Bool

  package init(
    key: CacheKey, head: ResponseHead, body: Data, bodyLength: Int? = nil, selection: Selection,
    requestTime: Int64, responseTime: Int64, attachment: Data = Data(), staysInMemory: Bool = false
  ) {
    self.key = key
    self.head = head
    self.body = body
    self.bodyLength = bodyLength ?? body.count
    hasBody = bodyLength == nil
    self.selection = selection
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.attachment = attachment
    self.staysInMemory = staysInMemory
    control = CacheControl(head)
  }

  /// Makes the entry of a response that has just come.
  ///
  /// - Parameters:
  ///   - fields: The fields of the request, as they were sent.
  package convenience init(
    key: CacheKey, fields: FieldDigests, head: ResponseHead, body: Data, requestTime: Int64,
    responseTime: Int64, attachment: Data = Data(), staysInMemory: Bool = false
  ) {
    let head = StorageRules.stored(head, at: responseTime)
    self.init(
      key: key, head: head, body: body,
      selection: Selection(head, CacheControl(head), request: fields), requestTime: requestTime,
      responseTime: responseTime, attachment: attachment, staysInMemory: staysInMemory)
  }

  /// Returns the response with another head, which a validation at `responseTime` gave it.
  package func with(
    head: ResponseHead, selection: Selection, requestTime: Int64, responseTime: Int64
  ) -> StoredResponse {
    StoredResponse(
      key: key, head: head, body: body, bodyLength: hasBody ? nil : bodyLength, selection: selection,
      requestTime: requestTime,
      responseTime: responseTime, attachment: attachment, staysInMemory: staysInMemory)
  }

  /// The time at which the server created the response: seconds since 1970.
  package var date: Int64 {
    guard let text = head.block.value(of: "Date"),
      let date = HTTPDate(text, now: HTTPDate(secondsSince1970: responseTime))
    else { return responseTime }
    return date.secondsSince1970
  }

  /// Whether the update of another response concerns this one as well, because it has the same strong tag and could
  /// have answered the same request (RFC 9111 §4.3.4).
  func isUpdated(with other: StoredResponse) -> Bool {
    guard selection.isPart(of: other.selection), let own = entityTag, let tag = other.entityTag else {
      return false
    }
    return own.isStrong && tag.isStrong && own.matches(tag)
  }

  package var entityTag: EntityTag? { head.block.value(of: "ETag").flatMap { EntityTag($0) } }
  package var lastModified: String? { head.block.value(of: "Last-Modified") }

  /// About how much memory it takes, in bytes.
  package var cost: Int {
    body.count + head.block.bytes.count + key.url.utf8.count + attachment.count + selection.cost + 512
  }
}

/// A version of a resource (RFC 9110 §8.8.3).
package struct EntityTag: Sendable, Equatable {
  /// The text as it is sent.
  package let text: String
  package let isWeak: Bool
  /// Whether it follows the grammar. Some servers send tags without quotation marks, and expect them back unchanged.
  package let isQuoted: Bool

  /// Parses an entity tag; `nil` for an invalid one.
  package init?(_ text: String) {
    let isWeak = text.utf8.starts(with: "W/\"".utf8)
    let bytes = text.utf8.dropFirst(isWeak ? 2 : 0)
    if bytes.first == 0x22 {
      guard bytes.count >= 2, bytes.last == 0x22,
        bytes.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || $0 > 0x22 && $0 != 0x7F })
      else { return nil }
      isQuoted = true
    } else {
      // A star would mean any version, and a comma ends a tag.
      guard text != "*", !bytes.isEmpty,
        bytes.allSatisfy({ $0 > 0x20 && $0 != 0x22 && $0 != 0x2C && $0 != 0x7F })
      else { return nil }
      isQuoted = false
    }
    self.text = text
    self.isWeak = isWeak
  }

  private var opaque: Substring.UTF8View { text.utf8.dropFirst(isWeak ? 2 : 0) }

  /// Whether equal tags mean equal bytes (RFC 9110 §8.8.1).
  package var isStrong: Bool { isQuoted && !isWeak }

  /// Whether two tags are equal by the weak comparison (RFC 9110 §8.8.3.2).
  package func matches(_ other: EntityTag) -> Bool { opaque.elementsEqual(other.opaque) }
}

// The format of a stored response in a file. A mark, the lengths of head and body and a checksum of both come first,
// then head and body. The numbers have 8 bytes, little-endian. Files of another format, truncated ones and ones with
// a wrong checksum are ignored.
extension StoredResponse {
  private static let mark: UInt64 = 0x3130_4548_4341_4641  // "AFACHE01"
  package static let prefixLength = 32

  package var encoded: Data {
    let head = encodedHead
    var data = Data(capacity: Self.prefixLength + head.count + body.count)
    let sum = Checksum.of(head) &+ Checksum.of(body) &* 31
    for word in [Self.mark, UInt64(head.count), UInt64(body.count), sum] {
      data.append(contentsOf: (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) })
    }
    data.append(head)
    data.append(body)
    return data
  }

  /// Decodes a response; `nil` for any bytes that ``encoded`` did not make.
  package static func decode(_ data: Data) -> StoredResponse? {
    var reader = EntryReader(data)
    guard reader.word() == mark, let headLength = reader.word(), let bodyLength = reader.word(),
      let sum = reader.word(), let count = Int(exactly: headLength), let bodyCount = Int(exactly: bodyLength),
      let head = reader.bytes(count), let body = reader.bytes(bodyCount), reader.isAtEnd,
      Checksum.of(head) &+ Checksum.of(body) &* 31 == sum
    else { return nil }
    // Copied, because the indices of a slice do not begin at 0.
    return StoredResponse(encodedHead: head, body: Data(body))
  }

  /// Returns the number of bytes of a file that precede the body; `nil` for bytes that are not the beginning of one.
  package static func lengthBeforeBody(_ data: Data) -> Int? {
    var reader = EntryReader(data)
    guard reader.word() == mark, let count = reader.word().flatMap({ Int(exactly: $0) }),
      count <= Int.max - prefixLength
    else { return nil }
    return prefixLength + count
  }

  /// Decodes a response without its body from the beginning of a file; `nil` for any bytes that ``encoded`` did not
  /// make. Only ``decode(_:)`` compares the checksum.
  package static func decodeHead(_ data: Data) -> StoredResponse? {
    var reader = EntryReader(data)
    guard reader.word() == mark, let headLength = reader.word(), let bodyLength = reader.word(),
      reader.word() != nil, let count = Int(exactly: headLength), let bodyCount = Int(exactly: bodyLength),
      let head = reader.bytes(count)
    else { return nil }
    return StoredResponse(encodedHead: head, body: Data(), bodyLength: bodyCount)
  }

  /// All but the body.
  package var encodedHead: Data {
    var writer = EntryWriter()
    writer.text(key.url)
    writer.word(UInt64(head.status))
    writer.word(UInt64(head.version.rawValue))
    writer.word(UInt64(bitPattern: requestTime))
    writer.word(UInt64(bitPattern: responseTime))
    writer.bytes(Data(head.block.bytes))
    writer.bytes(attachment)
    writer.word(UInt64(selection.fields.count))
    for field in selection.fields {
      writer.text(field.name)
      writer.text(field.digest ?? "")
    }
    return writer.data
  }

  /// Decodes a response; `nil` for any bytes that ``encodedHead`` did not make.
  ///
  /// - Parameter bodyLength: The length of a body that was not read.
  package convenience init?(encodedHead data: Data, body: Data, bodyLength: Int? = nil) {
    var reader = EntryReader(data)
    guard let url = reader.text(), let key = CacheKey(url), let status = reader.word(), status < 1_000,
      let version = reader.word().flatMap({ UInt8(exactly: $0) }).flatMap({ HTTPVersion(rawValue: $0) }),
      let requestTime = reader.word(), let responseTime = reader.word(), let block = reader.counted(),
      let attachment = reader.counted(), let count = reader.word(),
      // The names of `Vary`, and two more for credentials.
      count <= UInt64(Selection.limit + 2)
    else { return nil }
    var fields: [Selection.Field] = []
    for _ in 0..<count {
      guard let name = reader.text(), let digest = reader.text() else { return nil }
      fields.append(Selection.Field(name: name, digest: digest.isEmpty ? nil : digest))
    }
    guard reader.isAtEnd, let request = Self.time(requestTime), let response = Self.time(responseTime) else {
      return nil
    }
    // Copied, because a slice, even an empty one, retains all bytes of the file.
    self.init(
      key: key,
      head: ResponseHead(status: Int(status), version: version, block: FieldBlock(bytes: Array(block))),
      body: body, bodyLength: bodyLength, selection: Selection(fields: fields), requestTime: request,
      responseTime: response, attachment: Data(attachment))
  }

  /// Returns a moment, unless sums with it could overflow.
  private static func time(_ word: UInt64) -> Int64? {
    let time = Int64(bitPattern: word)
    return abs(time.quotientAndRemainder(dividingBy: 1 << 50).quotient) < 1 ? time : nil
  }
}

/// Detects accidental corruption. The permissions of the files protect against malice.
private enum Checksum {
  static func of(_ data: Data) -> UInt64 {
    data.withUnsafeBytes { bytes in
      var sum: UInt64 = 0x9E37_79B9_7F4A_7C15 ^ UInt64(bytes.count)
      let words = bytes.count / 8
      for index in 0..<words {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        sum = (sum ^ word) &* 0xFF51_AFD7_ED55_8CCD
        sum ^= sum >> 32
      }
      for byte in bytes[(8 * words)...] { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
      return sum ^ sum >> 29
    }
  }
}

private struct EntryWriter {
  private(set) var data = Data()

  mutating func word(_ word: UInt64) {
    for index in 0..<8 { data.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * index))) }
  }

  mutating func bytes(_ bytes: Data) {
    word(UInt64(bytes.count))
    data.append(bytes)
  }

  mutating func text(_ text: String) { bytes(Data(text.utf8)) }
}

private struct EntryReader {
  private var rest: Data

  init(_ data: Data) { rest = data }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func word() -> UInt64? {
    guard let bytes = bytes(8) else { return nil }
    return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func bytes(_ count: Int) -> Data? {
    guard count >= 0, count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  mutating func counted() -> Data? { word().flatMap { Int(exactly: $0) }.flatMap { bytes($0) } }

  mutating func text() -> String? { counted().flatMap { String(validating: $0, as: UTF8.self) } }
}

/// The answer to a request from a stored response: the head and the bytes.
package struct StoredAnswer: Sendable {
  package let head: ResponseHead
  package let body: Data
  /// Whether the server has just validated the response.
  package let isConfirmed: Bool

  package init(head: ResponseHead, body: Data) {
    self.head = head
    self.body = body
    isConfirmed = false
  }

  /// Makes the answer to a request from a stored response.
  ///
  /// - Parameters:
  ///   - method:      `HEAD` gets an empty body.
  ///   - fields:      The fields of the request; for a single byte range, that part is returned (RFC 9110 §14), unless
  ///     its `If-Range` is for another version.
  ///   - isConfirmed: Whether the server has just validated the response. Otherwise the answer has an `Age` (RFC 9111
  ///     §4), and lacks the fields that require validation (RFC 9111 §5.2.2.4).
  ///   - now:         Seconds since 1970.
  /// - Returns: `nil` if the requested ranges cannot be cut from the stored body.
  package init?(
    of stored: StoredResponse, method: String, fields: [HTTPHeader], isConfirmed: Bool, now: Int64
  ) {
    guard stored.hasBody else { return nil }
    self.isConfirmed = isConfirmed
    var shown = stored.head.block.fields.filter { !FieldName.equal($0.name, "Age") }
    if isConfirmed {
      if let age = stored.head.block.value(of: "Age") { shown.append(HTTPHeader(name: "Age", value: age)) }
    } else {
      let hidden = Set(stored.control.noCacheFields)
      if !hidden.isEmpty { shown.removeAll { hidden.contains($0.name.lowercased()) } }
      shown.append(HTTPHeader(name: "Age", value: "\(Freshness(of: stored, now: now).age)"))
    }
    let whole = ResponseHead(status: stored.head.status, version: stored.head.version, fields: shown)
    guard method == "GET", let range = fields.joinedValue(of: "Range"),
      Validation.mayUseRange(fields, of: stored)
    else {
      // A part is chosen for its range only.
      if method == "GET", stored.head.status == 206 { return nil }
      head = whole
      body = method == "HEAD" ? Data() : stored.body
      return
    }
    // Ranges count the bytes that were sent, which are not there any more when they were encoded.
    guard let own = Self.range(of: stored), let part = Self.part(range, of: own.total),
      own.bounds.lowerBound <= part.lowerBound, part.upperBound <= own.bounds.upperBound
    else { return nil }
    shown.removeAll { Validation.dependsOnRange($0.name) }
    shown += [
      HTTPHeader(name: "Content-Length", value: "\(part.count)"),
      HTTPHeader(
        name: "Content-Range",
        value: PartRange(part, of: own.total).text),
    ]
    head = ResponseHead(status: 206, version: stored.head.version, fields: shown)
    let start = stored.body.startIndex - own.bounds.lowerBound
    // Callers count the bytes of the part from 0.
    body = Data(stored.body[(start + part.lowerBound)..<(start + part.upperBound)])
  }

  /// Returns the range of the stored bytes in their representation; `nil` for bytes that ranges do not count.
  private static func range(of stored: StoredResponse) -> PartRange? {
    if stored.head.status == 206 { return PartialContent.range(of: stored) }
    guard stored.head.status == 200, !stored.head.block.contains("Content-Encoding") else { return nil }
    return PartRange(0..<stored.body.count, of: stored.body.count)
  }

  /// The answer when a request must not be sent and no response is stored (RFC 9111 §5.2.1.7).
  package static let gatewayTimeout = StoredAnswer(
    head: ResponseHead(status: 504, fields: [HTTPHeader(name: "Content-Length", value: "0")]), body: Data())

  /// Returns one range of bytes (RFC 9110 §14.1.2): `bytes=a-b`, `bytes=a-` or `bytes=-n`. `nil` for any other value,
  /// and for a range outside of the body.
  package static func part(_ text: String, of count: Int) -> Range<Int>? {
    let text = text.filter { $0 != " " && $0 != "\t" }.lowercased()
    guard text.hasPrefix("bytes="), count > 0 else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2 else { return nil }
    func number(_ text: Substring) -> Int? {
      guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
      return Int(text) ?? Int.max
    }
    switch (number(ends[0]), number(ends[1])) {
    case (let first?, let last?):
      return first <= last && first < count ? first..<(min(last, count - 1) + 1) : nil
    case (let first?, nil): return ends[1].isEmpty && first < count ? first..<count : nil
    case (nil, let length?): return ends[0].isEmpty && length > 0 ? max(0, count - length)..<count : nil
    case (nil, nil): return nil
    }
  }
}
