import Foundation
import Scenarios
import Testing

@testable import Alamofire

@Suite("Sizes of binary property lists") struct BinaryPropertyListTests {
  private let text: [UInt8] = [0x51, 0x61]

  private func refusal(_ document: [UInt8]) -> BinaryPropertyList.Refusal? {
    document.withUnsafeBytes { BinaryPropertyList.refusal(of: $0) }
  }

  /// Returns the size of the value of a document, and the number of elements that were measured, also after a refusal.
  private func measured(_ document: [UInt8], limit: Int = .max) throws -> (size: Int?, elements: Int) {
    try document.withUnsafeBytes { bytes in
      var list = try BinaryPropertyList(bytes, limit: limit)
      let size = try? list.size()
      return (size, list.elementCount)
    }
  }

  @Test("What Foundation writes may be parsed") func written() throws {
    let row: [String: Any] = [
      "id": 7, "name": "Ada", "note": "žluťoučký", "price": 2.5, "isActive": true, "born": Date.distantPast,
      "image": Data(count: 300), "tags": ["a", "b"], "empty": [String: Any](), "large": UInt64.max,
    ]
    let values: [Any] = [
      "a", 1, [Any](), Array(repeating: row, count: 3_000), Array(repeating: true, count: 600_000),
      Array(repeating: String(repeating: "long text ", count: 10), count: 10_000),
    ]
    for value in values {
      let data = try PropertyListSerialization.data(fromPropertyList: value, format: .binary, options: 0)
      #expect(refusal(Array(data)) == nil, "\(data.count) bytes")
    }
  }

  @Test("Other formats are not measured", arguments: ["", "bplist", "bplist1", "<plist/>", "(a)"])
  func otherFormats(document: String) {
    #expect(refusal(Array(document.utf8)) == nil)
  }

  @Test("Each element takes the bytes of a value, and of its content") func sizes() throws {
    func size(_ objects: [UInt8]...) throws -> Int? {
      try measured(HostilePropertyList.document(objects)).size
    }
    #expect(try size([0x09]) == 32, "a truth value")
    #expect(try size([0x10, 5]) == 32, "a number")
    #expect(try size([0x43, 1, 2, 3]) == 35, "data")
    #expect(try size(text) == 33)
    #expect(try size([0x62, 0, 0xE4, 0, 0xE4]) == 38, "UTF-16")
    #expect(try size([0xA0]) == 96, "an empty array")
    #expect(try size([0xA2, 1, 1], text) == 96 + 2 * 33)
    #expect(try size([0xD1, 1, 1], text) == 96 + 2 * 33)
    #expect(try size([0xD2, 1, 1, 1, 2], text, [0xA1, 1]) == 96 + 3 * 33 + 96 + 33)
    #expect(try size([0xA2, 1, 1], [0xA2, 2, 2], text) == 96 + 2 * (96 + 2 * 33))
  }

  @Test("A value that takes much more than its document is refused") func expansion() throws {
    let limit = BinaryPropertyList.limit(byteCount: 1_000)
    for document in [HostilePropertyList.tree(levels: 20), HostilePropertyList.tree(levels: 200)] {
      #expect(refusal(document) == .tooLarge(limit: limit), "\(document.count) bytes")
    }
    #expect(refusal(HostilePropertyList.copies(700, ofTextWith: 100_000)) == .tooLarge(limit: limit))
    #expect(refusal(HostilePropertyList.tree(levels: 12)) == nil)
    #expect(refusal(HostilePropertyList.copies(100, ofTextWith: 100_000)) == nil)
    #expect(BinaryPropertyList.limit(byteCount: 1_000_000) == 128_000_000)
  }

  @Test("An object is measured once, however often it is repeated") func steps() throws {
    let tree = try measured(HostilePropertyList.tree(levels: 40))
    let texts = 1 << 40
    #expect(tree.elements == 80 && tree.size == 33 * texts + 96 * (texts - 1))
  }

  @Test("Many numbers of one array are not measured beyond the limit") func sharedOffsets() throws {
    let head: [UInt8] = [0xAF, 0x10, 200] + (2..<202) + text
    let array: [UInt8] = [0xAF, 0x11, 0x03, 0xE8] + [UInt8](repeating: 1, count: 1_000)
    let offsets = [8, 8 + 203] + Array(repeating: 8 + head.count, count: 200)
    let document = HostilePropertyList.document(head + array, offsets: offsets)
    let all = try measured(document)
    #expect(all.elements == 200_200 && all.size == 96 + 200 * (96 + 33_000))
    let some = try measured(document, limit: 1_000_000)
    #expect(some.size == nil && some.elements <= 32_250)
  }

