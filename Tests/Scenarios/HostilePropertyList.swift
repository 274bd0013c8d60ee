/// Property lists in the binary format that no writer makes.
package enum HostilePropertyList {
  /// A set with a text. Foundation's parser ends the process.
  package static let set = document([[0xC1, 1], [0x51, 0x61]])
  /// An array that contains itself.
  package static let cycle = document([[0xA1, 0]])
  /// An array whose count is −1, if it has a sign.
  package static let endlessArray = document([[0xAF, 0x13] + [UInt8](repeating: 0xFF, count: 8)])

  /// Makes a document of arrays, each of which contains the next one twice. It has two to the power of `levels` texts.
  package static func tree(levels: UInt8) -> [UInt8] {
    document((0..<levels).map { [0xA2, $0 + 1, $0 + 1] } + [[0x51, 0x61]])
  }

  /// Makes a document of arrays, each of which contains the next one.
  package static func chain(_ count: Int) -> [UInt8] {
    document((1..<count).map { [0xA1] + number($0, 4) } + [[0xA0]], referenceSize: 4)
  }

  /// Makes a document of chains of arrays, each of which ends in the chain before it. The root names the chains, the
  /// innermost one first, so that each is short when it is met for the first time.
  package static func linkedChains(_ count: Int, length: Int) -> [UInt8] {
    let heads = (0..<count).map { 1 + $0 * length }
    var objects = [[0xAF, 0x12] + number(count, 4) + heads.flatMap { number($0, 4) }]
    for head in heads {
      for place in 1..<length { objects.append([0xA1] + number(head + place, 4)) }
      objects.append(head == 1 ? [0xA0] : [0xA1] + number(head - length, 4))
    }
    return document(objects, referenceSize: 4)
  }

  /// Makes a document of an array that contains the same text several times.
  package static func copies(_ count: Int, ofTextWith length: Int) -> [UInt8] {
    let text = [0x5F, 0x12] + number(length, 4) + [UInt8](repeating: 0x61, count: length)
    return document([[0xAF, 0x12] + number(count, 4) + [UInt8](repeating: 1, count: count), text])
  }

  /// Makes a document of objects, the first of which is the root.
  package static func document(_ objects: [[UInt8]], referenceSize: Int = 1) -> [UInt8] {
    var offsets: [Int] = []
    var content: [UInt8] = []
    for object in objects {
      offsets.append(8 + content.count)
      content += object
    }
    return document(content, offsets: offsets, referenceSize: referenceSize)
  }

  /// Makes a document of bytes in which the objects are at these offsets.
  package static func document(
    _ content: [UInt8], offsets: [Int], offsetSize: Int = 4, referenceSize: Int = 1, root: Int = 0
  ) -> [UInt8] {
    let table = offsets.flatMap { number($0, offsetSize) }
    let sizes = [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    return Array("bplist00".utf8) + content + table + sizes + number(offsets.count, 8) + number(root, 8)
      + number(8 + content.count, 8)
  }

  private static func number(_ value: Int, _ size: Int) -> [UInt8] {
    (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
}
