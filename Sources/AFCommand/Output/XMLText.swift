/// XML laid out for people: elements without their own text get a line for each child, two spaces for each level. Text,
/// and elements among text, stay as they are.
package struct XMLText {
  private var text = ""
  private let bytes: [UInt8]
  private let palette: Palette

  /// Returns the laid out text; `nil` if the bytes are not well-formed enough, or nested too deeply.
  ///
  /// - Parameter isLaidOut: Whether the white space is changed, too, not only the colours.
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

/// Reads XML token by token, without changing any. It checks what a layout needs: tags that end, and elements that are
/// closed in their order.
struct XMLTokens {
  enum XMLTokenKind: Equatable, Sendable {
    case open, close, empty, text, characterData, comment, instruction, documentType
  }

  struct Token: Equatable, Sendable {
    let kind: XMLTokenKind
    /// The position in the bytes.
    let range: Range<Int>
    /// Whether the content of the element has text, so that its white space counts.
    var isVerbatim = false
  }

  private struct Element {
    let name: ArraySlice<UInt8>
    /// The position of its tag in the tokens.
    let index: Int
    var hasChildren = false
  }

  private let bytes: [UInt8]
  private var position = 0
  private var tokens: [Token] = []
  private var elements: [Element] = []
  private var hasRoot = false

  /// Returns the tokens; `nil` if the text is not one XML document.
  static func read(_ bytes: [UInt8]) -> [Token]? {
    var reader = XMLTokens(bytes: bytes)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { reader.position = 3 }
    while reader.position < bytes.count {
      guard reader.readToken() else { return nil }
    }
    return reader.elements.isEmpty && reader.hasRoot ? reader.tokens : nil
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  private mutating func readToken() -> Bool {
    guard bytes[position] == UInt8(ascii: "<") else { return readText() }
    if starts(with: "<!--") { return add(.comment, upTo: "-->") }
    if starts(with: "<![CDATA[") {
      guard !elements.isEmpty else { return false }
      markText()
      return add(.characterData, upTo: "]]>")
    }
    if starts(with: "<?") { return add(.instruction, upTo: "?>") }
    if starts(with: "<!DOCTYPE") { return readDocumentType() }
    return starts(with: "</") ? readClosingTag() : readOpeningTag()
  }

  private func starts(with text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

  private mutating func add(_ kind: XMLTokenKind, to end: Int) -> Bool {
    tokens.append(Token(kind: kind, range: position..<end))
    position = end
    return true
  }

  private mutating func add(_ kind: XMLTokenKind, upTo mark: String) -> Bool {
    let mark = Array(mark.utf8)
    var index = position
    while index + mark.count <= bytes.count {
      if bytes[index] == mark[0], bytes[index...].starts(with: mark) {
        if !elements.isEmpty { elements[elements.count - 1].hasChildren = true }
        return add(kind, to: index + mark.count)
      }
      index += 1
    }
    return false
  }

  private mutating func readText() -> Bool {
    let end = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
    let isBlank = bytes[position..<end].allSatisfy(Self.isSpace)
    if !isBlank {
      guard !elements.isEmpty else { return false }
      markText()
    }
    return add(.text, to: end)
  }

  private mutating func markText() {
    if let element = elements.last { tokens[element.index].isVerbatim = true }
  }

  /// Reads a document type. Its internal subset is in brackets, and has markup within them.
  private mutating func readDocumentType() -> Bool {
    guard !hasRoot else { return false }
    var quote: UInt8?
    var depth = 0
    for index in position..<bytes.count {
      let byte = bytes[index]
      if let open = quote {
        if byte == open { quote = nil }
        continue
      }
      switch byte {
      case 0x22, 0x27: quote = byte
      case UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ">") where depth <= 0: return add(.documentType, to: index + 1)
      default: continue
      }
    }
    return false
  }

  /// Returns the end of a tag; `nil` if it has none. A `>` in a value of an attribute does not end it.
  private func endOfTag() -> Int? {
    var quote: UInt8?
    for index in (position + 1)..<bytes.count {
      let byte = bytes[index]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == 0x22 || byte == 0x27 {
        quote = byte
      } else if byte == UInt8(ascii: ">") {
        return index + 1
      } else if byte == UInt8(ascii: "<") {
        return nil
      }
    }
    return nil
  }

  private func name(from start: Int, to end: Int) -> ArraySlice<UInt8> {
    bytes[start..<end].prefix { !Self.isSpace($0) && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") }
  }

  private mutating func readOpeningTag() -> Bool {
    guard let end = endOfTag(), !(elements.isEmpty && hasRoot) else { return false }
    let name = name(from: position + 1, to: end)
    guard let first = name.first, first == 0x5F || first == 0x3A || first >= 0x80 || first.isLetter else {
      return false
    }
    hasRoot = true
    if !elements.isEmpty { elements[elements.count - 1].hasChildren = true }
    if bytes[end - 2] == UInt8(ascii: "/") { return add(.empty, to: end) }
    elements.append(Element(name: name, index: tokens.count))
    let keepsSpace = String(decoding: bytes[position..<end], as: UTF8.self).contains("xml:space=\"preserve\"")
    let isAdded = add(.open, to: end)
    if keepsSpace { markText() }
    return isAdded
  }

  private mutating func readClosingTag() -> Bool {
    guard let end = endOfTag(), let element = elements.popLast() else { return false }
    guard name(from: position + 2, to: end) == element.name else { return false }
    // The content is only white space.
    if !element.hasChildren, tokens.last?.kind == .text { tokens[element.index].isVerbatim = true }
    return add(.close, to: end)
  }
}

extension UInt8 {
  fileprivate var isLetter: Bool { (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) }
}