  @Test("Arrays that are nested too deeply are refused") func depth() {
    #expect(refusal(HostilePropertyList.chain(512)) == nil)
    #expect(refusal(HostilePropertyList.chain(513)) == .tooDeep)
    #expect(refusal(HostilePropertyList.chain(200_000)) == .tooDeep)
  }

  @Test("Arrays that are nested too deeply are refused, whichever of them is met first") func depthOfParts() {
    #expect(refusal(HostilePropertyList.linkedChains(1, length: 511)) == nil)
    #expect(refusal(HostilePropertyList.linkedChains(2, length: 255)) == nil, "511 arrays, one in the other")
    #expect(refusal(HostilePropertyList.linkedChains(2, length: 256)) == .tooDeep)
    #expect(refusal(HostilePropertyList.linkedChains(2, length: 511)) == .tooDeep)
    #expect(refusal(HostilePropertyList.linkedChains(25, length: 511)) == .tooDeep)
    #expect(refusal(HostilePropertyList.linkedChains(511, length: 1)) == nil)
    #expect(refusal(HostilePropertyList.linkedChains(512, length: 1)) == .tooDeep)
  }

  @Test("A set is refused", arguments: [0xB1, 0xC1] as [UInt8]) func sets(marker: UInt8) {
    #expect(refusal(HostilePropertyList.set) == .containsSet)
    #expect(refusal(HostilePropertyList.document([[0xA1, 1], [marker, 2], text])) == .containsSet)
    #expect(refusal(HostilePropertyList.document([[0xC0]])) == .containsSet, "an empty set")
  }

  @Test("Objects that are not as the format requires are refused") func damagedObjects() {
    let objects: [(String, [UInt8])] = [
      ("a number of no object", [0xA1, 2]), ("no element", [0xA9, 1]), ("no value", [0xD9, 1]),
      ("no count", [0xAF]), ("a text as a count", [0xAF, 0x51, 1, 1]),
      ("a part of a count", [0x4F, 0x13, 0]),
      ("a count of 16 bytes", [0xAF, 0x14] + [UInt8](repeating: 0, count: 15) + [1, 1]),
      ("a count of pairs that overflows", [0xDF, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 1, 1, 1]),
      ("the end of a text", [0x5E, 0x61]), ("the end of a text in UTF-16", [0x69, 0, 0x61]),
    ]
    for (name, object) in objects {
      #expect(refusal(HostilePropertyList.document([object])) == .damaged, "\(name)")
    }
    #expect(refusal(HostilePropertyList.endlessArray) == .damaged)
    #expect(refusal(HostilePropertyList.cycle) == .damaged)
    #expect(refusal(HostilePropertyList.document([[0xA1, 1], [0xD1, 2, 0], text])) == .damaged, "a cycle")
  }

  @Test("A table that is not as the format requires is refused") func damagedTables() {
    func document(
      _ offsets: [Int] = [8], offsetSize: Int = 1, referenceSize: Int = 1, root: Int = 0
    ) -> [UInt8] {
      HostilePropertyList.document(
        text, offsets: offsets, offsetSize: offsetSize, referenceSize: referenceSize, root: root)
    }
    #expect(refusal(document()) == nil)
    for size in [0, 9, 16] {
      #expect(refusal(document(offsetSize: size)) == .damaged, "offsets of \(size) bytes")
      #expect(refusal(document(referenceSize: size)) == .damaged, "references of \(size) bytes")
    }
    for offset in [0, 7, 10, 200] { #expect(refusal(document([offset])) == .damaged, "offset \(offset)") }
    for root in [1, .max, -1] { #expect(refusal(document(root: root)) == .damaged, "root \(root)") }
    #expect(refusal(document([])) == .damaged, "no object")
    for count in 7..<document().count {
      #expect(refusal(Array(document().prefix(count))) == .damaged, "the first \(count) bytes")
    }
    for index in 6..<32 {
      var bytes = document()
      bytes[bytes.count - 32 + index] = 0xFF
      #expect(refusal(bytes) == .damaged, "byte \(index) of the trailer")
    }
  }
}
