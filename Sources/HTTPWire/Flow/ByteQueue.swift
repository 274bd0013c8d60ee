package import FoundationEssentials

/// A bounded queue of bytes with two marks, between a writer and a reader that do not wait inside. Pure: the owner
/// holds its lock, and wakes the reader or the writer.
package struct ByteQueue: Sendable {
  /// The number of unread bytes above which the writer stops.
  package let highMark: Int
  /// The number of unread bytes below which the writer continues.
  package let lowMark: Int
  /// The number of unread bytes.
  package private(set) var count = 0

  /// The most bytes of a chunk to which a small write is added.
  private static let joinedSize = 4096

  private var chunks: [Data] = []
  private var head = 0
  private var offset = 0
  private var end: End?
  private var readerWaits = false
  private var writerWaits = false

  private enum End: Sendable {
    case complete
    case failure(TransportFailure)
  }

  /// The effects of a write.
  package struct Written: Equatable, Sendable {
    /// The reader waits for this.
    package var wakesReader: Bool
    /// False above the high mark: the writer stops until it is woken.
    package var mayGoOn: Bool

    package init(wakesReader: Bool, mayGoOn: Bool) {
      self.wakesReader = wakesReader
      self.mayGoOn = mayGoOn
    }
  }

  /// The number of chunks in memory, with those that have been read and are not yet removed.
  package var chunkCount: Int { chunks.count }

  package init(highMark: Int = 1 << 20, lowMark: Int = 1 << 18) {
    self.highMark = max(1, highMark)
    self.lowMark = min(max(0, lowMark), self.highMark)
  }

  /// Puts bytes in. After the end it does nothing. Small writes share a chunk, because each chunk takes memory.
  package mutating func write(_ data: Data) -> Written {
    guard end == nil else { return Written(wakesReader: false, mayGoOn: false) }
    guard !data.isEmpty else { return Written(wakesReader: false, mayGoOn: true) }
    if let last = chunks.indices.last, chunks[last].count + data.count <= Self.joinedSize {
      chunks[last].append(data)
    } else {
      chunks.append(data)
    }
    count += data.count
    writerWaits = count >= highMark
    return Written(wakesReader: takeReader(), mayGoOn: !writerWaits)
  }

  /// Ends the body; the first end counts. Returns whether the reader waits for the end.
  package mutating func finish(_ failure: TransportFailure? = nil) -> Bool {
    guard end == nil else { return false }
    end = failure.map { .failure($0) } ?? .complete
    return takeReader()
  }

  /// Takes bytes out, as many as there is room for. Returns whether the writer waits for them.
  ///
  /// - Parameter limit: The number of bytes that may be read before the body is known to be complete. A failure takes
  ///   the place of later ones. Default: any number.
  package mutating func read(
    into room: UnsafeMutableRawBufferPointer, atMost limit: Int = .max
  ) -> (BodyReading, wakesWriter: Bool) {
    guard !room.isEmpty else { return (.wait, false) }
    let wanted = isComplete ? room.count : min(room.count, max(0, limit))
    var copied = 0
    while copied < wanted, head < chunks.count {
      let chunk = chunks[head]
      let length = min(wanted - copied, chunk.count - offset)
      chunk.withUnsafeBytes { bytes in
        let part = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length])
        UnsafeMutableRawBufferPointer(rebasing: room[copied...]).copyMemory(from: part)
      }
      copied += length
      offset += length
      if offset == chunk.count { dropFirst() }
    }
    count -= copied
    if copied > 0 { return (.bytes(copied), takeWriter()) }
    switch end {
    case .complete: return (.end, false)
    case .failure(let failure): return (.failure(failure), false)
    case nil:
      readerWaits = true
      return (.wait, takeWriter())
    }
  }

  private var isComplete: Bool { if case .complete? = end { true } else { false } }

  private mutating func dropFirst() {
    chunks[head] = Data()
    head += 1
    offset = 0
    // Not after each one: removing chunks moves the others.
    guard head == chunks.count || head > 64 && head > chunks.count / 2 else { return }
    chunks.removeFirst(head)
    head = 0
  }

  private mutating func takeReader() -> Bool {
    defer { readerWaits = false }
    return readerWaits
  }

  private mutating func takeWriter() -> Bool {
    guard writerWaits, count <= lowMark else { return false }
    writerWaits = false
    return true
  }
}
