package import FoundationEssentials
import Synchronization

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
