/// Counts the elements of an XML document that are open at a time, without parsing it.
///
/// The count is never too low, whatever a parser makes of the document. A start tag counts everywhere, even in a
/// comment. An end tag counts only if every parser must see it.
package struct XMLNesting {
  /// The place of a byte in a tag.
  private enum Place {
    case text
    /// After `<`.
    case markup
    /// In the name of a start tag.
    case name
    /// After the name, where attributes may follow.
    case attributes
    /// After `/` in a start tag.
    case slash
  }

  private var depth = 0
  private var deepest = 0
  private var place = Place.text
  private var tagCount = 0
  /// The last eight bytes.
  private var window: UInt64 = 0
  /// The numbers of bytes since the beginnings of a comment, a CDATA section and an instruction; `nil` outside.
  private var comment: Int?
  private var section: Int?
  private var instruction: Int?
  /// Whether parsers may disagree about the rest, so that no end tag counts.
  private var isUncertain = false

  private init() {}

  /// Returns whether more than `limit` elements are open at a time.
  package static func isDeeper(than limit: Int, _ utf8: UnsafeRawBufferPointer) -> Bool {
    var nesting = XMLNesting()
    for byte in utf8 {
      nesting.read(byte)
      if nesting.deepest > limit { return true }
    }
    return false
  }

  private mutating func read(_ byte: UInt8) {
    window = window << 8 | UInt64(byte)
    readSections()
    switch (place, byte) {
    case (.text, UInt8(ascii: "<")): place = .markup
    case (.text, _): break
    case (.markup, _): readMarkup(byte)
    case (_, UInt8(ascii: "<")):
      isUncertain = true
      place = .markup
    case (.slash, UInt8(ascii: ">")):
      endElement()
      place = .text
    case (_, UInt8(ascii: ">")): place = .text
    case (.slash, _):
      isUncertain = true
      place = .attributes
    case (_, UInt8(ascii: "/")): place = .slash
    case (_, 0x09), (_, 0x0A), (_, 0x0D), (_, 0x20): place = .attributes
    case (.name, _): break
    case (.attributes, _):
      // The first tag is `<plist version="1.0">`. A quoted `>` might not end another one.
      if tagCount > 1 { isUncertain = true }
    }
  }

  /// Reads the byte after `<`.
  private mutating func readMarkup(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "/"):
      endElement()
      place = .text
    case UInt8(ascii: "!"), UInt8(ascii: "?"): place = .text
    case UInt8(ascii: "<"): isUncertain = true
    default:
      tagCount += 1
      depth += 1
      deepest = max(deepest, depth)
      place = .name
    }
  }

  private mutating func endElement() {
    if !isUncertain, comment == nil, section == nil, instruction == nil { depth = max(0, depth - 1) }
  }

  /// Notes the beginnings and ends of comments, CDATA sections and instructions. One may hold the beginning of another.
  private mutating func readSections() {
    comment = comment.map { $0 + 1 }
    section = section.map { $0 + 1 }
    instruction = instruction.map { $0 + 1 }
    if ends(with: "<!--") { comment = comment ?? 0 }
    if ends(with: "<![CDATA") { section = section ?? 0 }
    if ends(with: "<?") { instruction = instruction ?? 0 }
    if let count = comment, count >= 3, ends(with: "-->") { comment = nil }
    if let count = section, count >= 4, ends(with: "]]>") { section = nil }
    if let count = instruction, count >= 2, ends(with: "?>") { instruction = nil }
    // A declaration between elements.
    if depth > 0, ends(with: "<!", before: 1), !ends(with: "-"), !ends(with: "[") { isUncertain = true }
  }

  /// Whether the bytes that were read, without the last `count` ones, end with at most eight ASCII characters.
  private func ends(with text: StaticString, before count: UInt64 = 0) -> Bool {
    var expected: UInt64 = 0
    var mask: UInt64 = 0
    text.withUTF8Buffer { characters in
      for character in characters {
        expected = expected << 8 | UInt64(character)
        mask = mask << 8 | 0xFF
      }
    }
    return window >> (8 * count) & mask == expected
  }
}
