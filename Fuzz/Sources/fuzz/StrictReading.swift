import HTTPWire

/// Reads heads and chunks strictly. Accepted ones have the properties that the library relies on, and the boundaries of
/// reads do not change the result.
enum StrictReading {
  static func check(_ bytes: UnsafeRawBufferPointer) {
    var assembly = ResponseAssembly(headerSizeLimit: 4096)
    var start = 0
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? bytes.count
      let line = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      start = end
      switch assembly.lineReceived(line) {
      case .keep, .verify: continue
      case .inform(let head): check(head)
      case .refuse(let violation):
        precondition(!violation.message.isEmpty)
        return
      case .refuseHead: return
      case .deliver(let head):
        check(head)
        return checkChunks(UnsafeRawBufferPointer(rebasing: bytes[start...]))
      }
    }
  }

  private static func check(_ head: ResponseHead) {
    precondition(head.status >= 100 && head.status <= 999)
    for field in head.block.fields {
      let isWhole =
        HeaderFieldRules.isToken(field.name) && !field.value.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }
      precondition(isWhole, "a field that is none was accepted")
    }
    let lengths = Set(
      head.block.values(of: "Content-Length").flatMap { $0.split(separator: ",") }.map { Int64($0.trimmed) })
    precondition(lengths.count < 2 && !lengths.contains(nil), "lengths that differ were accepted")
    if head.status / 100 == 3 { precondition(Set(head.block.values(of: "Location")).count < 2) }
  }

  private struct Reading: Equatable {
    var content: [UInt8] = []
    var last = ChunkedReader.ChunkStep.needsMore
  }

  private static func checkChunks(_ bytes: UnsafeRawBufferPointer) {
    let whole = read(bytes, pieceSize: max(1, bytes.count))
    for size in [1, 2, 7] {
      precondition(read(bytes, pieceSize: size) == whole, "the pieces decide what is read")
    }
  }

  private static func read(_ bytes: UnsafeRawBufferPointer, pieceSize: Int) -> Reading {
    var reader = ChunkedReader(trailerSizeLimit: 512)
    var reading = Reading()
    var start = 0
    while start < bytes.count {
      let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + pieceSize, bytes.count)])
      start += piece.count
      var position = 0
      while true {
        reading.last = reader.read(piece, from: &position)
        guard case .content(let range) = reading.last else { break }
        reading.content += piece[range]
        reader.contentTaken(range.count)
        position = range.upperBound
      }
      if reading.last != .needsMore { return reading }
    }
    return reading
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) })
    else { return "" }
    return self[first...last]
  }
}
