/// Decompresses the messages of one direction of a connection. The decompressor is made with the first message.
final class MessageInflation {
  struct Step {
    let consumed: Int
    /// Valid until the next step.
    let output: UnsafeRawBufferPointer
    /// A fault behind the output. The output may show another violation before it.
    let fault: WebSocketViolation?
  }

  /// The size of the buffers: the number of bytes that a step adds to a message at most.
  let bufferSize = 16_384
  private let direction: WebSocketDeflate.Direction
  private let compression: any MessageCompression
  private var decompressor: (any MessageDecompressor)?
  /// The bytes of ``emptyStoredBlock``, which are decompressed behind each message.
  let messageEnd: UnsafeRawBufferPointer
  private let buffer: UnsafeMutableRawBufferPointer
  private let output: UnsafeMutableRawBufferPointer
  /// The unmasked input of a server.
  private let input: UnsafeMutableRawBufferPointer

  init(_ direction: WebSocketDeflate.Direction, _ compression: any MessageCompression) {
    self.direction = direction
    self.compression = compression
    buffer = .allocate(byteCount: 2 * bufferSize + emptyStoredBlock.count, alignment: 16)
    output = UnsafeMutableRawBufferPointer(rebasing: buffer[..<bufferSize])
    input = UnsafeMutableRawBufferPointer(rebasing: buffer[bufferSize..<2 * bufferSize])
    let end = UnsafeMutableRawBufferPointer(rebasing: buffer[(2 * bufferSize)...])
    end.copyBytes(from: emptyStoredBlock)
    messageEnd = UnsafeRawBufferPointer(end)
  }

  deinit { buffer.deallocate() }

  /// Returns the first bytes of a payload unmasked, valid until the next call.
  func unmask(_ payload: UnsafeRawBufferPointer, _ mask: inout WebSocketMask?) -> UnsafeRawBufferPointer {
    guard mask != nil else { return payload }
    let count = min(payload.count, input.count)
    let copy = UnsafeMutableRawBufferPointer(rebasing: input[..<count])
    copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: payload[..<count]))
    mask?.apply(to: copy)
    return UnsafeRawBufferPointer(copy)
  }

  /// Decompresses until the buffer is full.
  func step(_ input: UnsafeRawBufferPointer) throws(WebSocketViolation) -> Step {
    if decompressor == nil { decompressor = compression.makeDecompressor(windowBits: direction.windowBits) }
    guard let decompressor else { throw .outOfMemory }
    let step = decompressor.decompress(input, into: output)
    let fault: WebSocketViolation? =
      switch step.fault {
      case .malformed(let reason): .compressedData(reason)
      case .outOfMemory: .outOfMemory
      case nil: nil
      }
    let produced = UnsafeRawBufferPointer(rebasing: output[..<step.produced])
    return Step(consumed: step.consumed, output: produced, fault: fault)
  }

  /// Checks the end of a message.
  func endMessage() throws(WebSocketViolation) {
    guard let decompressor, decompressor.isAtBlockEnd else {
      throw .compressedData("it ends inside of a block")
    }
    if direction.resetsContext { decompressor.reset() }
  }
}

/// Compresses the messages of one direction of a connection. The compressor is made with the first message.
final class MessageDeflation {
  enum Result {
    /// The message without its end (``emptyStoredBlock``).
    case compressed([UInt8].SubSequence)
    /// The message is sent as it is.
    case uncompressed
    case failed
  }

  private static let keptCapacity = 65_536

  private let direction: WebSocketDeflate.Direction
  private let compression: any MessageCompression
  private var compressor: (any MessageCompressor)?
  private var isUnavailable = false
  private var output: [UInt8] = []

  init(_ direction: WebSocketDeflate.Direction, _ compression: any MessageCompression) {
    self.direction = direction
    self.compression = compression
  }

  func compress(_ message: UnsafeRawBufferPointer) -> Result {
    if compressor == nil, !isUnavailable {
      compressor = compression.makeCompressor(windowBits: direction.windowBits)
      isUnavailable = compressor == nil
    }
    guard let compressor else { return .uncompressed }
    output.removeAll(keepingCapacity: output.capacity <= Self.keptCapacity)
    guard compressor.compress(message, into: &output), output.suffix(4).elementsEqual(emptyStoredBlock) else {
      return .failed
    }
    guard direction.resetsContext else { return .compressed(output.dropLast(4)) }
    compressor.reset()
    // Without a context the peer does not miss a message that was not sent compressed.
    return output.count - 4 < message.count ? .compressed(output.dropLast(4)) : .uncompressed
  }
}
