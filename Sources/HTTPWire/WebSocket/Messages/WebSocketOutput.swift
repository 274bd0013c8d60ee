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
  /// The number of bytes from which on a payload is stored without a copy until it is written. If messages are
  /// compressed, this is done then.
  package var keptPayloadSize = 65_536

  package init(role: WebSocketRole, deflate: WebSocketDeflate? = nil) {
    self.role = role
    self.deflate = deflate
  }
}

/// The frames that a connection has to write.
///
/// Large payloads are stored without a copy, and copied and masked piece by piece when they are taken. If messages are
/// compressed, a piece is a frame of its own, so that no large message is compressed as a whole while others wait. Pong
/// frames overtake other frames.
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
  /// The number of entries at the front of ``large`` that were taken.
  private var takenLarge = 0
  /// The number of bytes in the other entries.
  private var largeCount = 0
  /// The number of entries that are compressed when they are taken.
  private var laterCount = 0
  /// The number of bytes that were taken, except for Pong frames. Of a payload that is compressed when it is taken, the
  /// uncompressed bytes count.
  private(set) var takenCount: UInt64 = 0
  /// Whether a message could not be compressed after it had begun. Nothing can follow.
  private(set) var hasFailed = false
  /// The Pong frames that are not taken yet. If there are too many, only the last Ping frame is answered, because
  /// earlier ones need no answer (RFC 6455 §5.5.3). Thus Ping frames cannot fill the memory while the peer does not
  /// read.
  private var pongs: [UInt8] = []
  /// The memory of frames that is reused for the next ones.
  private static let keptCapacity = 1024
  /// The largest size of ``pongs``. All Ping frames of a read of 64 KiB fit.
  private static let largestPongs = 262_144
  /// The number of bytes that are compressed at a time.
  private static let pieceSize = 65_536

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

  var hasBytes: Bool { !pongs.isEmpty || !bytes.isEmpty || hasLarge }
  private var hasLarge: Bool { takenLarge < large.count }

  var byteCount: Int { frameCount + pongs.count }

  /// The value of ``takenCount`` once all frames were taken.
  var end: UInt64 { takenCount + UInt64(frameCount) }

  /// Whether there are frames other than Pong frames. A Close frame is the last of them.
  var hasFrames: Bool { frameCount > 0 }

  private var frameCount: Int { bytes.count + largeCount }

  /// Returns the next bytes to write; `nil` if there are none.
  ///
  /// - Parameter limit: The number of bytes from which on large payloads add no more. If they are compressed, their
  ///   uncompressed bytes count.
  mutating func take(_ limit: Int) -> Data? {
    guard hasBytes else { return nil }
    var taken = Data()
    // The header of a large payload that is not completely taken stands at the end of earlier frames.
    if !hasLarge || !bytes.isEmpty { takePongs(&taken) }
    taken.append(contentsOf: bytes)
    takenCount += UInt64(bytes.count)
    bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
    var work = taken.count
    while work < limit, hasLarge {
      var next = large[takenLarge]
      let left = next.payload.bytesLeft
      if let opcode = next.payload.compressedOpcode {
        takePongs(&taken)
        guard takePiece(of: &next.payload, opcode, &taken) else { return fail(taken) }
      } else {
        next.payload.move(limit - work, to: &taken)
      }
      work += left - next.payload.bytesLeft
      takenCount += UInt64(left - next.payload.bytesLeft)
      largeCount -= left - next.payload.bytesLeft
      guard next.payload.bytesLeft == 0 else {
        large[takenLarge] = next
        continue
      }
      takePongs(&taken)
      taken.append(contentsOf: next.frames)
      work += next.frames.count
      takenCount += UInt64(next.frames.count)
      removeFirstLarge()
    }
    return taken.isEmpty ? nil : taken
  }

  /// Removes the first large payload, without moving the others each time.
  private mutating func removeFirstLarge() {
    largeCount -= large[takenLarge].frames.count
    if large[takenLarge].payload.compressedOpcode != nil { laterCount -= 1 }
    large[takenLarge] = Large(payload: WebSocketPayload(.binary(Data())))
    takenLarge += 1
    guard !hasLarge || takenLarge > 64 && takenLarge > large.count / 2 else { return }
    large.removeFirst(takenLarge)
    takenLarge = 0
  }

  /// Compresses the next piece of a payload, and appends it as a frame or several. Returns false if that fails.
  private func takePiece(
    of payload: inout WebSocketPayload, _ opcode: WebSocketOpcode, _ taken: inout Data
  ) -> Bool {
    let isFirst = !payload.hasBegun
    let compressed = payload.next(Self.pieceSize) { deflation?.compress($0, isLast: $1) }
    guard let compressed else { return false }
    let isLast = payload.bytesLeft == 0
    var frames: [UInt8] = []
    var rest = compressed
    repeat {
      let fragment = rest.prefix(maximumFrameSize)
      let begins = isFirst && frames.isEmpty
      rest = rest.dropFirst(fragment.count)
      let header = masked(
        WebSocketFrameHeader(
          begins ? opcode : .continuation, length: fragment.count, isFinal: isLast && rest.isEmpty,
          isCompressed: begins))
      fragment.withUnsafeBytes { header.append(payload: $0, to: &frames) }
    } while !rest.isEmpty
    taken.append(contentsOf: frames)
    return true
  }

  /// Gives up the output after a message that has begun and cannot be continued.
  private mutating func fail(_ taken: Data) -> Data? {
    hasFailed = true
    discard()
    return taken.isEmpty ? nil : taken
  }

  mutating func discard() {
    bytes = []
    large = []
    (takenLarge, largeCount, laterCount) = (0, 0, 0)
    pongs = []
  }

  /// Adds a Pong frame, which comes before all frames that have not begun.
  mutating func answerPing(_ payload: [UInt8]) {
    if pongs.count + payload.count + WebSocketFrameHeader.longestHeader > Self.largestPongs { pongs = [] }
    let header = masked(WebSocketFrameHeader(.pong, length: payload.count))
    payload.withUnsafeBytes { header.append(payload: $0, to: &pongs) }
  }

  /// Moves the Pong frames to the end of `taken`.
  private mutating func takePongs(_ taken: inout Data) {
    guard !pongs.isEmpty else { return }
    taken.append(contentsOf: pongs)
    pongs = []
  }

  /// Appends a message, compressed if that was agreed on. Returns false if it cannot be compressed.
  mutating func append(_ message: WebSocketMessage) -> Bool {
    switch message {
    case .text(let text):
      if let storage = storage(text.utf8.count) { return store(message, .text, storage) }
      // A contiguous text is not copied.
      let isAppended = text.utf8.withContiguousStorageIfAvailable {
        append(.text, UnsafeRawBufferPointer($0))
      }
      if let isAppended { return isAppended }
      var copy = text
      return copy.withUTF8 { append(.text, UnsafeRawBufferPointer($0)) }
    case .binary(let data):
      if let storage = storage(data.count) { return store(message, .binary, storage) }
      return data.withUnsafeBytes { append(.binary, $0) }
    }
  }

  /// The form of a payload that is stored without a copy until it is written.
  private enum Storage { case plain, compressedLater }

  /// Returns how a payload of this size is stored; `nil` if its frame is made at once. Messages are compressed in the
  /// order in which they are sent, so one that follows a message that is not compressed yet is stored, too.
  private func storage(_ count: Int) -> Storage? {
    if count >= compressionThreshold, deflation?.isAvailable == true {
      return count >= keptPayloadSize || laterCount > 0 ? .compressedLater : nil
    }
    return count >= keptPayloadSize && count <= maximumFrameSize ? .plain : nil
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

  private mutating func store(
    _ message: WebSocketMessage, _ opcode: WebSocketOpcode, _ storage: Storage
  ) -> Bool {
    var payload = WebSocketPayload(message)
    switch storage {
    case .plain:
      let header = masked(WebSocketFrameHeader(opcode, length: payload.bytesLeft))
      withLastFrames { header.appendHeader(to: &$0) }
      payload.mask = header.mask
    case .compressedLater:
      payload.compressedOpcode = opcode
      laterCount += 1
    }
    largeCount += payload.bytesLeft
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
    guard hasLarge else { return body(&bytes) }
    let count = large[large.count - 1].frames.count
    body(&large[large.count - 1].frames)
    largeCount += large[large.count - 1].frames.count - count
  }
}

/// The payload of a message that is being sent.
private struct WebSocketPayload {
  private let message: WebSocketMessage
  private let count: Int
  private var position = 0
  var mask: WebSocketMask?
  /// The kind of the message if it is compressed when it is taken.
  var compressedOpcode: WebSocketOpcode?

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
  var hasBegun: Bool { position > 0 }

  /// Passes the next bytes, at most `most`, to `body`, with whether they are the last ones.
  mutating func next<Value>(_ most: Int, _ body: (UnsafeRawBufferPointer, Bool) -> Value) -> Value {
    let end = position + min(most, bytesLeft)
    defer { position = end }
    return withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[position..<end]), end == count) }
  }

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
