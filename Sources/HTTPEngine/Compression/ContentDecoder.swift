/// A decoder of one content coding, fed piece by piece. Belongs to one thread at a time.
protocol ContentDecoder: AnyObject {
  /// Whether the input so far ends where the coding ends.
  var isAtEnd: Bool { get }

  /// Reads from `input` and writes to `output`, as much of both as possible.
  ///
  /// If `output` is full afterwards, there may be more to write without further input.
  func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> DecodingStep
}

/// The progress of one call of a ``ContentDecoder``.
struct DecodingStep {
  var consumed = 0
  var produced = 0
  var fault: DecodingFault?
}

/// The reason why a body cannot be decoded.
enum DecodingFault: Error, Equatable {
  /// The bytes are not in the coding; in the words of the library, if it has any.
  case malformed(String)
  case outOfMemory
}
