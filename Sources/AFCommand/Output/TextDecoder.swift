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

/// The charsets by their labels, as the Encoding Standard lists them (https://encoding.spec.whatwg.org, §4.2).
///
/// A converter has several names, the preferred one first. Browsers read some charsets as a larger one of Windows, and
/// so does this table. Two things differ. ASCII is read as UTF-8, and UTF-32 is known. The charsets that the standard
/// replaces by an error are unknown, and so is `x-user-defined`, which is not text.
enum CharsetLabels {
  /// The charset of each label, in lower case.
  static let all: [String: TextCharset] = Dictionary(
    (utf8.split(separator: " ").map { (String($0), TextCharset.utf8) })
      + groups.flatMap { labels, names, unit in
        labels.split(separator: " ").map { (String($0), TextCharset.converter(names: names, unit: unit)) }
      },
    uniquingKeysWith: { first, _ in first })

  private typealias Group = (labels: String, names: [String], unit: Int)

  private static let groups: [Group] =
    wide + (isoLatin + isoOthers + windows + others + asian).map { ($0, $1, 1) }

  private static let utf8 = """
    ansi_x3.4-1968 ascii unicode-1-1-utf-8 unicode11utf8 unicode20utf8 us-ascii utf-8 utf8 x-unicode20utf8
    """

  private static let wide: [Group] = [
    ("utf-16", ["UTF-16"], 2), ("unicodefffe utf-16be", ["UTF-16BE"], 2),
    ("csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16le", ["UTF-16LE"], 2),
    ("utf-32", ["UTF-32"], 4), ("utf-32le", ["UTF-32LE"], 4), ("utf-32be", ["UTF-32BE"], 4),
  ]

  private static let isoLatin: [(String, [String])] = [
    (
      "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
      ["ISO-8859-2"]
    ),
    (
      "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
      ["ISO-8859-3"]
    ),
    (
      "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
      ["ISO-8859-4"]
    ),
    ("csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6", ["ISO-8859-10"]),
    ("iso-8859-13 iso8859-13 iso885913", ["ISO-8859-13"]),
    ("iso-8859-14 iso8859-14 iso885914", ["ISO-8859-14"]),
    ("csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9", ["ISO-8859-15"]),
    ("iso-8859-16", ["ISO-8859-16"]),
  ]

  private static let isoOthers: [(String, [String])] = [
    (
      "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
      ["ISO-8859-5"]
    ),
    (
      "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i "
        + "iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987", ["ISO-8859-6"]
    ),
    (
      "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        + "iso_8859-7:1987 sun_eu_greek", ["ISO-8859-7"]
    ),
    (
      "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
        + "iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical", ["ISO-8859-8"]
    ),
  ]

  private static let windows: [(String, [String])] = [
    ("dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874", ["CP874", "TIS-620"]),
    ("cp1250 windows-1250 x-cp1250", ["CP1250"]), ("cp1251 windows-1251 x-cp1251", ["CP1251"]),
    (
      "cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 "
        + "latin1 windows-1252 x-cp1252", ["CP1252", "ISO-8859-1"]
    ),
    ("cp1253 windows-1253 x-cp1253", ["CP1253"]),
    (
      "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
        + "windows-1254 x-cp1254", ["CP1254", "ISO-8859-9"]
    ),
    ("cp1255 windows-1255 x-cp1255", ["CP1255"]), ("cp1256 windows-1256 x-cp1256", ["CP1256"]),
    ("cp1257 windows-1257 x-cp1257", ["CP1257"]), ("cp1258 windows-1258 x-cp1258", ["CP1258"]),
  ]

  private static let others: [(String, [String])] = [
    ("866 cp866 csibm866 ibm866", ["CP866"]), ("cskoi8r koi koi8 koi8-r koi8_r", ["KOI8-R"]),
    ("koi8-ru koi8-u", ["KOI8-U"]), ("csmacintosh mac macintosh x-mac-roman", ["MACINTOSH"]),
    // The standard has the Ukrainian letters.
    ("x-mac-cyrillic x-mac-ukrainian", ["MAC-UK", "MAC-CYRILLIC"]),
  ]

  private static let asian: [(String, [String])] = [
    (
      "chinese csgb2312 csiso58gb231280 gb18030 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
      ["GB18030", "GBK"]
    ),
    ("big5 big5-hkscs cn-big5 csbig5 x-x-big5", ["BIG5-HKSCS", "BIG5"]),
    ("cseucpkdfmtjapanese euc-jp x-euc-jp", ["EUC-JP"]), ("csiso2022jp iso-2022-jp", ["ISO-2022-JP"]),
    (
      "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis", ["CP932", "SHIFT_JIS"]
    ),
    (
      "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
        + "windows-949", ["CP949", "EUC-KR"]
    ),
  ]
}
