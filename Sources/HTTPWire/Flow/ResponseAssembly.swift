/// Assembles the heads of a response from the lines that a transport reads. Pure: the transport performs the returned
/// actions. Lines are read strictly: see `Documentation/HTTPReading.md`.
package struct ResponseAssembly: Sendable {
  private enum State: Sendable {
    /// Before a status line, also after the head of an informational response.
    case waitingForHead
    /// Between a status line and the empty line that ends the head.
    case inHead(status: Int, version: HTTPVersion)
    /// The head of the final response was read; later lines are trailers.
    case inBody
  }

  /// The meaning of a header line for the transport.
  package enum LineAction: Sendable {
    case keep
    /// A status line claims HTTP/2 or HTTP/3: the transport checks that the connection speaks it.
    case verify(HTTPVersion)
    case deliver(ResponseHead)
    /// The head of an informational response (1xx), which another response follows.
    case inform(ResponseHead)
    /// The heads and the trailers together are larger than the limit.
    case refuseHead
    /// The response is not valid HTTP.
    case refuse(HeadViolation)
  }

  private var state = State.waitingForHead
  private var lines: [UInt8] = []
  private var headerSizeLimit: Int
  /// The size of all heads and trailers so far: an endless row of informational heads is too large as well.
  private var headSize = 0
  /// Whether the last line was a field that declares the framing, which must not be folded.
  private var endsWithFraming = false
  /// The framing of the body by the fields of the head.
  package private(set) var framing = MessageFraming()
  /// Whether the response is to `CONNECT`.
  private var isOfTunnel = false
  /// The marks of the fields read so far.
  private var marks: FieldMarks = []
  package private(set) var head: ResponseHead?

  /// The number of bytes of trailers that may follow.
  package var headSizeLeft: Int { max(0, headerSizeLimit - headSize) }

  package init(headerSizeLimit: Int = 262_144) {
    self.headerSizeLimit = headerSizeLimit
  }

  /// Resets it for another response, and retains the memory for lines.
  ///
  /// - Parameter isOfTunnel: Whether the response is to `CONNECT`. Then the fields of a 2xx declare no framing
  ///   (RFC 9110 §9.3.6).
  package mutating func restart(headerSizeLimit: Int, isOfTunnel: Bool = false) {
    state = .waitingForHead
    self.isOfTunnel = isOfTunnel
    lines.removeAll(keepingCapacity: true)
    self.headerSizeLimit = headerSizeLimit
    headSize = 0
    marks = []
    framing = MessageFraming()
    endsWithFraming = false
    head = nil
  }

  /// Whether the next line is the status line of a head.
  package var awaitsStatusLine: Bool { if case .waitingForHead = state { true } else { false } }

  /// Whether a field of the current head was read.
  package var hasFields: Bool { !lines.isEmpty }

  /// Takes one line of a head or a trailer, with its line break.
  package mutating func lineReceived(_ line: UnsafeRawBufferPointer) -> LineAction {
    do throws(HeadViolation) {
      switch state {
      case .inBody: return try trailerReceived(line)
      case .waitingForHead: return try headBegan(line)
      case .inHead(let status, let version):
        guard !FieldLineRules.isEmpty(line) else { return try headEnded(status, version) }
        return try fieldReceived(line, status, version)
      }
    } catch {
      return .refuse(error)
    }
  }

  private mutating func headBegan(_ line: UnsafeRawBufferPointer) throws(HeadViolation) -> LineAction {
    let (status, version) = try FieldLineRules.status(line)
    state = .inHead(status: status, version: version)
    if !lines.isEmpty { lines.removeAll(keepingCapacity: true) }
    marks = []
    framing = MessageFraming()
    endsWithFraming = false
    if status < 200 {
      headSize += line.count
      guard headSize <= headerSizeLimit else { return .refuseHead }
    }
    return version == .http2 || version == .http3 ? .verify(version) : .keep
  }

  private mutating func fieldReceived(
    _ line: UnsafeRawBufferPointer, _ status: Int, _ version: HTTPVersion
  ) throws(HeadViolation) -> LineAction {
    headSize += line.count
    guard headSize <= headerSizeLimit else { return .refuseHead }
    if FieldLineRules.isContinuation(line) {
      guard !lines.isEmpty else { throw .foldBeforeFirstField }
      // Readers differ in whether they join the lines before they look for a length.
      guard !endsWithFraming else { throw .foldedFraming(lastFieldName) }
      try FieldLineRules.checkContinuation(line, of: lastFieldName)
      unfold()
      // The mark of the field was chosen by its first line.
      marks.insert(.connection)
    } else {
      let field = try FieldLineRules.field(line)
      if declaresFraming(status) { endsWithFraming = try framing.note(field, version) }
      marks.formUnion(FieldMarks(ofField: field.name, field.value))
    }
    lines.append(contentsOf: line)
    return .keep
  }

  /// Takes the complete field lines at `position` in one pass, and moves `position` after them. It stops before a line
  /// that needs ``lineReceived(_:)``: an invalid or folded one, one that ends later, and the end of the head.
  package mutating func fieldsReceived(
    _ bytes: UnsafeRawBufferPointer, from position: inout Int
  ) -> LineAction {
    guard case .inHead(let status, let version) = state else { return .keep }
    let start = position
    // The lines are stored together, which costs less than one by one.
    defer { if position > start { lines.append(contentsOf: bytes[start..<position]) } }
    do throws(HeadViolation) {
      while let (field, end) = FieldLineRules.completeField(in: bytes, at: position) {
        headSize += end - position
        guard headSize <= headerSizeLimit else { return .refuseHead }
        if declaresFraming(status) { endsWithFraming = try framing.note(field, version) }
        marks.formUnion(FieldMarks(ofField: field.name, field.value))
        position = end
      }
      return .keep
    } catch {
      return .refuse(error)
    }
  }

  private func declaresFraming(_ status: Int) -> Bool { !isOfTunnel || status < 200 || status > 299 }

  /// Removes the last line break, because a line that begins with white space continues the field before it. The two
  /// lines are joined by one space (RFC 9112 §5.2).
  private mutating func unfold() {
    while let last = lines.last, last == 0x0D || last == 0x0A { lines.removeLast() }
  }

  private var lastFieldName: String {
    let start = lines.dropLast().lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    return String(decoding: lines[start...].prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
  }

  /// Checks and counts a line after the head. ``ChunkedReader`` reads and keeps the trailers of chunked bodies.
  private mutating func trailerReceived(_ line: UnsafeRawBufferPointer) throws(HeadViolation) -> LineAction {
    headSize += line.count
    guard headSize <= headerSizeLimit else { return .refuseHead }
    if FieldLineRules.isEmpty(line) { return .keep }
    if FieldLineRules.isContinuation(line) {
      try FieldLineRules.checkContinuation(line, of: "Trailer")
    } else {
      _ = try FieldLineRules.field(line)
    }
    return .keep
  }

  private mutating func headEnded(_ status: Int, _ version: HTTPVersion) throws(HeadViolation) -> LineAction {
    // 101 ends the use of HTTP on the connection and so is final (RFC 9110 §15.2.2).
    guard status >= 200 || status == 101 else {
      state = .waitingForHead
      let block = FieldBlock(bytes: lines, marks: marks)
      return .inform(ResponseHead(status: status, version: version, block: block))
    }
    // HTTP/2 has no 101 (RFC 9113 §8.6).
    if status == 101, version != .http1_1 { throw .unrequestedUpgrade }
    state = .inBody
    let head = ResponseHead(status: status, version: version, block: FieldBlock(bytes: lines, marks: marks))
    if status / 100 == 3, !head.hasOneLocation { throw .contradictingLocations }
    self.head = head
    return .deliver(head)
  }
}

extension ResponseHead {
  /// Whether all fields `Location`, if there are any, say the same.
  var hasOneLocation: Bool {
    let locations = block.rawValues(of: "Location")
    return locations.allSatisfy { $0 == locations[0] }
  }
}

/// The framing of a response body, as the fields of its head declare it (RFC 9112 §6).
package struct MessageFraming: Sendable, Equatable {
  package private(set) var contentLength: Int64?
  package private(set) var isChunked = false
  /// Whether the obsolete coding `identity` was named, which means no coding.
  package private(set) var isIdentity = false

  package init() {}

  /// Whether other readers could find another end of the body (RFC 9112 §6.1, §6.3). The connection is then closed
  /// after the response.
  package func isAmbiguous(_ version: HTTPVersion) -> Bool {
    guard isChunked || isIdentity else { return false }
    return contentLength != nil || isIdentity || version == .http1_0
  }

  /// Whether the response to a request of this method has a body (RFC 9110 §6.4.1, §9.3.6). What its fields say of a
  /// body means nothing if not.
  package static func hasBody(method: String, status: Int) -> Bool {
    guard status >= 200, status != 204, status != 304 else { return false }
    return method != "HEAD" && !(method == "CONNECT" && status < 300)
  }

  /// Takes one field into account. Returns whether it declares the framing.
  mutating func note(
    _ field: FieldLineRules.Field, _ version: HTTPVersion
  ) throws(HeadViolation) -> Bool {
    switch field.name.count {
    case 14 where field.isNamed("content-length"):
      try noteLength(field.value)
    case 17 where field.isNamed("transfer-encoding"):
      guard version == .http1_0 || version == .http1_1 else { throw .transferCodingInHTTP2 }
      try noteCodings(field.value)
    default: return false
    }
    return true
  }

  /// Notes a length: a number, or a list of the same number (RFC 9110 §8.6).
  private mutating func noteLength(_ value: UnsafeRawBufferPointer) throws(HeadViolation) {
    // Splitting a value into parts allocates memory.
    if let length = Self.number(value) { return try note(length) }
    for part in value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      let digits = FieldLineRules.trimmed(UnsafeRawBufferPointer(rebasing: part))
      guard let length = Self.number(digits) else { throw .contentLength }
      try note(length)
    }
  }

  private mutating func note(_ length: Int64) throws(HeadViolation) {
    guard contentLength == nil || contentLength == length else { throw .contradictingContentLengths }
    contentLength = length
  }

  private static func number(_ digits: UnsafeRawBufferPointer) -> Int64? {
    guard !digits.isEmpty else { return nil }
    var number: Int64 = 0
    for byte in digits {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      let (tenfold, isTooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, isAboveLimit) = tenfold.addingReportingOverflow(Int64(byte - 0x30))
      guard !isTooLarge, !isAboveLimit else { return nil }
      number = sum
    }
    return number
  }

  /// Notes transfer codings: only `chunked`, once, because no request asks for another coding (RFC 9112 §7.4).
  private mutating func noteCodings(_ value: UnsafeRawBufferPointer) throws(HeadViolation) {
    var isNamed = false
    for part in value.split(separator: UInt8(ascii: ",")) {
      let coding = FieldLineRules.trimmed(UnsafeRawBufferPointer(rebasing: part))
      if coding.isEmpty { continue }
      isNamed = true
      guard !isChunked, !isIdentity else { throw .transferCoding(FieldLineRules.text(coding)) }
      let name = coding.lazy.map(FieldName.lowercased)
      if name.elementsEqual("chunked".utf8) {
        isChunked = true
      } else if name.elementsEqual("identity".utf8) {
        isIdentity = true
      } else {
        throw .transferCoding(FieldLineRules.text(coding))
      }
    }
    guard isNamed else { throw .transferCoding("") }
  }
}

