package import FoundationEssentials
import Synchronization

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

/// Reused memory for the chunks of one body, because fresh pages from the system take longer than copying a chunk.
package final class ChunkMemory: Sendable {
  /// The address of an unused block, or 0.
  private final class Slot: Sendable {
    /// The address of a free block. An exchange with acquire order removes it; one with release order returns it.
    let address = Atomic<UInt>(0)
  }

  /// The size of a block.
  package static let blockSize = 131_072

  private let slots = (0..<12).map { _ in Slot() }

  package init() {}

  deinit {
    for slot in slots { Self.pointer(slot.address.load(ordering: .acquiring))?.deallocate() }
  }

  fileprivate func take() -> UnsafeMutableRawPointer {
    for slot in slots where slot.address.load(ordering: .relaxed) != 0 {
      if let base = Self.pointer(slot.address.exchange(0, ordering: .acquiring)) { return base }
    }
    return .allocate(byteCount: Self.blockSize, alignment: 16)
  }

  fileprivate func give(_ base: UnsafeMutableRawPointer) {
    let address = UInt(bitPattern: base)
    for slot in slots {
      let (isStored, _) = slot.address.compareExchange(expected: 0, desired: address, ordering: .releasing)
      if isStored { return }
    }
    base.deallocate()
  }

  private static func pointer(_ address: UInt) -> UnsafeMutableRawPointer? {
    UnsafeMutableRawPointer(bitPattern: address)
  }
}

/// A chunk that grows until a reader takes it.
///
/// Unchecked: bytes are appended under the lock of the `Fanout` that holds it, before a reader has it.
package final class GrowingChunk: @unchecked Sendable {
  /// The size of a piece after which another one is likely to follow at once, such as a full record of TLS.
  private static let fullPiece = 16_384

  /// A block of a memory, which returns there.
  private final class Block {
    private let memory: ChunkMemory
    let base: UnsafeMutableRawPointer

    init(in memory: ChunkMemory) {
      self.memory = memory
      base = memory.take()
    }

    deinit { memory.give(base) }
  }

  private let block: Block
  /// The bytes once a reader has asked for them, for all readers.
  private let shared = Mutex<Data?>(nil)
  @exclusivity(unchecked) private var count = 0
  /// Whether appending has ended, because no more bytes are likely to follow soon.
  @exclusivity(unchecked) private var isClosed = false

  /// Whether another piece is likely to follow this one at once, and fits.
  package static func mayBegin(with bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count >= fullPiece && bytes.count < ChunkMemory.blockSize
  }

  /// Makes an empty chunk.
  package init(in memory: ChunkMemory) {
    block = Block(in: memory)
  }

  /// Returns false, and appends nothing, if there is not enough room, or the chunk is closed by a small piece.
  package func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let source = bytes.baseAddress, !isClosed, bytes.count <= ChunkMemory.blockSize - count else {
      return false
    }
    (block.base + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
    isClosed = bytes.count < Self.fullPiece
    return true
  }

  /// The bytes, without a copy. All readers share one value, so that a reader that changes it gets a copy. The address
  /// of the bytes is constant until they are released.
  package var data: Data {
    shared.withLock { shared in
      if let shared { return shared }
      let data = Data(
        bytesNoCopy: block.base, count: count,
        deallocator: .custom { [block] _, _ in withExtendedLifetime(block) {} })
      shared = data
      return data
    }
  }
}
