package import FoundationEssentials

/// Reads the response to an opening handshake: its head and, unless the status is 101, its body. Informational
/// responses are skipped. Pure: its owner gives it the bytes of the transport.
///
/// Lines are read by the rules for all responses; see `Documentation/HTTPReading.md`.
package struct UpgradeResponseReader: Sendable {
  package enum Step: Sendable {
    case needsMore
    /// The head is complete. The position is behind it.
    case head(ResponseHead)
    /// The body is complete, or the limit of its size is reached.
    case end
    /// The heads together are larger than the limit.
    case refuseHead
    case refuse(HeadViolation)
  }

  private enum Framing: Sendable {
    case none
    case length(left: Int64)
    case chunked(ChunkedReader)
    case untilClose
  }

  private var assembly: ResponseAssembly
  private let headerSizeLimit: Int
  private let bodySizeLimit: Int
  /// The part of a line that has arrived.
  private var line: [UInt8] = []
  /// The framing of the body; `nil` before the end of the head.
  private var framing: Framing?
  package private(set) var body = Data()

  package init(headerSizeLimit: Int, bodySizeLimit: Int = 1_048_576) {
    assembly = ResponseAssembly(headerSizeLimit: headerSizeLimit)
    self.headerSizeLimit = headerSizeLimit
    self.bodySizeLimit = bodySizeLimit
  }

  /// Reads on at `position`, and stops behind the head.
  package mutating func read(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> Step {
    guard framing == nil else { return readBody(bytes, &position) }
    while position < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
      let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.count
      line.append(contentsOf: rest[..<end])
      position += end
      guard line.count <= headerSizeLimit else { return .refuseHead }
      guard line.last == 0x0A else { return .needsMore }
      let action = line.withUnsafeBytes { assembly.lineReceived($0) }
      line.removeAll(keepingCapacity: true)
      switch action {
      case .keep, .inform: continue
      case .verify(let version): return .refuse(.version(version.text))
      case .deliver(let head):
        framing = framing(of: head)
        return .head(head)
      case .refuseHead: return .refuseHead
      case .refuse(let violation): return .refuse(violation)
      }
    }
    return .needsMore
  }

  /// Whether the response may end with the connection here.
  package var mayEnd: Bool {
    switch framing {
    case .untilClose, .some(.none), .length(left: 0): true
    case .chunked(let reader): reader.isComplete
    case .length, nil: false
    }
  }

  private func framing(of head: ResponseHead) -> Framing {
    if head.status == 101 || head.status == 204 || head.status == 304 { return .none }
    if assembly.framing.isChunked { return .chunked(ChunkedReader(trailerSizeLimit: assembly.headSizeLeft)) }
    if let length = assembly.framing.contentLength { return .length(left: length) }
    return .untilClose
  }

  private mutating func readBody(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) -> Step {
    let rest = bytes.count - position
    switch framing {
    case nil, .some(.none): return .end
    case .length(let left):
      let count = Int(min(left, Int64(rest)))
      let isFull = append(bytes[position..<position + count])
      position += count
      framing = .length(left: left - Int64(count))
      return isFull || left == Int64(count) ? .end : .needsMore
    case .untilClose:
      defer { position = bytes.count }
      return append(bytes[position...]) ? .end : .needsMore
    case .chunked(var reader):
      defer { framing = .chunked(reader) }
      return readChunks(bytes, &position, &reader)
    }
  }

  private mutating func readChunks(
    _ bytes: UnsafeRawBufferPointer, _ position: inout Int, _ reader: inout ChunkedReader
  ) -> Step {
    while true {
      switch reader.read(bytes, from: &position) {
      case .content(let range):
        reader.contentTaken(range.count)
        position = range.upperBound
        if append(bytes[range]) { return .end }
      case .needsMore: return .needsMore
      case .end: return .end
      case .refuseTrailers: return .refuseHead
      case .refuse(let violation): return .refuse(violation)
      }
    }
  }

  /// Returns whether the limit is reached.
  private mutating func append(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    body.append(contentsOf: bytes.prefix(bodySizeLimit - body.count))
    return body.count >= bodySizeLimit
  }
}