/// Strict reading of single lines of a head or a trailer section. A line may end with CRLF, LF or nothing
/// (RFC 9112 §2.2).
enum FieldLineRules {
  /// A field line that was accepted: its name and its value without the white space around it (RFC 9112 §5.1).
  struct Field {
    let name: UnsafeRawBufferPointer
    let value: UnsafeRawBufferPointer

    func isNamed(_ other: StaticString) -> Bool { FieldName.equal(name, lowercase: other) }
  }

  /// Reads a field line.
  static func field(_ line: UnsafeRawBufferPointer) throws(HeadViolation) -> Field {
    let end = contentEnd(of: line)
    var colon = 0
    while colon < end, HeaderFieldRules.isTokenByte(line[colon]) { colon += 1 }
    guard colon > 0, colon < end, line[colon] == UInt8(ascii: ":") else {
      throw nameViolation(line, end, tokenEnd: colon)
    }
    let name = UnsafeRawBufferPointer(rebasing: line[0..<colon])
    let value = UnsafeRawBufferPointer(rebasing: line[colon + 1..<end])
    if let byte = forbiddenByte(in: value) { throw .fieldValue(field: text(name), character: byte) }
    return Field(name: name, value: trimmed(value))
  }

  /// Returns the valid field line that begins at `start`, and the position after it; `nil` if the line is another one
  /// or its end has not arrived.
  static func completeField(
    in bytes: UnsafeRawBufferPointer, at start: Int
  ) -> (field: Field, end: Int)? {
    var colon = start
    while colon < bytes.count, HeaderFieldRules.isTokenByte(bytes[colon]) { colon += 1 }
    guard colon > start, colon < bytes.count, bytes[colon] == UInt8(ascii: ":") else { return nil }
    let valueEnd = forbiddenIndex(in: bytes, from: colon + 1)
    var lineEnd = valueEnd
    if lineEnd < bytes.count, bytes[lineEnd] == 0x0D { lineEnd += 1 }
    guard lineEnd < bytes.count, bytes[lineEnd] == 0x0A else { return nil }
    let name = UnsafeRawBufferPointer(rebasing: bytes[start..<colon])
    let value = UnsafeRawBufferPointer(rebasing: bytes[colon + 1..<valueEnd])
    return (Field(name: name, value: trimmed(value)), lineEnd + 1)
  }

