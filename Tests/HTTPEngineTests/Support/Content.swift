/// Content for large bodies, made by copying memory: byte for byte it would take seconds without
/// optimization.
enum Content {
  /// So many bytes, in a pattern with a period that is no power of two.
  static func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count + block.count <= count { bytes += block }
    bytes += block.prefix(count - bytes.count)
    return bytes
  }

  private static let block = (0..<65_519).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ ($0 >> 7) &* 13) }
}
