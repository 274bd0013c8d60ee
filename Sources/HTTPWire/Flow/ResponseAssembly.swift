/// Puts a response together from the lines and the bytes that a transport reads. Pure: the transport
/// tells what came, and is told what to do.
package struct ResponseAssembly: Sendable {
  private enum State: Sendable {
    /// Before a status line, also after the head of an informational response.
    case waitingForHead
    /// Between a status line and the empty line that ends the head.
    case inHead(status: Int, version: HTTPVersion)
    /// The head of the final response has come; later lines are trailers.
    case inBody
  }

  /// What a header line means to the transport.
  package enum LineAction: Sendable {
    case keep
    case deliver(ResponseHead)
    /// The head is larger than the limit.
    case refuseHead
  }

  /// What the arrival of bytes of the body means to the transport.
  package enum BodyAction: Sendable, Equatable {
    case store
    /// The decoded body is larger than the limit.
    case refuseBody
  }

  private var state = State.waitingForHead
  private var lines: [UInt8] = []
  private var headSizeLimit: Int
  /// The fields of all heads so far: an endless row of informational ones is too large as well.
  private var headSize = 0
  private var bodySizeLimit: Int64?
  package private(set) var bodyCount: Int64 = 0
  /// What the fields of the head say so far.
  private var marks: FieldMarks = []
  package private(set) var head: ResponseHead?

  /// Whether the body comes with a coding of the content or of the transfer, so that its length does not tell how much comes:
  /// libcurl undoes the latter, too, whether or not they were asked for.
  package var isEncoded: Bool { !marks.isDisjoint(with: [.contentEncoding, .transferEncoding]) }

  package init(headSizeLimit: Int = 262_144, bodySizeLimit: Int64? = nil) {
    self.headSizeLimit = headSizeLimit
    self.bodySizeLimit = bodySizeLimit
  }

  /// Makes it as new for another response; the memory for lines is kept.
  package mutating func restart(headSizeLimit: Int, bodySizeLimit: Int64?) {
    state = .waitingForHead
    lines.removeAll(keepingCapacity: true)
    self.headSizeLimit = headSizeLimit
    self.bodySizeLimit = bodySizeLimit
    headSize = 0
    bodyCount = 0
    marks = []
    head = nil
  }

  /// One line of a head or a trailer, with its line break.
  package mutating func lineReceived(_ line: UnsafeRawBufferPointer) -> LineAction {
    switch state {
    case .inBody:
      return .keep
    case .waitingForHead:
      guard let (status, version) = Self.statusLine(line) else { return .keep }
      state = .inHead(status: status, version: version)
      lines.removeAll(keepingCapacity: true)
      marks = []
      return .keep
    case .inHead(let status, let version):
      guard !Self.isEmpty(line) else { return headEnded(status, version) }
      headSize += line.count
      guard headSize <= headSizeLimit else { return .refuseHead }
      if line[0] == 0x20 || line[0] == 0x09 {
        guard !lines.isEmpty else { return .keep }
        unfold()
      }
      marks.formUnion(FieldMarks(ofLine: line))
      lines.append(contentsOf: line)
      return .keep
    }
  }

  /// A line that starts with white space goes on with the field before it: what stands between them
  /// is one space (RFC 9112 §5.2).
  private mutating func unfold() {
    while let last = lines.last, last == 0x0D || last == 0x0A { lines.removeLast() }
  }

  /// Decoded bytes of the body have come.
  package mutating func bodyReceived(_ count: Int) -> BodyAction {
    bodyCount += Int64(count)
    if let bodySizeLimit, bodyCount > bodySizeLimit { return .refuseBody }
    return .store
  }

  private mutating func headEnded(_ status: Int, _ version: HTTPVersion) -> LineAction {
    // 101 ends the use of HTTP on the connection and so is final (RFC 9110 §15.2.2).
    guard status >= 200 || status == 101 else {
      state = .waitingForHead
      headSize += 32
      return .keep
    }
    state = .inBody
    let head = ResponseHead(status: status, version: version, block: FieldBlock(bytes: lines, marks: marks))
    self.head = head
    return .deliver(head)
  }

  /// The status and version of a status line (RFC 9112 §4), or `nil` if `line` is none.
  private static func statusLine(_ line: UnsafeRawBufferPointer) -> (Int, HTTPVersion)? {
    guard line.count >= 9, line[0] == 0x48, line[1] == 0x54, line[2] == 0x54, line[3] == 0x50, line[4] == 0x2F
    else { return nil }
    var at = 5
    while at < line.count, line[at] != 0x20 { at += 1 }
    let version: HTTPVersion
    switch line[5] {
    case 0x33: version = .http3
    case 0x32: version = .http2
    default: version = at == 8 && line[7] == 0x30 ? .http1_0 : .http1_1
    }
    while at < line.count, line[at] == 0x20 { at += 1 }
    guard at + 2 < line.count else { return nil }
    var status = 0
    for byte in line[at..<at + 3] {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      status = status * 10 + Int(byte - 0x30)
    }
    return (status, version)
  }

  private static func isEmpty(_ line: UnsafeRawBufferPointer) -> Bool {
    line.allSatisfy { $0 == 0x0D || $0 == 0x0A }
  }
}
