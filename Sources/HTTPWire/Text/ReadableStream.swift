public import FoundationEssentials

/// Makes the text of a body readable while it arrives in pieces, as ``ReadableText`` does it with lines.
///
/// ```swift
/// var stream = ReadableStream()
/// for await chunk in chunks { FileHandle.standardOutput.write(stream.add(chunk)) }
/// FileHandle.standardOutput.write(stream.finish())
/// ```
///
/// Bytes are read as UTF-8. What is not UTF-8 becomes U+FFFD, so that a terminal cannot take it for a control
/// character. At most three bytes are held back until the next piece.
public struct ReadableStream: Sendable {
  /// The beginning of a character, or a CR, at the end of the last piece.
  private var held: [UInt8] = []

  /// Begins a text.
  public init() {}

  /// Returns the readable text of the next bytes.
  public mutating func add(_ bytes: Data) -> Data {
    if held.isEmpty, ReadableText.isPlain(bytes, keepsLines: true) { return bytes }
    var all = held
    all += bytes
    let kept = Self.incompleteCount(all)
    held = Array(all.suffix(kept))
    return Self.text(all.dropLast(kept))
  }

  /// Returns what was held back. Called at the end of the text.
  public mutating func finish() -> Data {
    defer { held = [] }
    return Self.text(held[...])
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> Data {
    Data(ReadableText.lines(String(decoding: bytes, as: UTF8.self)).utf8)
  }

  /// Returns the number of bytes at the end that the next bytes may complete.
  private static func incompleteCount(_ bytes: [UInt8]) -> Int {
    if bytes.last == 0x0D { return 1 }
    for count in 1...3 where count <= bytes.count {
      let byte = bytes[bytes.count - count]
      if byte & 0xC0 == 0x80 { continue }
      let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
      return length > count ? count : 0
    }
    return 0
  }
}
