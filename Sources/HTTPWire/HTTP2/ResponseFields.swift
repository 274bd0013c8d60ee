/// Assembles a response of HTTP/2 from its decoded fields, one by one, and from the lengths of its DATA. Pure: the
/// transport performs the returned actions. HTTP/1.1 has ``ResponseAssembly``, with the same rules for names, values
/// and lengths.
package struct ResponseFields: Sendable {
  /// The meaning of a field, or of the end of a field section.
  package enum Action: Sendable {
    case keep
    case deliver(ResponseHead)
    /// The head of an informational response, which another head follows.
    case inform(ResponseHead)
    case trailers(FieldBlock)
    /// All field sections together are larger than the limit.
    case refuseHead
    /// The response is malformed; the stream is reset with PROTOCOL_ERROR (RFC 9113 §8.1.1).
    case refuse(HeadViolation)
  }

  private enum Section: Sendable {
    case head
    /// After the final head: DATA, or the trailers.
    case body
    /// The end; no frame may follow.
    case ended
  }

  /// The size that each field adds to its name and value (RFC 9113 §6.5.2). A field of one byte in HPACK may make
  /// hundreds.
  private static let fieldOverhead = 32
  /// The size of most heads.
  private static let usualSize = 384

  private let method: String
  private let headerSizeLimit: Int
  private var size = 0
  private var section = Section.head
  private var status: Int?
  private var lines: [UInt8] = []
  private var marks: FieldMarks = []
  /// The framing that the fields of the head declare.
  package private(set) var framing = MessageFraming()
  /// The number of bytes of DATA so far.
  package private(set) var bodyCount: Int64 = 0
  /// The exact number of bytes of the body; `nil` if it is not limited.
  private var bodyLength: Int64?
  /// Whether a regular field of the current section was read; pseudo-header fields must not follow it.
  private var hasFields = false

  /// Makes the response to a request of this method.
  package init(to method: String, headerSizeLimit: Int = 262_144) {
    self.method = method
    self.headerSizeLimit = headerSizeLimit
  }

  /// The length that the head of the final response gives.
  package var contentLength: Int64? { framing.contentLength }

  /// The length of the body as announced; `nil` if it is unknown, or without a body.
  package var announcedLength: Int64? { framing.contentLength == nil ? nil : bodyLength }

  /// Takes one decoded field.
  package mutating func received(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Action {
    size += name.count + value.count + Self.fieldOverhead
    guard size <= headerSizeLimit else { return .refuseHead }
    do throws(HeadViolation) {
      if name.first == UInt8(ascii: ":") {
        try pseudoFieldReceived(name, value)
      } else {
        try fieldReceived(name, value)
      }
      return .keep
    } catch {
      return .refuse(error)
    }
  }

  private mutating func pseudoFieldReceived(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) throws(HeadViolation) {
    guard case .head = section, !hasFields, status == nil, name.elementsEqual(":status".utf8) else {
      throw .pseudoField(FieldLineRules.text(name))
    }
    guard value.count == 3, value.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), value[0] != 0x30 else {
      throw .pseudoField(":status")
    }
    let code = value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    status = code
  }

  private mutating func fieldReceived(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) throws(HeadViolation) {
    hasFields = true
    guard !name.isEmpty,
      name.allSatisfy({ HeaderFieldRules.isTokenByte($0) && FieldName.lowercased($0) == $0 })
    else { throw .fieldName(FieldLineRules.text(name)) }
    if let byte = FieldLineRules.forbiddenByte(in: value) {
      throw .fieldValue(field: FieldLineRules.text(name), character: byte)
    }
    let field = FieldLineRules.Field(name: name, value: FieldLineRules.trimmed(value))
    guard !Self.isOfConnection(field) else { throw .connectionField(FieldLineRules.text(name)) }
    switch section {
    case .head:
      guard status != nil else { throw .pseudoField(":status") }
      _ = try framing.note(field, .http2)
      marks.formUnion(FieldMarks(ofField: name, field.value))
    case .body: break
    case .ended: throw .frameOrder
    }
    // Growing step by step would allocate memory for most fields.
    if lines.isEmpty { lines.reserveCapacity(Self.usualSize) }
    FieldLine.append(
      name.assumingMemoryBound(to: UInt8.self), ": ", field.value.assumingMemoryBound(to: UInt8.self),
      to: &lines)
  }

  /// Whether a field belongs to a connection of HTTP/1.1 (RFC 9113 §8.2.2).
  private static func isOfConnection(_ field: FieldLineRules.Field) -> Bool {
    switch field.name.count {
    case 2 where field.isNamed("te"): !field.value.elementsEqual("trailers".utf8)
    case 7 where field.isNamed("upgrade"), 10 where field.isNamed("connection"),
      10 where field.isNamed("keep-alive"), 16 where field.isNamed("proxy-connection"),
      17 where field.isNamed("transfer-encoding"):
      true
    default: false
    }
  }

  /// Ends a field section: the last frame of a head or of the trailers was read.
  package mutating func sectionEnded(endsStream: Bool) -> Action {
    do throws(HeadViolation) {
      switch section {
      case .head: return try headEnded(endsStream)
      case .body:
        // Trailers end the stream (RFC 9113 §8.1).
        guard endsStream else { throw .frameOrder }
        let block = FieldBlock(bytes: lines)
        try end()
        return .trailers(block)
      case .ended: throw .frameOrder
      }
    } catch {
      return .refuse(error)
    }
  }

  private mutating func headEnded(_ endsStream: Bool) throws(HeadViolation) -> Action {
    guard let status else { throw .pseudoField(":status") }
    // HTTP/2 has no 101 (RFC 9113 §8.6).
    if status == 101 { throw .unrequestedUpgrade }
    let head = ResponseHead(status: status, version: .http2, block: FieldBlock(bytes: lines, marks: marks))
    if status < 200 {
      guard !endsStream else { throw .frameOrder }
      startSection()
      self.status = nil
      framing = MessageFraming()
      return .inform(head)
    }
    if status / 100 == 3, !head.hasOneLocation { throw .contradictingLocations }
    section = .body
    bodyLength = length(for: status)
    startSection()
    if endsStream { try end() }
    return .deliver(head)
  }

  private mutating func startSection() {
    lines.removeAll(keepingCapacity: true)
    marks = []
    hasFields = false
  }

  /// Returns the length that the DATA must have; `nil` if there is none. A tunnel has none, whatever its head says (RFC
  /// 9110 §9.3.6).
  private func length(for status: Int) -> Int64? {
    if method == "CONNECT", status < 300 { return nil }
    return MessageFraming.hasBody(method: method, status: status) ? framing.contentLength : 0
  }

  /// Counts bytes of DATA without padding; returns the violation if the body is longer than its length, or is not
  /// allowed here.
  package mutating func dataReceived(_ count: Int) -> HeadViolation? {
    switch section {
    case .head: return .frameOrder
    case .ended: return .frameOrder
    case .body:
      bodyCount += Int64(max(0, count))
      if let bodyLength, bodyCount > bodyLength { return .bodyLength }
      return nil
    }
  }

  /// Ends the stream with DATA; returns the violation if the response is not complete.
  package mutating func streamEnded() -> HeadViolation? {
    switch section {
    case .head: return .frameOrder
    case .ended: return .frameOrder
    case .body:
      do throws(HeadViolation) { try end() } catch { return error }
      return nil
    }
  }

  private mutating func end() throws(HeadViolation) {
    section = .ended
    if let bodyLength, bodyCount != bodyLength { throw .bodyLength }
  }
}
