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

/// The bytes of a stream that have arrived and have not been read yet.
///
/// Many small reads can follow a large one that has timed out. So the bytes after a read stay where they are, until
/// more than half of the memory is free.
struct ArrivedBytes {
  private var bytes = Data()
  /// The number of bytes at the front that were read.
  private var position = 0
  /// The number of bytes that were moved to the front of the memory so far; for tests.
  private(set) var movedCount = 0

  var count: Int { bytes.count - position }

  mutating func append(_ new: UnsafeRawBufferPointer) { bytes.append(contentsOf: new) }

  /// Removes and returns at most `limit` bytes.
  mutating func take(_ limit: Int) -> Data {
    guard limit < count else { return takeAll() }
    let end = position + max(0, limit)
    let taken = bytes.subdata(in: position..<end)
    position = end
    if position > bytes.count / 2 {
      movedCount += count
      bytes = bytes.subdata(in: position..<bytes.count)
      position = 0
    }
    return taken
  }

  private mutating func takeAll() -> Data {
    let taken = position == 0 ? bytes : bytes.subdata(in: position..<bytes.count)
    bytes = Data()
    position = 0
    return taken
  }
}
