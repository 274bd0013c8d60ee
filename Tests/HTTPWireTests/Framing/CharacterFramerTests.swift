import FoundationEssentials
import HTTPWire
import Testing

@Suite struct CharacterFramerTests {
  private func texts(_ chunks: [[UInt8]]) -> [String] {
    var framer = CharacterFramer()
    var pieces = chunks.compactMap { framer.push(Data($0)) }
    if let rest = framer.finish() { pieces.append(rest) }
    return pieces.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("A divided character is joined") func dividedCharacter() {
    let euro = Array("€".utf8)
    #expect(texts([[0x61, euro[0]], [euro[1]], [euro[2], 0x62]]) == ["a", "€b"])
  }

  @Test("Complete characters are not delayed") func completeText() {
    #expect(texts([Array("a".utf8), Array("ä€😀".utf8)]) == ["a", "ä€😀"])
  }

  @Test("An incomplete character is delivered at the end") func incompleteCharacter() {
    #expect(texts([[0x61, 0xF0, 0x9F]]) == ["a", "\u{FFFD}"])
  }

  @Test("Invalid UTF-8 is not delayed") func invalidUTF8() {
    #expect(texts([[0x80], [0xFF], [0xC0], [0x80, 0x80, 0x80, 0x80]]).count == 4)
  }

  @Test("After the end no bytes remain") func end() {
    var framer = CharacterFramer()
    let pushed = framer.push(Data([0xE2]))
    #expect(pushed == nil)
    let first = framer.finish()
    #expect(first == Data([0xE2]))
    let second = framer.finish()
    #expect(second == nil)
  }

  @Test("The text does not depend on the boundaries of chunks", arguments: 0..<200)
  func everySplit(seed: UInt64) {
    var random = Splits(seed: seed)
    let alphabet: [[UInt8]] = [
      Array("a".utf8), Array("ä".utf8), Array("€".utf8), Array("😀".utf8), [0xFF], [0xE2, 0x82], [0xF0],
      [0x80],
      [0xED, 0xA0, 0x80], [0xC0, 0xAF], Array("👨‍👩‍👧".utf8),
    ]
    let bytes = (0..<30).flatMap { _ in alphabet[random.number(below: alphabet.count)] }
    let whole = String(decoding: bytes, as: UTF8.self)
    #expect(texts(random.split(bytes)).joined().unicodeScalars.elementsEqual(whole.unicodeScalars))
  }
}

/// Random bytes that are divided at random positions.
struct Splits {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1
  }

  mutating func number(below limit: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int(state % UInt64(limit))
  }

  mutating func split(_ bytes: [UInt8]) -> [[UInt8]] {
    var rest = bytes[...]
    var chunks: [[UInt8]] = []
    while !rest.isEmpty {
      let length = min(rest.count, 1 + number(below: 7))
      chunks.append(Array(rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    return chunks
  }
}