  /// Checks a line that continues the field before it.
  static func checkContinuation(
    _ line: UnsafeRawBufferPointer, of field: @autoclosure () -> String
  ) throws(HeadViolation) {
    let value = UnsafeRawBufferPointer(rebasing: line[0..<contentEnd(of: line)])
    if let byte = forbiddenByte(in: value) { throw .fieldValue(field: field(), character: byte) }
  }

  /// Reads the version and the status of a status line (RFC 9112 §4). The reason phrase, the space before it, or both
  /// may be missing.
  static func status(_ line: UnsafeRawBufferPointer) throws(HeadViolation) -> (
    code: Int, version: HTTPVersion
  ) {
    let end = contentEnd(of: line)
    guard let (version, versionEnd) = version(line, end) else { throw .statusLine }
    var at = versionEnd
    while at < end, line[at] == 0x20 { at += 1 }
    guard at > versionEnd, at + 3 <= end, at + 3 == end || !(0x30...0x39).contains(line[at + 3]) else {
      throw .statusLine
    }
    var code = 0
    for byte in line[at..<at + 3] {
      guard byte >= 0x30, byte <= 0x39 else { throw .statusLine }
      code = code * 10 + Int(byte - 0x30)
    }
    let reason = UnsafeRawBufferPointer(rebasing: line[at + 3..<end])
    guard forbiddenByte(in: reason) == nil else { throw .statusLine }
    guard code >= 100 else { throw .statusCode(code) }
    return (code, version)
  }

