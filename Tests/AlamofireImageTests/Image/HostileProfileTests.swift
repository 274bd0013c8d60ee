import Foundation
import Testing

@testable import AlamofireImage

@Suite("Hostile colour profiles", .timeLimit(.minutes(5)))
struct HostileProfileTests {
  /// A tag of a colour profile.
  private typealias Tag = (name: String, content: [UInt8])

  private func number(_ value: Int, _ size: Int) -> [UInt8] {
    (0..<size).reversed().map { UInt8(value >> (8 * $0) & 255) }
  }

  /// Returns numbers with 16 bits behind the point.
  private func fixed(_ values: [Double]) -> [UInt8] {
    values.flatMap { number(Int(($0 * 65_536).rounded()), 4) }
  }

  private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  /// Makes a colour profile (ICC.1:2010 §7) in which red and blue have changed places, with more tags.
  private func profile(_ more: [Tag] = [], connection: String = "XYZ ") -> [UInt8] {
    let curve = Array("curv".utf8) + zeros(8)
    var tags: [Tag] = [("rTRC", curve), ("gTRC", curve), ("bTRC", curve)]
    for (name, values) in [
      ("rXYZ", [0.143, 0.061, 0.714]), ("gXYZ", [0.385, 0.717, 0.097]), ("bXYZ", [0.436, 0.222, 0.014]),
    ] {
      tags.append((name, Array("XYZ ".utf8) + zeros(4) + fixed(values)))
    }
    tags += more
    let start = 132 + 12 * tags.count
    var table: [UInt8] = []
    var contents: [UInt8] = []
    for tag in tags {
      table += Array(tag.name.utf8) + number(start + contents.count, 4) + number(tag.content.count, 4)
      contents += tag.content
      contents += zeros(-contents.count & 3)
    }
    var bytes = number(start + contents.count, 4) + Array("lcms".utf8) + [4, 0x40, 0, 0]
    bytes += Array("mntrRGB \(connection)".utf8) + zeros(12) + Array("acsp".utf8) + zeros(28)
    bytes += fixed([0.9642, 1, 0.8249]) + zeros(48)
    return bytes + number(tags.count, 4) + table + contents
  }

  /// An element that makes every colour black: a matrix of zeros (ICC.1:2010 §10.14.3).
  private var element: [UInt8] {
    let sides: [UInt8] = number(3, 2) + number(3, 2)
    let matrix: [UInt8] = Array("matf".utf8) + zeros(4) + sides + zeros(48)
    let head: [UInt8] = Array("mpet".utf8) + zeros(4) + sides + number(1, 4)
    return head + number(24, 4) + number(matrix.count, 4) + matrix
  }

  /// Makes a table of colours in one of its types, which makes every colour grey and has as many sides as given.
  private func table(_ type: String, side: Int = 2, outputs: Int = 3, precision: UInt8 = 1) -> [UInt8] {
    let matrix = fixed([1, 0, 0, 0, 1, 0, 0, 0, 1])
    let grey = { (count: Int) -> [UInt8] in [UInt8](repeating: 0x80, count: count) }
    var tag: [UInt8] = Array(type.utf8) + zeros(4)
    if type == "mft1" || type == "mft2" {
      tag += [3, UInt8(outputs), UInt8(side), 0]
      tag += matrix
      // Tables of one byte have 256 entries before and behind the colours. Others say how many.
      tag += type == "mft1" ? grey(24 + 6 * 256) : number(2, 2) + number(2, 2) + grey(2 * (24 + 6 * 2))
      return tag
    }
    tag += [3, UInt8(outputs), 0, 0]
    for place in [32, 68, 32, 116, 32] { tag += number(place, 4) }
    for _ in 0..<3 { tag += Array("curv".utf8) + zeros(8) }
    tag += matrix + fixed([0, 0, 0])
    tag += [UInt8](repeating: UInt8(side), count: 3) + zeros(13)
    tag += [precision, 0, 0, 0]
    return tag + grey(24)
  }

  /// Returns a file with a colour profile.
  private func file(_ format: ImageFormat, _ profile: [UInt8]?) throws -> Data {
    var file = try Drawing(of: [200, 100, 30], 16, 16).file(format)
    guard let profile else { return file }
    if format == .jpeg {
      let content: [UInt8] = Array("ICC_PROFILE\0".utf8) + [1, 1] + profile
      let segment: [UInt8] = [0xff, 0xe2] + number(content.count + 2, 2) + content
      file.insert(contentsOf: segment, at: 2)
    } else {
      // One block that is not compressed (RFC 1951 §3.2.4), behind the head of the file.
      let (low, high) = (UInt8(profile.count & 255), UInt8(profile.count >> 8))
      var sums = (1, 0)
      for byte in profile {
        sums.0 = (sums.0 + Int(byte)) % 65_521
        sums.1 = (sums.1 + sums.0) % 65_521
      }
      var content: [UInt8] = Array("a\0\0".utf8) + [0x78, 1, 1, low, high, ~low, ~high]
      content += profile + number(sums.1, 2) + number(sums.0, 2)
      file.insert(contentsOf: pngChunk("iCCP", content), at: 33)
    }
    return file
  }

