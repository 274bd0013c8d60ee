package import FoundationEssentials
import Synchronization

/// A bounded queue of bytes with two marks, between a writer and a reader that do not wait inside. Pure: the owner
/// holds its lock, and wakes the reader or the writer.
package struct BodyChannel: Sendable {
  /// The number of unread bytes above which the writer stops.
  package let highMark: Int
  /// The number of unread bytes below which the writer continues.
  package let lowMark: Int
  /// The number of unread bytes.
  package private(set) var count = 0

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

  package init(highMark: Int = 1 << 20, lowMark: Int = 1 << 18) {
    self.highMark = max(1, highMark)
    self.lowMark = min(max(0, lowMark), self.highMark)
  }

  /// Puts bytes in. After the end it does nothing.
  package mutating func write(_ data: Data) -> Written {
    guard end == nil else { return Written(wakesReader: false, mayGoOn: false) }
    guard !data.isEmpty else { return Written(wakesReader: false, mayGoOn: true) }
    chunks.append(data)
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
  package mutating func read(into room: UnsafeMutableRawBufferPointer) -> (BodyReading, wakesWriter: Bool) {
    guard !room.isEmpty else { return (.wait, false) }
    var copied = 0
    while copied < room.count, head < chunks.count {
      let chunk = chunks[head]
      let length = min(room.count - copied, chunk.count - offset)
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

  private mutating func dropFirst() {
    chunks[head] = Data()
    head += 1
    offset = 0
    guard head == chunks.count || head > 64 else { return }
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
