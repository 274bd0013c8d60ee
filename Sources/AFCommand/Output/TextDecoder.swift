package import Foundation
import Glibc

/// A decoder of text that arrives in pieces. A character may be divided between two of them. Bytes that are not a
/// character become U+FFFD.
// Unchecked: one thread at a time uses it, under the lock of the receiver of the body.
final class TextDecoder: @unchecked Sendable {
  private let converter: iconv_t?
  private let unit: Int
  /// Whether bytes can change the meaning of all later ones.
  private let hasShifts: Bool
  /// Whether zero bytes are part of the text.
  var hasWideUnits: Bool { unit > 1 }
  /// The beginning of a character whose end has not arrived.
  private var rest: [UInt8] = []
  private var isAtStart = true

  /// Makes the decoder of a charset; `nil` if this system cannot convert it.
  init?(_ charset: TextCharset) {
    switch charset {
    case .utf8: (converter, unit, hasShifts) = (nil, 1, false)
    case .converter(let names, let unit):
      self.unit = unit
      hasShifts = names.contains { $0.hasPrefix("ISO-2022") }
      let opened = names.lazy.map { iconv_open("UTF-8", $0) }.first { !Self.isInvalid($0) }
      guard let opened else { return nil }
      converter = opened
    }
  }

  deinit { if let converter { iconv_close(converter) } }

  /// Whether `iconv_open` has failed: it returns −1 as a pointer.
  private static func isInvalid(_ converter: iconv_t?) -> Bool {
    converter == nil || converter == iconv_t(bitPattern: -1)
  }

  /// Returns the text of the next bytes.
  func decode(_ data: Data) -> String {
    rest += data
    let text = converter.map { convert($0) } ?? takeUTF8()
    guard isAtStart, !text.isEmpty else { return text }
    isAtStart = false
    // A byte order mark is not part of the text.
    return text.unicodeScalars.first == "\u{FEFF}"
      ? String(String.UnicodeScalarView(text.unicodeScalars.dropFirst())) : text
  }

  /// Returns the text of what is left at the end: a letter that a mark could have followed, and U+FFFD for a character
  /// without its end.
  func finish() -> String {
    defer { rest = [] }
    let held = converter.map { String(decoding: takeHeld($0), as: UTF8.self) } ?? ""
    return rest.isEmpty ? held : held + "\u{FFFD}"
  }

  /// Returns the text of whole bytes in a charset.
  static func text(_ data: Data, _ charset: TextCharset) -> String? {
    guard let decoder = TextDecoder(charset) else { return nil }
    return decoder.decode(data) + decoder.finish()
  }

  // MARK: UTF-8