  static func isEmpty(_ line: UnsafeRawBufferPointer) -> Bool { contentEnd(of: line) == 0 }

  static func isContinuation(_ line: UnsafeRawBufferPointer) -> Bool {
    line.first == 0x20 || line.first == 0x09
  }

  static func text(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }

  static func trimmed(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer { FieldName.trimmed(value) }

  /// Reads `HTTP/1.x`, or `HTTP/2` and `HTTP/3` without a minor version, as heads of those are written.
  private static func version(_ line: UnsafeRawBufferPointer, _ end: Int) -> (HTTPVersion, end: Int)? {
    guard end > 6, line[0] == 0x48, line[1] == 0x54, line[2] == 0x54, line[3] == 0x50, line[4] == 0x2F
    else { return nil }
    switch line[5] {
    case 0x31:
      guard end > 8, line[6] == 0x2E, line[7] >= 0x30, line[7] <= 0x39 else { return nil }
      return (line[7] == 0x30 ? .http1_0 : .http1_1, 8)
    case 0x32: return (.http2, 6)
    case 0x33: return (.http3, 6)
    default: return nil
    }
  }

  private static func contentEnd(of line: UnsafeRawBufferPointer) -> Int {
    var end = line.count
    if end > 0, line[end - 1] == 0x0A { end -= 1 }
    if end < line.count, end > 0, line[end - 1] == 0x0D { end -= 1 }
    return end
  }

  private static func nameViolation(
    _ line: UnsafeRawBufferPointer, _ end: Int, tokenEnd: Int
  ) -> HeadViolation {
    guard let colon = line[0..<end].firstIndex(of: UInt8(ascii: ":")) else { return .missingColon }
    let isSpaced = tokenEnd > 0 && line[tokenEnd..<colon].allSatisfy { $0 == 0x20 || $0 == 0x09 }
    let shown = isSpaced ? 0..<tokenEnd : 0..<colon
    let name = text(UnsafeRawBufferPointer(rebasing: line[shown]))
    return isSpaced ? .spaceBeforeColon(name) : .fieldName(name)
  }

  /// Returns the first NUL, CR or LF. Other control characters stay, as RFC 9110 §5.5 allows and browsers do.
  static func forbiddenByte(in value: UnsafeRawBufferPointer) -> UInt8? {
    let index = forbiddenIndex(in: value, from: 0)
    return index < value.count ? value[index] : nil
  }

  /// Returns the position of the first NUL, CR or LF from `start` on, or the end if there is none.
  private static func forbiddenIndex(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while bytes.count - index >= 8 {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      if mayHoldForbiddenByte(word) {
        let end = index + 8
        while index < end, !isForbidden(bytes[index]) { index += 1 }
        if index < end { return index }
      } else {
        index += 8
      }
    }
    while index < bytes.count, !isForbidden(bytes[index]) { index += 1 }
    return index
  }

  private static func isForbidden(_ byte: UInt8) -> Bool { byte == 0x00 || byte == 0x0D || byte == 0x0A }

  /// Whether one of eight bytes is less than 0x0E; true for some words of which none is.
  private static func mayHoldForbiddenByte(_ word: UInt64) -> Bool {
    (word &- 0x0E0E_0E0E_0E0E_0E0E) & ~word & 0x8080_8080_8080_8080 != 0
  }
}
