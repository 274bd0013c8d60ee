/// Content for large bodies. It is made by copying memory, because making single bytes would take seconds without
/// optimization.
enum Content {
  /// Returns bytes in a pattern whose period is not a power of two.
  static func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count + block.count <= count { bytes += block }
    bytes += block.prefix(count - bytes.count)
    return bytes
  }

  private static let block = (0..<65_519).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ ($0 >> 7) &* 13) }
}
