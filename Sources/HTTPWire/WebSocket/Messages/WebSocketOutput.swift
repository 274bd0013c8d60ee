import FoundationEssentials

/// The parameters of a ``WebSocketConnection``.
package struct WebSocketOptions: Sendable {
  package var role: WebSocketRole
  /// The largest message that is received, after decompression.
  package var maximumMessageSize = 1_048_576
  /// The largest payload of a sent data frame. Larger messages are fragmented (RFC 6455 §5.4).
  package var maximumFrameSize = Int.max
  /// The parameters of permessage-deflate that were agreed on.
  package var deflate: WebSocketDeflate?
  /// Shorter messages are sent uncompressed.
  package var compressionThreshold = 32
  /// The number of bytes from which on an uncompressed payload is stored without a copy until it is written.
  package var keptPayloadSize = 65_536

  package init(role: WebSocketRole, deflate: WebSocketDeflate? = nil) {
    self.role = role
    self.deflate = deflate
  }
}

/// The frames that a connection has to write.
///
/// Large payloads are stored without a copy, and copied and masked piece by piece when they are taken. Pong frames
/// overtake other frames.
struct WebSocketOutput {
  /// A large payload, and the frames after it.
  private struct Large {
    var payload: WebSocketPayload
    var frames: [UInt8] = []
  }

  private let role: WebSocketRole
  private let maximumFrameSize: Int
  private let compressionThreshold: Int
  private let keptPayloadSize: Int
  private let deflation: MessageDeflation?
  private let makeKey: () -> UInt32
  /// The frames before the first large payload.
  private var bytes: [UInt8] = []
  private var large: [Large] = []
  /// The number of bytes that were taken, except for Pong frames.
  private(set) var takenCount: UInt64 = 0
  /// The Pong frames that are not taken yet. If there are too many, only the last Ping frame is answered, because
  /// earlier ones need no answer (RFC 6455 §5.5.3). Thus Ping frames cannot fill the memory while the peer does not
  /// read.
  private var pongs: [UInt8] = []
  /// The memory of frames that is reused for the next ones.
  private static let keptCapacity = 1024
  /// The largest size of ``pongs``. All Ping frames of a read of 64 KiB fit.
  private static let largestPongs = 262_144

  init(
    _ options: WebSocketOptions, compression: (any MessageCompression)?, makeKey: @escaping () -> UInt32
  ) {
    role = options.role
    maximumFrameSize = max(1, options.maximumFrameSize)
    compressionThreshold = max(1, options.compressionThreshold)
    keptPayloadSize = max(1, options.keptPayloadSize)
    self.makeKey = makeKey
    var deflation: MessageDeflation?
    if let compression, let deflate = options.deflate {
      deflation = MessageDeflation(deflate.outgoing(of: options.role), compression)
    }
    self.deflation = deflation
  }

  var hasBytes: Bool { !pongs.isEmpty || !bytes.isEmpty || !large.isEmpty }

  var byteCount: Int { frameCount + pongs.count }

  /// The value of ``takenCount`` once all frames were taken.
  var end: UInt64 { takenCount + UInt64(frameCount) }

  private var frameCount: Int {
    large.reduce(bytes.count) { $0 + $1.payload.bytesLeft + $1.frames.count }
  }

  /// Returns the next bytes to write; `nil` if there are none.
  ///
  /// - Parameter limit: The number of bytes from which on large payloads add no more.
  mutating func take(_ limit: Int) -> Data? {
    guard hasBytes else { return nil }
    var taken = Data()
    var pongCount = 0
    // The header of a large payload that is not completely taken stands at the end of earlier frames.
    if large.isEmpty || !bytes.isEmpty { pongCount = takePongs(&taken) }
    taken.append(contentsOf: bytes)
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
    while taken.count < limit, var next = large.first {
      next.payload.move(limit - taken.count, to: &taken)
      guard next.payload.bytesLeft == 0 else {
        large[0] = next
        break
      }
      pongCount += takePongs(&taken)
      taken.append(contentsOf: next.frames)
      large.removeFirst()
    }
    takenCount += UInt64(taken.count - pongCount)
    return taken.isEmpty ? nil : taken
  }

  mutating func discard() {
    bytes = []
    large = []
    pongs = []
  }

  /// Adds a Pong frame, which comes before all frames that have not begun.
  mutating func answerPing(_ payload: [UInt8]) {
    if pongs.count + payload.count + WebSocketFrameHeader.longestHeader > Self.largestPongs { pongs = [] }
    let header = masked(WebSocketFrameHeader(.pong, length: payload.count))
    payload.withUnsafeBytes { header.append(payload: $0, to: &pongs) }
  }

  /// Moves the Pong frames to the end of `taken`, and returns the number of their bytes.
  private mutating func takePongs(_ taken: inout Data) -> Int {
    guard !pongs.isEmpty else { return 0 }
    defer { pongs = [] }
    taken.append(contentsOf: pongs)
    return pongs.count
  }

