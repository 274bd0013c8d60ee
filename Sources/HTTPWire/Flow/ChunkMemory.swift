import FoundationEssentials
import Synchronization

/// Reused memory for the chunks of one body, because fresh pages from the system take longer than copying a chunk.
/// The memory has no lock, because chunks are made and released under the lock of their log.
package final class ChunkMemory: Sendable {
  /// The address of an unused block, or 0.
  private final class Slot: Sendable {
    /// The address of a free block. It is taken by an exchange with acquire order, and given back with release.
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
      let (isKept, _) = slot.address.compareExchange(expected: 0, desired: address, ordering: .releasing)
      if isKept { return }
    }
    base.deallocate()
  }

  private static func pointer(_ address: UInt) -> UnsafeMutableRawPointer? {
    UnsafeMutableRawPointer(bitPattern: address)
  }
}

/// A chunk that grows until a reader takes it.
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

  /// Returns the bytes, whose address is constant until they are released. Nothing may be appended any more.
  func close() -> Data {
    Data(
      bytesNoCopy: base, count: count, deallocator: .custom { [self] _, _ in withExtendedLifetime(self) {} })
  }
}
