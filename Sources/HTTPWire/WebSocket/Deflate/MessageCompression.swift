/// Makes the compressors and decompressors of permessage-deflate: HTTPWire itself has none.
package protocol MessageCompression: Sendable {
  /// Returns a compressor whose output refers back by at most 2^`windowBits` bytes (8 to 15). If there is none for
  /// such a window, or no memory, returns `nil`, and messages are sent uncompressed.
  func makeCompressor(windowBits: Int) -> (any MessageCompressor)?
  /// Returns a decompressor for a window of 2^`windowBits` bytes (8 to 15), or `nil` if there is no memory.
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
