/// Reads one response of HTTP/1.1 from the bytes of its connection, strictly (see `Documentation/HTTPReading.md`).
/// Pure: it receives the bytes as they arrive, in segments of any size, and reports what they mean.
///
/// Bytes are never copied, except for the fields of heads and for a line that is still incomplete.
package struct HTTP1Reader: Sendable {
  package enum ReaderStep: Sendable {
    /// All bytes have been read.
    case needsMore
    /// The head of an informational response (1xx).
    case informational(ResponseHead)
    /// The head of the final response. ``HTTP1Reader/hasBody`` and ``HTTP1Reader/endsWithConnection`` describe what
    /// follows.
    case head(ResponseHead)
    /// The range of bytes that are content. They count as read once ``HTTP1Reader/contentTaken(_:from:)`` was called.
    case content(Range<Int>)
    /// The response is complete. Later bytes do not belong to it.
    case end
    /// The heads and the trailers together are larger than the limit.
    case refuseHead
    /// The response is not valid HTTP.
    case refuse(HeadViolation)
  }

  private enum ReadingState: Sendable {
    case head
    case content(left: Int64)
    case chunks
    /// The end of the connection ends the body.
    case untilEnd
    case end
    /// The response was refused; a violation of `nil` is a head that is too large.
    case refused(HeadViolation?)
  }

  /// The beginning of each status line (RFC 9112 §2.3).
  private static let protocolName: [UInt8] = Array("HTTP/".utf8)
  /// The longest status line if the limit for heads is less. A status line does not count against the limit.
  private static let longestStatusLine = 1_024

  private var assembly = ResponseAssembly()
  private var state = ReadingState.head
  private var chunks = ChunkedReader()
  /// The beginning of a line that is still incomplete.
  private var partialLine: [UInt8] = []
  private var method: String
  /// Whether a byte of a response has arrived.
  package private(set) var hasBegun = false
  /// The number of bytes of heads so far, including the heads of informational responses.
  package private(set) var headSize = 0
  /// The framing that the fields of the head declare.
  package private(set) var framing = MessageFraming()
  /// The length of the body as announced; `nil` if it is unknown.
  package private(set) var announcedLength: Int64?
  /// Whether the final response has a body. Until its head has arrived, it has none.
  package private(set) var hasBody = false
  /// Whether the end of the connection ends the body.
  package private(set) var endsWithConnection = false
  /// Whether the response has ended with trailer fields.
  package private(set) var hasTrailers = false

  package init(method: String, headerSizeLimit: Int = 262_144) {
    self.method = method
    assembly.restart(headerSizeLimit: headerSizeLimit, isOfTunnel: method == "CONNECT")
  }

  /// Resets it for the response to another request, and retains the memory for lines.
  package mutating func restart(method: String, headerSizeLimit: Int) {
    assembly.restart(headerSizeLimit: headerSizeLimit, isOfTunnel: method == "CONNECT")
    self.method = method
    state = .head
    if !partialLine.isEmpty { partialLine.removeAll(keepingCapacity: partialLine.count <= 4_096) }
    hasBegun = false
    headSize = 0
    framing = MessageFraming()
    hasBody = false
    announcedLength = nil
    endsWithConnection = false
    hasTrailers = false
    if !chunks.trailers.isEmpty { chunks = ChunkedReader() }
  }

  /// The number of bytes of content that are known to follow; 0 if none are.
  package var contentLeft: Int64 { if case .content(let left) = state { left } else { 0 } }

  /// The trailer fields of a chunked body that has ended; `nil` if there are none.
  package var trailers: FieldBlock? { hasTrailers ? FieldBlock(bytes: chunks.trailers) : nil }

  /// Continues at `position`, which it moves past bytes that are not content. Once it has answered ``Step/end``, it
  /// consumes no more bytes: those at `position` do not belong to the response.
  package mutating func read(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> ReaderStep {
    if position < bytes.count { hasBegun = true }
    switch state {
    case .head: return readHead(bytes, &position)
    case .content(let left):
      guard left > 0 else { return end() }
      guard position < bytes.count else { return .needsMore }
      return .content(position..<position + Int(min(left, Int64(bytes.count - position))))
    case .chunks: return readChunks(bytes, &position)
    case .untilEnd: return position < bytes.count ? .content(position..<bytes.count) : .needsMore
    case .end: return .end
    case .refused(let violation): return violation.map { .refuse($0) } ?? .refuseHead
    }
  }

  /// Records that the first `count` bytes of the current content were used, and moves `position` past them. The others
  /// are offered again.
  package mutating func contentTaken(_ count: Int, from position: inout Int) {
    switch state {
    case .content(let left):
      guard count >= 0, Int64(count) <= left else {
        preconditionFailure("\(count) bytes of content taken, but only \(left) are left")
      }
      state = .content(left: left - Int64(count))
    case .chunks: chunks.contentTaken(count)
    case .untilEnd: break
    case .head, .end, .refused: preconditionFailure("content taken outside of a body")
    }
    position += count
  }

  private mutating func end() -> ReaderStep {
    state = .end
    hasTrailers = framing.isChunked && !chunks.trailers.isEmpty
    return .end
  }

  private mutating func refuse(_ violation: HeadViolation?) -> ReaderStep {
    state = .refused(violation)
    return violation.map { .refuse($0) } ?? .refuseHead
  }
}

extension HTTP1Reader {
  private mutating func readChunks(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> ReaderStep {
    switch chunks.read(bytes, from: &position) {
    case .content(let range): return .content(range)
    case .needsMore: return .needsMore
    case .end: return end()
    case .refuseTrailers: return refuse(nil)
    case .refuse(let violation): return refuse(violation)
    }
  }

  /// Reads lines until a head is complete. Fields that are whole are read from the segment, in one pass.
  private mutating func readHead(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> ReaderStep {
    let start = position
    defer { headSize += position - start }
    while position < bytes.count {
      if partialLine.isEmpty, let step = step(after: assembly.fieldsReceived(bytes, from: &position)) {
        return step
      }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
      let count = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.count
      let line = UnsafeRawBufferPointer(rebasing: rest[..<count])
      position += count
      let isWhole = line.last == 0x0A
      if !isWhole || !partialLine.isEmpty { partialLine.append(contentsOf: line) }
      if let step = checkLine(partialLine.isEmpty ? line : nil) { return step }
      guard isWhole else { return .needsMore }
      if let step = lineReceived(line) { return step }
    }
    return .needsMore
  }

  /// Refuses a line that cannot become a valid one, whether its end has arrived or not. So the first bytes reveal a
  /// server that speaks another protocol, and a line without an end uses no memory.
  private mutating func checkLine(_ line: UnsafeRawBufferPointer?) -> ReaderStep? {
    let count = line?.count ?? partialLine.count
    // The line break at the end of a head does not count against the limit.
    var limit = assembly.headSizeLeft + 2
    if assembly.awaitsStatusLine {
      let name = Self.protocolName.prefix(count)
      guard line?.starts(with: name) ?? partialLine.starts(with: name) else { return refuse(.statusLine) }
      limit = max(limit, Self.longestStatusLine)
    }
    return count > limit ? refuse(nil) : nil
  }

  private mutating func lineReceived(_ line: UnsafeRawBufferPointer) -> ReaderStep? {
    guard !partialLine.isEmpty else { return step(after: assembly.lineReceived(line)) }
    let action = partialLine.withUnsafeBytes { assembly.lineReceived($0) }
    partialLine.removeAll(keepingCapacity: true)
    return step(after: action)
  }

  private mutating func step(after action: ResponseAssembly.LineAction) -> ReaderStep? {
    switch action {
    case .keep: return nil
    // HTTP/2 and HTTP/3 have no status lines (RFC 9112 §2.3).
    case .verify(let version): return refuse(.version(version.text))
    case .inform(let head): return .informational(head)
    case .refuseHead: return refuse(nil)
    case .refuse(let violation): return refuse(violation)
    case .deliver(let head):
      chooseFraming(of: head)
      return .head(head)
    }
  }

  /// Chooses the end of the body (RFC 9112 §6.3).
  private mutating func chooseFraming(of head: ResponseHead) {
    framing = assembly.framing
    hasBody = MessageFraming.hasBody(method: method, status: head.status)
    if !hasBody {
      state = .content(left: 0)
    } else if framing.isChunked {
      chunks = ChunkedReader(trailerSizeLimit: assembly.headSizeLeft)
      state = .chunks
    } else if let length = framing.contentLength {
      announcedLength = length
      state = .content(left: length)
    } else {
      endsWithConnection = true
      state = .untilEnd
    }
  }
}
