package import FoundationEssentials
import Synchronization

/// Memory for the chunks of one body that is used again and again: to get fresh pages from the system for each chunk
/// takes longer than to copy it.
package final class ChunkMemory: Sendable {
  /// A place for one chunk, which goes back when the chunk is released.
  private struct Block: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
  }

  /// The size of a block.
  package static let blockSize = 131_072
  private static let keptBlocks = 12

  private let free = Mutex<[Block]>([])

  package init() {}

  deinit {
    for block in free.withLock({ $0 }) { block.base.deallocate() }
  }

  fileprivate func take() -> UnsafeMutableRawPointer {
    free.withLock { $0.popLast() }?.base ?? .allocate(byteCount: Self.blockSize, alignment: 16)
  }

  fileprivate func give(_ base: UnsafeMutableRawPointer) {
    let isKept = free.withLock { free in
      guard free.count < Self.keptBlocks else { return false }
      free.append(Block(base: base))
      return true
    }
    if !isKept { base.deallocate() }
  }
}

/// A chunk that grows until somebody takes it.
///
/// Unchecked: the owner of the log appends under its lock, before the bytes are given away.
final class OpenChunk: @unchecked Sendable {
  private let memory: ChunkMemory
  private let base: UnsafeMutableRawPointer
  @exclusivity(unchecked) private(set) var count = 0

  init(_ memory: ChunkMemory) {
    self.memory = memory
    base = memory.take()
  }

  deinit { memory.give(base) }

  /// Returns false when there is no room for all of them.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let source = bytes.baseAddress, bytes.count <= ChunkMemory.blockSize - count else { return false }
    (base + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
    return true
  }

  /// The bytes, which keep their place until they are released. Nothing may be appended any more.
  func close() -> Data {
    Data(bytesNoCopy: base, count: count, deallocator: .custom { [self] _, _ in withExtendedLifetime(self) {} })
  }
}
