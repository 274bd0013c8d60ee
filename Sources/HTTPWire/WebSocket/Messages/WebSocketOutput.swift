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

  package init(role: WebSocketRole, deflate: WebSocketDeflate? = nil) {
    self.role = role
    self.deflate = deflate
  }
}

/// The frames that a connection has to write.
struct WebSocketOutput {
  private let role: WebSocketRole
  private let maximumFrameSize: Int
  private let compressionThreshold: Int
  private let deflation: MessageDeflation?
  private let makeKey: () -> UInt32
  private var bytes = Data()
  /// The payload of the last Ping frame without an answer. Earlier ones need none (RFC 6455 §5.5.3), so that Ping frames
  /// cannot fill the memory while the peer reads nothing.
  private var pingPayload: [UInt8] = []
  private var owesPong = false

  init(
    _ options: WebSocketOptions, compression: (any MessageCompression)?, makeKey: @escaping () -> UInt32
  ) {
    role = options.role
    maximumFrameSize = max(1, options.maximumFrameSize)
    compressionThreshold = max(1, options.compressionThreshold)
    self.makeKey = makeKey
    var deflation: MessageDeflation?
    if let compression, let deflate = options.deflate {
      deflation = MessageDeflation(deflate.outgoing(of: options.role), compression)
    }
    self.deflation = deflation
  }

  var hasBytes: Bool { owesPong || !bytes.isEmpty }

  var byteCount: Int {
    bytes.count + (owesPong ? pingPayload.count + (role == .client ? 6 : 2) : 0)
  }

  mutating func take() -> Data? {
    appendPong()
    guard !bytes.isEmpty else { return nil }
    defer { bytes = Data() }
    return bytes
  }

  mutating func discard() {
    bytes = Data()
    owesPong = false
  }

  mutating func answerPing(_ payload: [UInt8]) {
    pingPayload.removeAll(keepingCapacity: true)
    pingPayload.append(contentsOf: payload)
    owesPong = true
  }

  /// Appends a message, compressed if that was agreed on. Returns false if it cannot be compressed.
  mutating func append(_ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer) -> Bool {
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

  /// Appends a Close frame, which is the last one, behind the Pong frame.
  mutating func appendClose(_ code: WebSocketCloseCode?, reason: String) {
    appendPong()
    var payload: [UInt8] = []
    if let code {
      payload = [UInt8(truncatingIfNeeded: code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
      payload += reason.utf8
    }
    payload.withUnsafeBytes { appendControl(.close, $0) }
  }

  private mutating func appendPong() {
    guard owesPong else { return }
    owesPong = false
    let payload = pingPayload
    payload.withUnsafeBytes { appendControl(.pong, $0) }
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
    var header = header
    if role == .client { header.mask = WebSocketMask(key: makeKey()) }
    if bytes.isEmpty { bytes.reserveCapacity(payload.count + WebSocketFrameHeader.longestHeader) }
    header.append(payload: payload, to: &bytes)
  }
}
