/// Makes the compressors and decompressors of permessage-deflate: HTTPWire itself has none.
package protocol MessageCompression: Sendable {
  /// Returns a compressor that refers back by at most 2^`windowBits` bytes (8 to 15). Returns `nil` if such a window is
  /// not supported, or if memory is short; messages are then sent uncompressed.
  func makeCompressor(windowBits: Int) -> (any MessageCompressor)?
  /// Returns a decompressor for a window of 2^`windowBits` bytes (8 to 15), or `nil` if memory is short.
  func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)?
}

/// Compresses messages with DEFLATE (RFC 1951), without a wrapping.
package protocol MessageCompressor: AnyObject {
  /// Appends a compressed message that ends with an empty stored block: `00 00 FF FF`. Returns false if that fails.
  func compress(_ message: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool
  /// Forgets the earlier messages.
  func reset()
}

/// Decompresses messages of DEFLATE, without a wrapping.
package protocol MessageDecompressor: AnyObject {
  /// Decompresses as much as there is room for. If the output is not full, all of the input was used.
  func decompress(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecompressionStep
  /// Whether the input so far ends with a complete block.
  var isAtBlockEnd: Bool { get }
  /// Forgets the earlier messages.
  func reset()
}

/// The result of one call of a ``MessageDecompressor``.
package struct DecompressionStep: Sendable {
  package enum Fault: Sendable, Equatable {
    case malformed(String)
    case outOfMemory
  }

  package var consumed: Int
  package var produced: Int
  package var fault: Fault?

  package init(consumed: Int = 0, produced: Int = 0, fault: Fault? = nil) {
    self.consumed = consumed
    self.produced = produced
    self.fault = fault
  }
}

/// The end of each compressed message, which is not sent (RFC 7692 §7.2.1).
let emptyStoredBlock: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

/// Decompresses the messages of one direction of a connection. The decompressor is created with the first message.
final class MessageInflation {
  struct CompressionStep {
    let consumed: Int
    /// Valid until the next step.
    let output: UnsafeRawBufferPointer
    /// A fault after the output. The output may show another violation before it.
    let fault: WebSocketViolation?
  }

  /// The size of the buffers: the number of bytes that a step adds to a message at most.
  let bufferSize = 16_384
  private let direction: WebSocketDeflate.Direction
  private let compression: any MessageCompression
  private var decompressor: (any MessageDecompressor)?
  /// The bytes of ``emptyStoredBlock``, which are decompressed after each message.
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
  func step(_ input: UnsafeRawBufferPointer) throws(WebSocketViolation) -> CompressionStep {
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
    return CompressionStep(consumed: step.consumed, output: produced, fault: fault)
  }

  /// Checks the end of a message.
  func endMessage() throws(WebSocketViolation) {
    guard let decompressor, decompressor.isAtBlockEnd else {
      throw .compressedData("it ends inside of a block")
    }
    if direction.resetsContext { decompressor.reset() }
  }
}

/// Compresses the messages of one direction of a connection. The compressor is created with the first message.
final class MessageDeflation {
  enum Result {
    /// The message without its end (``emptyStoredBlock``).
    case compressed([UInt8].SubSequence)
    /// The message is sent uncompressed.
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

  /// Whether messages can be compressed.
  var isAvailable: Bool {
    if compressor == nil, !isUnavailable {
      compressor = compression.makeCompressor(windowBits: direction.windowBits)
      isUnavailable = compressor == nil
    }
    return compressor != nil
  }

  func compress(_ message: UnsafeRawBufferPointer) -> Result {
    guard isAvailable else { return .uncompressed }
    guard let compressed = compress(message, isLast: true) else { return .failed }
    // Without a context the peer does not miss a message that was not sent compressed.
    return direction.resetsContext && compressed.count >= message.count
      ? .uncompressed : .compressed(compressed)
  }

  /// Compresses the next piece of a message. The last piece is without its end (``emptyStoredBlock``). Returns `nil` if
  /// that fails.
  func compress(_ piece: UnsafeRawBufferPointer, isLast: Bool) -> [UInt8].SubSequence? {
    output.removeAll(keepingCapacity: output.capacity <= Self.keptCapacity)
    guard let compressor, compressor.compress(piece, into: &output),
      output.suffix(4).elementsEqual(emptyStoredBlock)
    else { return nil }
    guard isLast else { return output[...] }
    if direction.resetsContext { compressor.reset() }
    return output.dropLast(4)
  }
}
