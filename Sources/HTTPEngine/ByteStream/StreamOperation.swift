import FoundationEssentials
import HTTPWire

/// An operation of a stream that has not completed.
struct StreamOperation {
  enum Answer {
    case bytes(ByteStreamCompletion<StreamedBytes>)
    case done(ByteStreamCompletion<Void>)
  }

  let answer: Answer
  /// The bytes that are still to be written.
  var data = Data()
  let timeout: UInt64?
  var expiry: UInt64 = .max
}
