/// Lays JSON out for people: a line for each value, two spaces for each level. Escapes of characters that can be read,
/// such as `\u00fc`, are replaced by the characters. Nothing else but white space is changed.
package struct JSONText {
  private var text = ""
  private var depth = 0
  private let palette: Palette

  /// Returns the largest size of a layout. White space before deeply nested values could fill the memory otherwise.
  static func largestLayout(of count: Int) -> Int { 20_000_000 + 8 * count }

  /// Returns the laid out text, or `nil` when the bytes are not one JSON value, or too deeply nested for a layout.
  ///
  /// - Parameter isLaidOut: Whether the white space is changed, too, and not the colours alone.
  package static func format(_ bytes: [UInt8], palette: Palette, isLaidOut: Bool = true) -> String? {
    guard let tokens = JSONTokens.read(bytes) else { return nil }
    var writer = JSONText(palette: palette)
    guard isLaidOut else { return writer.painted(tokens, bytes) }
    for (index, token) in tokens.enumerated() {
      let previous = index > 0 ? tokens[index - 1].kind : nil
      var piece = String(decoding: bytes[token.range], as: UTF8.self)
      if token.kind == .string || token.kind == .key { piece = JSONEscapes.readable(piece) }
      writer.write(token, piece, after: previous)
      guard writer.text.utf8.count <= largestLayout(of: bytes.count) else { return nil }
    }
    return writer.text
  }

  private init(palette: Palette) {
    self.palette = palette
  }

  /// Returns the bytes with the tokens in their colours.
  private func painted(_ tokens: [JSONTokens.Token], _ bytes: [UInt8]) -> String {
    var text = ""
    var end = 0
    for token in tokens {
      text += String(decoding: bytes[end..<token.range.lowerBound], as: UTF8.self)
      text += palette.paint(String(decoding: bytes[token.range], as: UTF8.self), style(of: token.kind))
      end = token.range.upperBound
    }
    return text + String(decoding: bytes[end...], as: UTF8.self)
  }

  private mutating func write(_ token: JSONTokens.Token, _ piece: String, after previous: JSONTokens.Kind?) {
    switch token.kind {
    case .comma: text += ","
    case .colon: text += ": "
    case .close:
      depth -= 1
      if previous != .open { breakLine() }
      text += piece
    case .open, .key, .string, .number, .word:
      if previous == .open || previous == .comma { breakLine() }
      text += palette.paint(piece, style(of: token.kind))
      if token.kind == .open { depth += 1 }
    }
  }

  private func style(of kind: JSONTokens.Kind) -> Palette.Style {
    switch kind {
    case .key: .name
    case .string: .string
    case .number, .word: .number
    case .open, .close, .colon, .comma: .plain
    }
  }

  private mutating func breakLine() {
    text += "\n"
    text += String(repeating: "  ", count: depth)
  }
}
