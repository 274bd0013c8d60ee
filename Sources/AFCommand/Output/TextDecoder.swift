import Foundation
import Glibc

/// Decodes text that comes in pieces. A character may be divided between two of them, and bytes that are no character
/// become U+FFFD.
// Unchecked: one thread at a time uses it, under the lock of the receiver of the body.
final class TextDecoder: @unchecked Sendable {
  private let converter: iconv_t?
  private let unit: Int
  /// Whether zero bytes are part of the text.
  var hasWideUnits: Bool { unit > 1 }
  /// The beginning of a character whose end has not come.
  private var rest: [UInt8] = []
  private var isAtStart = true

  /// Makes the decoder of a charset; `nil` if this system cannot convert it.
  init?(_ charset: TextCharset) {
    switch charset {
    case .utf8: (converter, unit) = (nil, 1)
    case .converter(let names, let unit):
      self.unit = unit
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

  /// Returns the text of what is left at the end: U+FFFD for a character without its end.
  func finish() -> String {
    defer { rest = [] }
    return rest.isEmpty ? "" : "\u{FFFD}"
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
        output += "\u{FFFD}".utf8
        position = min(position + unit, rest.count)
      }
    }
    rest.removeFirst(position)
    return String(decoding: output, as: UTF8.self)
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
