extension Reply {
  /// Returns the byte at an offset of the deterministic content of `/bytes/{n}` and of pattern bodies. The content
  /// has a prime period, so that blocks which were lost, doubled or exchanged are noticed.
  public static func patternByte(at offset: Int) -> UInt8 {
    pattern[offset % patternPeriod]
  }

  /// Returns the first bytes of the deterministic content; none for a negative count.
  public static func patternBytes(_ count: Int) -> [UInt8] {
    patternBytes(0..<max(0, count))
  }

  static func patternBytes(_ range: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    while bytes.count < range.count {
      let rest = pattern[((range.lowerBound + bytes.count) % patternPeriod)...]
      bytes += rest.prefix(range.count - bytes.count)
    }
    return bytes
  }

  private static let patternPeriod = 65_521

  private static let pattern: [UInt8] = (0..<patternPeriod).map { offset in
    UInt8(truncatingIfNeeded: offset &* 167 &+ (offset >> 7) &* 13)
  }
}