  private func takeUTF8() -> String {
    let end = rest.count - Self.incompleteCount(rest)
    defer { rest.removeFirst(end) }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  /// Returns the number of bytes at the end that begin a character of UTF-8 and can be continued.
  static func incompleteCount(_ bytes: [UInt8]) -> Int {
    for count in 1...3 where count <= bytes.count {
      let byte = bytes[bytes.count - count]
      if byte & 0xC0 == 0x80 { continue }
      let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
      return length > count && byte < 0xF8 ? count : 0
    }
    return 0
  }

  // MARK: Other charsets

  private func convert(_ converter: iconv_t) -> String {
    var output: [UInt8] = []
    var room = [CChar](repeating: 0, count: 16_384)
    var position = 0
    loop: while position < rest.count {
      let (used, made, code) = step(converter, from: position, &room)
      output += room[..<made].map { UInt8(bitPattern: $0) }
      position += used
      switch code {
      case 0: continue
      case E2BIG where used > 0 || made > 0: continue
      case EINVAL: break loop
      default:
        // It comes before the bytes that are not a character.
        if !hasShifts { output += takeHeld(converter) }
        output += "\u{FFFD}".utf8
        position = min(position + unit, rest.count)
      }
    }
    rest.removeFirst(position)
    return String(decoding: output, as: UTF8.self)
  }

  /// Returns the letter that the converter holds back, because a mark could follow it. Its state is reset.
  private func takeHeld(_ converter: iconv_t) -> [UInt8] {
    var room = [CChar](repeating: 0, count: 64)
    var space = room.count
    room.withUnsafeMutableBufferPointer { output in
      var to = output.baseAddress
      _ = iconv(converter, nil, nil, &to, &space)
    }
    return room.dropLast(space).map { UInt8(bitPattern: $0) }
  }

  /// Converts what fits into `room`. Returns the numbers of bytes, and the error, 0 for none.
  private func step(
    _ converter: iconv_t, from position: Int, _ room: inout [CChar]
  ) -> (used: Int, made: Int, code: Int32) {
    var code: Int32 = 0
    var (left, space) = (rest.count - position, room.count)
    rest.withUnsafeMutableBytes { input in
      room.withUnsafeMutableBufferPointer { output in
        var from = input.baseAddress?.assumingMemoryBound(to: CChar.self).advanced(by: position)
        var to = output.baseAddress
        if iconv(converter, &from, &left, &to, &space) == Int(bitPattern: UInt.max) { code = errno }
      }
    }
    return (rest.count - position - left, room.count - space, code)
  }
}

/// A charset that text on a terminal is converted from.
///
/// A server selects one by a label of the Encoding Standard (https://encoding.spec.whatwg.org). Other names are never
/// given to the system, because its less common converters have had faults that a server could reach.
package enum TextCharset: Equatable, Sendable {
  case utf8
  /// A converter of iconv(3) by its names, the preferred one first, and the number of bytes of its units.
  case converter(names: [String], unit: Int)

  /// Returns the charset of a label; `nil` for an unknown one.
  package init?(label: String) {
    let label = label.lowercased().trimmingCharacters(in: CharacterSet(charactersIn: " \t\"'"))
    guard let charset = CharsetLabels.all[label] else { return nil }
    self = charset
  }

  /// Whether its text can have zero bytes, which mean a binary body elsewhere.
  package var hasWideUnits: Bool {
    if case .converter(_, let unit) = self { unit > 1 } else { false }
  }

  // MARK: The charset of a message

  /// Returns the label in the value of a `Content-Type` field; `nil` without one.
  package static func label(ofContentType value: String?) -> String? {
    for parameter in (value ?? "").split(separator: ";").dropFirst() {
      let parts = parameter.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[0].trimmingCharacters(in: .whitespaces).lowercased() == "charset" else {
        continue
      }
      let label = parts[1].trimmingCharacters(in: CharacterSet(charactersIn: " \t\"'"))
      return label.isEmpty ? nil : label
    }
    return nil
  }

  /// Returns the label that a document itself has: a byte order mark, the declaration of XML or the `meta` element of
  /// HTML. `nil` without one.
  package static func label(of document: Data, contentType: String?) -> String? {
    let start = [UInt8](document.prefix(1024))
    if start.starts(with: [0xEF, 0xBB, 0xBF]) { return "utf-8" }
    if start.starts(with: [0xFF, 0xFE, 0, 0]) { return "utf-32" }
    if start.starts(with: [0xFE, 0xFF]) || start.starts(with: [0xFF, 0xFE]) { return "utf-16" }
    let text = String(decoding: start, as: UTF8.self)
    if text.hasPrefix("<?xml") {
      return text.range(of: "?>").flatMap { value(of: "encoding", in: text[..<$0.lowerBound]) }
    }
    guard BodyText.mediaType(contentType).hasSuffix("html"),
      let element = text.range(of: "<meta", options: .caseInsensitive)
    else { return nil }
    return value(of: "charset", in: text[element.upperBound...])
  }

  /// Whether more bytes of a document cannot change what ``label(of:contentType:)`` finds. Only the beginning of a mark
  /// or a declaration, and HTML, need more.
  package static func isLabelKnown(_ document: Data, contentType: String?) -> Bool {
    let start = [UInt8](document.prefix(1024))
    if start.count == 1024 { return true }
    let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFF, 0xFE, 0, 0], [0xFE, 0xFF]]
    if marks.contains(where: { $0.count > start.count && $0.starts(with: start) }) { return false }
    if marks.contains(where: { start.starts(with: $0) }) || start.starts(with: [0xFF, 0xFE]) { return true }
    let declaration = Array("<?xml".utf8)
    if declaration.starts(with: start.prefix(declaration.count)) {
      return start.count > declaration.count && Data(start).range(of: Data("?>".utf8)) != nil
    }
    guard BodyText.mediaType(contentType).hasSuffix("html") else { return true }
    // The value of the attribute is complete with the end of its element.
    var rest = String(decoding: start, as: UTF8.self)[...]
    for text in ["<meta", "charset=", ">"] {
      guard let found = rest.range(of: text, options: .caseInsensitive) else { return false }
      rest = rest[found.upperBound...]
    }
    return true
  }

  /// Returns the value after `name=`, with or without quotes.
  private static func value(of name: String, in text: Substring) -> String? {
    guard let found = text.range(of: name + "=", options: .caseInsensitive) else { return nil }
    let value = text[found.upperBound...].drop { "\"'".contains($0) }
      .prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "-_:.".contains($0)) }
    return value.isEmpty ? nil : String(value)
  }
}