  private func pixels(_ opening: Opening, _ format: ImageFormat, _ profile: [UInt8]?) throws -> Data {
    try opening.with(file(format, profile)) { try $0.pixels(as: .rgb) }
  }

  private func isUsed(_ profile: [UInt8]) -> Bool {
    profile.withUnsafeBytes { FileStructure.profile($0, fits: 3) }
  }

  @Test("A colour profile is followed, also one with tables of colours", arguments: [ImageFormat.png, .jpeg])
  func followed(format: ImageFormat) throws {
    for opening in Opening.allCases {
      let swapped = try pixels(opening, format, profile())
      #expect(swapped[2] > 200 && swapped[0] < 150, "\(swapped.prefix(3))")
      for type in ["mft1", "mft2", "mAB "] {
        for name in ["A2B0", "A2B1"] {
          let profile = profile([(name, table(type))], connection: "Lab ")
          let grey = try pixels(opening, format, profile)
          // The grey of tables with two bytes is a little red: their zero is not in the middle.
          let (low, high) = (Int(grey.min() ?? 0), Int(grey.max() ?? 0))
          #expect(
            low >= 110 && high <= 128 && high - low < 6, "\(type) in \(name) has \(low) to \(high)")
        }
      }
    }
  }

  @Test(
    "A colour profile that takes very long or much memory is removed", arguments: [ImageFormat.png, .jpeg])
  func removed(format: ImageFormat) throws {
    var hostile: [[Tag]] = [[("D2B0", element), ("D2B1", element)], [("B2D1", element)]]
    for type in ["mft1", "mft2", "mAB "] {
      for name in ["A2B0", "A2B1"] { hostile.append([(name, table(type, side: 255, outputs: 15))]) }
    }
    for opening in Opening.allCases {
      let plain = try pixels(opening, format, nil)
      for tags in hostile {
        let name = tags[0].name
        let profile = profile(tags, connection: name.hasPrefix("A2B") ? "Lab " : "XYZ ")
        #expect(try pixels(opening, format, profile) == plain, "\(name) of \(tags[0].content.count) bytes")
      }
    }
  }

  @Test("A colour profile with elements is not used, in whichever tag they are")
  func elements() {
    for name in ["D2B0", "D2B1", "D2B2", "D2B3", "B2D0", "B2D1", "B2D2", "B2D3"] {
      #expect(!isUsed(profile([(name, element)])), "\(name)")
      #expect(!isUsed(profile([(name, [])])), "\(name) without content")
    }
    for name in ["A2B0", "B2A0", "gamt", "d2b0"] { #expect(isUsed(profile([(name, [])])), "\(name)") }
  }

  @Test("A colour profile whose tables of colours are incomplete is not used")
  func tables() {
    for type in ["mft1", "mft2", "mAB ", "mBA "] {
      #expect(isUsed(profile([("A2B0", table(type))])), "\(type)")
      for (side, outputs) in [(3, 3), (255, 3), (2, 255), (255, 255)] {
        let tag = table(type, side: side, outputs: outputs)
        #expect(!isUsed(profile([("abcd", tag)])), "\(type), \(side), \(outputs)")
      }
      #expect(!isUsed(profile([("A2B0", table(type).dropLast(4))])), "\(type) without its end")
    }
    #expect(!isUsed(profile([("A2B0", table("mAB ", precision: 2))])))
    // 15 sides of 255 are more than a number can tell.
    var many = table("mft1", side: 255)
    many[8] = 15
    #expect(!isUsed(profile([("A2B0", many)])))
    // A table of colours at the place 0 is none.
    var curves = table("mAB ", side: 255)
    curves.replaceSubrange(24..<28, with: zeros(4))
    #expect(isUsed(profile([("A2B0", curves)])))
  }

  @Test("The table of tags is complete and has 100 tags at most, and the colour profile 8 MiB")
  func bounds() {
    let plain = profile()
    #expect(isUsed(Array(plain.prefix(132 + 6 * 12))), "lcms2 ignores tags that are not in the profile")
    #expect(!isUsed(Array(plain.prefix(132 + 6 * 12 - 1))))
    let other: Tag = ("abcd", [])
    #expect(isUsed(profile(Array(repeating: other, count: 94))))
    #expect(!isUsed(profile(Array(repeating: other, count: 95))))
    #expect(isUsed(plain + zeros(8 << 20 - plain.count)))
    #expect(!isUsed(plain + zeros(8 << 20 - plain.count + 1)))
  }
}
