/// Cutting bodies that come in parts.
extension [Reply.Part] {
  /// Returns the parts up to `limit` bytes; later parts are omitted.
  func prefix(bytes limit: Int) -> [Reply.Part] {
    var result: [Reply.Part] = []
    var left = Swift.max(0, limit)
    for part in self {
      guard left > 0 else { break }
      switch part {
      case .bytes(let bytes): result.append(.bytes([UInt8](bytes.prefix(left))))
      case .pattern(let count): result.append(.pattern(Swift.min(count, left)))
      case .pause, .gate: result.append(part)
      }
      left -= part.length
    }
    return result
  }

  /// Returns the parts as steps of at most `bytesPerStep` bytes, with a pause between steps.
  func split(bytesPerStep: Int, interval: Duration) -> [Reply.Part] {
    let step = Swift.max(1, bytesPerStep)
    var result: [Reply.Part] = []
    var isFirst = true
    for part in self {
      guard part.length > 0 else {
        result.append(part)
        continue
      }
      let bytes = part.collected()
      for start in stride(from: 0, to: bytes.count, by: step) {
        if !isFirst { result.append(.pause(interval)) }
        isFirst = false
        result.append(.bytes([UInt8](bytes[start..<Swift.min(start + step, bytes.count)])))
      }
    }
    return result
  }
}

extension Reply.Part {
  func collected() -> [UInt8] {
    switch self {
    case .bytes(let bytes): bytes
    case .pattern(let count): Reply.patternBytes(count)
    case .pause, .gate: []
    }
  }
}

extension Reply.Body {
  /// Returns all bytes, in memory.
  func collected() -> [UInt8] { parts.flatMap { $0.collected() } }
}
