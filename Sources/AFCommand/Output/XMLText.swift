/// Lays XML out for people: elements without text of their own get a line for each child, two spaces for each level.
/// Text, and elements among text, stay as they are.
package struct XMLText {
  private var text = ""
  private let bytes: [UInt8]
  private let palette: Palette

  /// Returns the laid out text; `nil` if the bytes are not well-formed enough, or nested too deeply.
  ///
  /// - Parameter isLaidOut: Whether the white space is changed, too, and not the colours alone.
  package static func format(_ bytes: [UInt8], palette: Palette, isLaidOut: Bool = true) -> String? {
    guard let tokens = XMLTokens.read(bytes) else { return nil }
    var writer = XMLText(bytes: bytes, palette: palette)
    if isLaidOut {
      guard writer.layOut(tokens) else { return nil }
    } else {
      for token in tokens { writer.write(token) }
    }
    return writer.text
  }

  private init(bytes: [UInt8], palette: Palette) {
    self.bytes = bytes
    self.palette = palette
  }

  /// Returns false if the layout would be too large.
  private mutating func layOut(_ tokens: [XMLTokens.Token]) -> Bool {
    var depth = 0
    /// The depth of the outermost element whose content is written unchanged.
    var verbatim: Int?
    for (index, token) in tokens.enumerated() {
      if token.kind == .close { depth -= 1 }
      if let level = verbatim {
        write(token)
        if token.kind == .close, depth == level { verbatim = nil }
      } else if token.kind != .text {
        let isEmpty = token.kind == .close && index > 0 && tokens[index - 1].kind == .open
        if !text.isEmpty, !isEmpty { text += "\n" + String(repeating: "  ", count: depth) }
        write(token)
      }
      if token.kind == .open {
        if verbatim == nil, token.isVerbatim { verbatim = depth }
        depth += 1
      }
      guard text.utf8.count <= JSONText.largestLayout(of: bytes.count) else { return false }
    }
    return true
  }

  private mutating func write(_ token: XMLTokens.Token) {
    let piece = bytes[token.range]
    switch token.kind {
    case .open, .close, .empty: writeTag(piece)
    case .text, .characterData: text += String(decoding: piece, as: UTF8.self)
    case .comment, .instruction, .documentType:
      text += palette.paint(String(decoding: piece, as: UTF8.self), .faint)
    }
  }

  /// Writes a tag, with its name and its attributes in their colours.
  private mutating func writeTag(_ tag: ArraySlice<UInt8>) {
    guard palette.isOn else {
      text += String(decoding: tag, as: UTF8.self)
      return
    }
    var rest = tag
    let nameEnd = rest.firstIndex { XMLTokens.isSpace($0) || $0 == 0x3E } ?? rest.endIndex
    let name = rest[..<nameEnd]
    text += palette.paint(String(decoding: name, as: UTF8.self), .name)
    rest = rest[nameEnd...]
    while let quote = rest.firstIndex(where: { $0 == 0x22 || $0 == 0x27 }),
      let end = rest[(quote + 1)...].firstIndex(of: rest[quote])
    {
      text += String(decoding: rest[..<quote], as: UTF8.self)
      text += palette.paint(String(decoding: rest[quote...end], as: UTF8.self), .string)
      rest = rest[(end + 1)...]
    }
    text += palette.paint(String(decoding: rest, as: UTF8.self), .name)
  }
}
