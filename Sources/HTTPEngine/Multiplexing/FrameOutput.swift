/// The frames that wait for the connection, as bytes in one piece, so that the frames of a turn leave in one write.
/// Belongs to the loop's thread.
final class FrameOutput {
  private static let smallest = 4_096
  /// A larger block is returned when it is empty.
  private static let largestKept = 16_384

  @exclusivity(unchecked) private var block: UnsafeMutableRawBufferPointer
  @exclusivity(unchecked) private var start = 0
  @exclusivity(unchecked) private var end = 0

  init() { block = UnsafeMutableRawBufferPointer(start: nil, count: 0) }

  deinit { block.deallocate() }

  var count: Int { end - start }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[start..<end]) }

  func append(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
    reserve(bytes.count).copyMemory(from: bytes)
    end += bytes.count
  }

  /// Returns memory behind the bytes, which are part of them once ``commit(_:)`` is called. It is valid until then.
  func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
    if block.count - end < count { makeRoom(for: count) }
    return UnsafeMutableRawBufferPointer(rebasing: block[end..<end + count])
  }

  func commit(_ count: Int) {
    precondition(count >= 0 && count <= block.count - end, "more bytes than reserved")
    end += count
  }

  /// Removes the first bytes, which the connection has taken.
  func drop(_ count: Int) {
    precondition(count >= 0 && count <= self.count, "more bytes taken than there are")
    start += count
    guard start == end else { return }
    start = 0
    end = 0
    guard block.count > Self.largestKept else { return }
    block.deallocate()
    block = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  private func makeRoom(for count: Int) {
    let length = self.count
    var capacity = max(block.count, Self.smallest)
    while capacity < length + count { capacity *= 2 }
    guard capacity > block.count else {
      // Only the place is used up, not the memory.
      if let base = block.baseAddress { base.copyMemory(from: base + start, byteCount: length) }
      start = 0
      end = length
      return
    }
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    larger.copyMemory(from: bytes)
    block.deallocate()
    block = larger
    start = 0
    end = length
  }
}