  /// Appends a message, compressed if that was agreed on. Returns false if it cannot be compressed.
  mutating func append(_ message: WebSocketMessage) -> Bool {
    switch message {
    case .text(let text):
      if isKept(text.utf8.count) { return appendLarge(.text, message) }
      // A contiguous text is not copied.
      let isAppended = text.utf8.withContiguousStorageIfAvailable {
        append(.text, UnsafeRawBufferPointer($0))
      }
      if let isAppended { return isAppended }
      var copy = text
      return copy.withUTF8 { append(.text, UnsafeRawBufferPointer($0)) }
    case .binary(let data):
      if isKept(data.count) { return appendLarge(.binary, message) }
      return data.withUnsafeBytes { append(.binary, $0) }
    }
  }

  /// Whether a payload of this size is stored without a copy until it is written.
  private func isKept(_ count: Int) -> Bool {
    count >= keptPayloadSize && count <= maximumFrameSize && deflation == nil
  }

  /// Appends a message, compressed if that was agreed on. Returns false if it cannot be compressed.
  private mutating func append(_ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer) -> Bool {
    if payload.count >= compressionThreshold, let deflation {
      switch deflation.compress(payload) {
      case .compressed(let compressed):
        compressed.withUnsafeBytes { appendFragments(opcode, $0, isCompressed: true) }
        return true
      case .uncompressed: break
      case .failed: return false
      }
    }
    appendFragments(opcode, payload, isCompressed: false)
    return true
  }

  mutating func appendControl(_ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer) {
    append(WebSocketFrameHeader(opcode, length: payload.count), payload)
  }

  /// Appends a Close frame, which is the last one. Pong frames come before it.
  mutating func appendClose(_ code: WebSocketCloseCode?, reason: String) {
    var payload: [UInt8] = []
    if let code {
      payload = [UInt8(truncatingIfNeeded: code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
      payload += reason.utf8
    }
    payload.withUnsafeBytes { appendControl(.close, $0) }
  }

  private mutating func appendFragments(
    _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer, isCompressed: Bool
  ) {
    var start = 0
    repeat {
      let fragment = UnsafeRawBufferPointer(rebasing: payload[start...].prefix(maximumFrameSize))
      let isFirst = start == 0
      start += fragment.count
      append(
        WebSocketFrameHeader(
          isFirst ? opcode : .continuation, length: fragment.count, isFinal: start == payload.count,
          isCompressed: isFirst && isCompressed),
        fragment)
    } while start < payload.count
  }

  private mutating func append(_ header: WebSocketFrameHeader, _ payload: UnsafeRawBufferPointer) {
    let header = masked(header)
    withLastFrames { frames in
      if frames.isEmpty { frames.reserveCapacity(payload.count + WebSocketFrameHeader.longestHeader) }
      header.append(payload: payload, to: &frames)
    }
  }

  private mutating func appendLarge(_ opcode: WebSocketOpcode, _ message: WebSocketMessage) -> Bool {
    var payload = WebSocketPayload(message)
    let header = masked(WebSocketFrameHeader(opcode, length: payload.bytesLeft))
    withLastFrames { header.appendHeader(to: &$0) }
    payload.mask = header.mask
    large.append(Large(payload: payload))
    return true
  }

  private func masked(_ header: WebSocketFrameHeader) -> WebSocketFrameHeader {
    guard role == .client else { return header }
    var header = header
    header.mask = WebSocketMask(key: makeKey())
    return header
  }

  private mutating func withLastFrames(_ body: (inout [UInt8]) -> Void) {
    if large.isEmpty { body(&bytes) } else { body(&large[large.count - 1].frames) }
  }
}

/// The payload of a message that is being sent.
private struct WebSocketPayload {
  private let message: WebSocketMessage
  private let count: Int
  private var position = 0
  var mask: WebSocketMask?

  init(_ message: WebSocketMessage) {
    switch message {
    case .text(var text):
      text.makeContiguousUTF8()
      count = text.utf8.count
      self.message = .text(text)
    case .binary(let data):
      count = data.count
      self.message = message
    }
  }

  var bytesLeft: Int { count - position }

  func withUnsafeBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
    switch message {
    // A contiguous text is not copied.
    case .text(var text): text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    case .binary(let data): data.withUnsafeBytes(body)
    }
  }

  /// Appends the next bytes, at most `most`, and masks them there.
  mutating func move(_ most: Int, to output: inout Data) {
    let end = position + min(most, bytesLeft)
    let start = output.count
    output.reserveCapacity(start + end - position)
    withUnsafeBytes { output.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[position..<end])) }
    position = end
    output.withUnsafeMutableBytes {
      mask?.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...]))
    }
  }
}
