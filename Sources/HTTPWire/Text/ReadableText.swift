public import FoundationEssentials

/// Text from outside in a form that is safe to show to a person, on a terminal, in a log or in an error message.
///
/// A server chooses header fields, media types, file names, close reasons and bodies. Printed as they are, they can
/// move the cursor, set the clipboard (OSC 52), begin a new line of a log, or reverse the order of what is read
/// (U+202E). Here such characters are replaced by escapes as JSON writes them:
///
/// ```swift
/// print(ReadableText.line("price\u{1B}[2J"))
/// ```
///
/// It prints `price\u001B[2J`. Replaced are control characters (C0, DEL and C1), line and paragraph separators, and
/// the invisible characters of Unicode that change the direction of text or hide it. The joiners U+200C and U+200D
/// stay, because Persian and emoji need them, and so do the variation selectors U+FE00 to U+FE0F. A backslash stays
/// one backslash, so the text cannot always be read back. JSON remains JSON with the same values. `cURLDescription()`
/// and the values of responses are not changed.
public enum ReadableText {
  /// Returns the text on one line: line breaks and tabs are replaced too, by `\n`, `\r` and `\t`.
  ///
  /// The result is unchanged if it is passed in again. It has at most six times as many bytes.
  public static func line(_ text: String) -> String { readable(text, keepsLines: false) }

  /// Returns the text with its line feeds and tabs. CR LF becomes LF, and a CR elsewhere is replaced by `\r`.
  ///
  /// The result is unchanged if it is passed in again. It has at most six times as many bytes.
  public static func lines(_ text: String) -> String { readable(text, keepsLines: true) }

  /// Whether a character is replaced in a line.
  package static func isReplaced(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x20...0x7E: false
    // Control characters, and the soft hyphen.
    case ...0x9F, 0xAD: true
    // Letters and marks without a glyph: a joiner of graphemes, fillers of Hangul, and vowels of Khmer.
    case 0x34F, 0x115F...0x1160, 0x17B4...0x17B5, 0x3164, 0xFFA0: true
    // Marks, embeddings, overrides and isolates of bidirectional text, and invisible characters between them.
    case 0x61C, 0x200B, 0x200E...0x200F, 0x2028...0x202E, 0x2060...0x206F: true
    // The selectors of Mongolian.
    case 0x180B...0x180F: true
    // The byte order mark, and annotations.
    case 0xFEFF, 0xFFF0...0xFFFB: true
    // Controls of shorthand and music.
    case 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A: true
    // Tags and further variation selectors, which spell hidden text.
    case 0xE0000...0xE0FFF: true
    default: false
    }
  }

  /// Whether all bytes stand for themselves: printable ASCII, and line feeds and tabs if lines are preserved.
  static func isPlain(_ bytes: some Sequence<UInt8>, keepsLines: Bool) -> Bool {
    bytes.allSatisfy { (0x20..<0x7F).contains($0) || keepsLines && ($0 == 0x0A || $0 == 0x09) }
  }

  private static func readable(_ text: String, keepsLines: Bool) -> String {
    if isPlain(text.utf8, keepsLines: keepsLines) { return text }
    let scalars = text.unicodeScalars
    guard scalars.contains(where: isReplaced) else { return text }
    var result = ""
    result.reserveCapacity(text.utf8.count + 16)
    var index = scalars.startIndex
    while index < scalars.endIndex {
      let scalar = scalars[index]
      scalars.formIndex(after: &index)
      if keepsLines {
        if scalar == "\n" || scalar == "\t" {
          result.unicodeScalars.append(scalar)
          continue
        }
        if scalar == "\r", index < scalars.endIndex, scalars[index] == "\n" { continue }
      }
      if isReplaced(scalar) { result += escape(scalar) } else { result.unicodeScalars.append(scalar) }
    }
    return result
  }

  /// Returns the escape of a character in a string of JSON (RFC 8259 §7).
  private static func escape(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: UTF16.encode(scalar).map { $0.map(escape).joined() } ?? ""
    }
  }

  private static func escape(_ unit: UInt16) -> String {
    let digits = String(unit, radix: 16, uppercase: true)
    return "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
  }
}

/// Makes the text of a body readable while it arrives in pieces, as ``ReadableText`` does it with lines.
///
/// ```swift
/// var stream = ReadableStream()
/// for await chunk in chunks { try FileHandle.standardOutput.write(contentsOf: stream.add(chunk)) }
/// try FileHandle.standardOutput.write(contentsOf: stream.finish())
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
