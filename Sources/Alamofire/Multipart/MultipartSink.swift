import Foundation

/// Where the bytes of an encoded form go.
protocol MultipartSink {
  mutating func write(_ bytes: UnsafeRawBufferPointer) throws
}

/// Collects them in memory.
struct MultipartMemory: MultipartSink {
  private(set) var data = Data()

  /// - Parameter capacity: How many bytes are expected. No more than a gigabyte is taken in advance, so that a
  ///   large number alone cannot exhaust the memory.
  init(capacity: UInt64) {
    data.reserveCapacity(Int(min(capacity, 1 << 30)))
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer) {
    data.append(contentsOf: bytes)
  }
}
