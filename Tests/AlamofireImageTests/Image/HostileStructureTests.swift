import CVips
import Foundation
import Testing

@testable import AlamofireImage

@Suite("Hostile structures of image files", .timeLimit(.minutes(5)))
struct HostileStructureTests {
  @Test(
    "A JPEG of very many segments is refused, as libjpeg would walk through all for each",
    arguments: Opening.allCases)
  func segments(opening: Opening) throws {
    let file = try Drawing(gradientOf: 16, 16).file(.jpeg)
    let own = try FileStructure.parts(ofJPEG: reading(Array(file))).segments
    for marker in [0xe0, 0xe1, 0xef, 0xfe] as [UInt8] {
      func with(_ count: Int) -> Data {
        let segments = Data(Array(repeating: [0xff, marker, 0, 2], count: count - own).joined())
        return file.prefix(2) + segments + file.dropFirst(2)
      }
      #expect(throws: ImageError.limitExceeded(.segments, limit: 1_000, actual: 1_001), "\(marker)") {
        try opening.width(with(1_001))
      }
      #expect(try opening.width(with(1_000)) == 16, "\(marker)")
      #expect(try opening.width(with(300)) == 16, "\(marker)")
    }
  }

  @Test(
    "Only the segments that libjpeg appends to its list are counted, up to the first scan if that is asked for"
  )
  func segmentKinds() throws {
    let scan: [UInt8] = [0xff, 0xda, 0, 2, 1, 2, 3]
    for marker in UInt8(0xc0)...0xfe where marker != 0xda && !(0xd0...0xd9).contains(marker) {
      let segment: [UInt8] = [0xff, marker, 0, 6, 0xff, 0xe1, 0, 2]
      let file = [0xff, 0xd8] + segment + segment + scan + segment + [0xff, 0xd9]
      let isCounted = (0xe0...0xef).contains(marker) || marker == 0xfe
      let all = try FileStructure.parts(ofJPEG: reading(file))
      #expect((all.scans, all.segments) == (1, isCounted ? 3 : 0), "\(marker)")
      let head = try FileStructure.parts(ofJPEG: reading(file), endsAtScan: true)
      #expect((head.scans, head.segments) == (1, isCounted ? 2 : 0), "\(marker)")
    }
  }

  @Test("Segments are found wherever the blocks end in which a file is read")
  func blocks() throws {
    let segment: [UInt8] = [0xff, 0xe1, 0, 3, 7]
    for size in 65_520...65_535 {
      let long =
        [0xff, 0xe2, UInt8(size >> 8), UInt8(size & 255)] + [UInt8](repeating: 0xff, count: size - 2)
      let file = [0xff, 0xd8] + long + segment + segment + long + segment + [0xff, 0xda, 0, 2, 5]
      let parts = try FileStructure.parts(ofJPEG: reading(file))
      #expect((parts.scans, parts.segments) == (1, 5), "\(size) bytes")
    }
  }

  @Test(
    "A reserved marker, which libjpeg ignores, hides no scans of a JPEG file",
    arguments: [0x02, 0x47, 0xbf] as [UInt8])
  func reservedMarkers(marker: UInt8) throws {
    let value: [UInt8] = [0xff, 0xd8, 0xff, marker, 0xff, 0xff, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 1, 2]
    #expect(try FileStructure.parts(ofJPEG: reading(value)).scans == 1)
    let file = try Drawing(gradientOf: 16, 16).file(.jpeg)
    let start = try #require(file.range(of: Data([0xff, 0xda])))
    let length = Int(file[start.upperBound]) << 8 | Int(file[start.upperBound + 1])
    let scan = file[start.lowerBound..<start.upperBound + length]
    // Before a restart marker, the reserved one is ignored. As a segment, it would contain all that follows.
    var hostile = file.dropLast(2) + [0xff, marker, 0xff, 0xff, 0xff, 0xd0]
    for _ in 0..<100 { hostile += scan }
    hostile += [0xff, 0xd9]
    #expect(throws: ImageError.limitExceeded(.scans, limit: 100, actual: 101)) { try Image(data: hostile) }
  }

  /// Makes a chunk of a WebP file (RFC 9649 §2.3).
  private func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    let size = (0..<4).map { UInt8(content.count >> (8 * $0) & 255) }
    return Array(name.utf8) + size + content + [UInt8](repeating: 0, count: content.count % 2)
  }

  /// Makes an animated WebP of one pixel, whose frames are all within the size of the first.
  private func nestedWebP(frames: Int) -> Data {
    // A duration of ten milliseconds, and an image in one colour without losses (RFC 9649 §3).
    let head: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0]
    let frame = head + chunk("VP8L", [0x2f, 0, 0, 0, 0])
    let others = Array(repeating: chunk("ANMF", frame), count: frames - 1).joined()
    let body =
      Array("WEBP".utf8) + chunk("VP8X", [2, 0, 0, 0, 0, 0, 0, 0, 0, 0]) + chunk("ANIM", [0, 0, 0, 0, 0, 0])
      + chunk("ANMF", frame + others)
    return Data(chunk("RIFF", body))
  }

  @Test(
    "The frames of a WebP that are within another one count, as libwebp reads them",
    arguments: Opening.allCases)
  func nestedFrames(opening: Opening) throws {
    #expect(try opening.with(nestedWebP(frames: 3)) { $0.frameCount } == 3)
    #expect(throws: ImageError.limitExceeded(.frames, limit: 1_000, actual: 1_001)) {
      try opening.width(nestedWebP(frames: 1_001))
    }
    let file = Array(nestedWebP(frames: 1_000))
    #expect(file.withUnsafeBytes { FileStructure.frames(ofWebP: $0) } == 1_000)
  }

  @Test("Chunks within a frame of a WebP that are images are no frames")
  func imagesInFrames() {
    let head = [UInt8](repeating: 0, count: 16)
    let images = chunk("ALPH", chunk("ANMF", [1, 2, 3])) + chunk("VP8 ", chunk("ANMF", head))
    let frame = chunk("ANMF", head + images)
    let file = chunk("RIFF", Array("WEBP".utf8) + frame + chunk("EXIF", frame) + frame)
    #expect(file.withUnsafeBytes { FileStructure.frames(ofWebP: $0) } == 2)
  }

  /// An entry of a TIFF file.
  private typealias Entry = (tag: Int, type: Int, count: Int, value: Int)

  /// Makes a TIFF of 8 by 8 grey pixels, with so many directories, each of which has more entries.
  private func tiff(
    _ more: [Entry] = [], directories: Int = 1, padding: Int = 0, isBigEndian: Bool = false
  ) -> Data {
    func number(_ value: Int, _ size: Int) -> [UInt8] {
      let bytes = (0..<size).map { UInt8(value >> (8 * $0) & 255) }
      return isBigEndian ? bytes.reversed() : bytes
    }
    var entries: [Entry] = [
      (256, 4, 1, 8), (257, 4, 1, 8), (258, 4, 1, 8), (259, 4, 1, 1), (262, 4, 1, 1), (273, 4, 1, 8),
      (277, 4, 1, 1), (278, 4, 1, 8), (279, 4, 1, 64),
    ]
    entries += more
    var table = number(entries.count, 2)
    for entry in entries {
      table += number(entry.tag, 2) + number(entry.type, 2)
      table += number(entry.count, 4) + number(entry.value, 4)
    }
    var file = Data((isBigEndian ? "MM" : "II").utf8)
    file += number(42, 2) + number(72 + padding, 4)
    file += Data(repeating: 85, count: 64) + Data(count: padding)
    for index in 1...directories {
      file += table + number(index < directories ? file.count + table.count + 4 : 0, 4)
    }
    return file
  }

  @Test(
    "A TIFF whose tags share their values is refused by the sum of their lengths", arguments: Opening.allCases
  )
  func sharedValues(opening: Opening) throws {
    func file(_ count: Int) -> Data {
      tiff((0..<count).map { (40_000 + $0, 7, 1_000_000, 8) }, padding: 1_000_000)
    }
    // The nine others have seven numbers of 32 bits, and the place and the length of a strip.
    let other = 7 * 4 + 2 * 8
    #expect(throws: ImageError.limitExceeded(.bytes, limit: 64 << 20, actual: 100_000_000 + other)) {
      try opening.width(file(100))
    }
    #expect(try opening.width(file(1)) == 8)
    #expect(try opening.width(file(60)) == 8)
    let large = ImageLimits(bytes: 100_000_000 + other)
    #expect(try opening.width(file(100), limits: large) == 8, "larger files may have larger values")
  }

  @Test("The values of a tag count by their type, and at most as what is in the file")
  func valueSizes() throws {
    let ordinary = 7 * 4 + 2 * 8
    let sizes = [
      0: 8, 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8,
      18: 8, 19: 8,
    ]
    for isBigEndian in [false, true] {
      for (type, size) in sizes {
        for (count, values) in [(1, 1), (50, 50), (1 << 31, (4 * 8_000) / size)] {
          var file = tiff([(40_000, type, count, 8)], isBigEndian: isBigEndian)
          file.append(Data(count: 4 * 8_000 - file.count))
          let sum = try file.withUnsafeBytes { try FileStructure.valueSize(ofTIFF: $0) }
          #expect(sum == ordinary + values * size, "\(count) of type \(type)")
        }
      }
    }
    for tag in [273, 279, 324, 325] {
      let sum = try tiff([(tag, 3, 20, 8)]).withUnsafeBytes { try FileStructure.valueSize(ofTIFF: $0) }
      #expect(sum == ordinary + 20 * 8, "tag \(tag)")
    }
    let broken = tiff([(40_000, 7, 1 << 31, 8)], padding: 1_000)
    #expect(try Image(data: broken).pixelWidth == 8, "libtiff ignores a tag that is longer than the file")
  }

  /// Counts the images that libvips finds in a TIFF file.
  private func pages(_ data: Data) throws -> Int {
    try Vips.call { () throws(ImageError) -> Int in
      try data.withBytes { bytes throws(ImageError) -> Int in
        let facts = try VipsImage(bytes, options: "").facts
        return Int(facts.pages)
      }
    }
  }

  @Test(
    "libvips finds only the first image of a TIFF file, as it would read the tags of all",
    arguments: [false, true])
  func laterImages(isBigEndian: Bool) throws {
    let single = tiff(isBigEndian: isBigEndian)
    let many = tiff(directories: 50, isBigEndian: isBigEndian)
    #expect(try pages(many) == 50)
    // The last directory leads back to the first.
    let circle = many.dropLast(4) + many[4..<8]
    let profile: Entry = (34_675, 7, 8_000_000, 8)
    let heavy = tiff([profile], directories: 10, padding: 8_000_000, isBigEndian: isBigEndian)
    for (name, file) in [("single", single), ("many", many), ("circle", circle), ("heavy", heavy)] {
      let slice = (Data([1, 2, 3]) + file).dropFirst(3)
      for data in [file, slice] {
        let image = try Image(data: data)
        #expect(try pages(#require(image.content.data)) == 1, "\(name)")
        #expect(image.frameCount == 1, "\(name)")
        #expect(try image == Image(data: single), "\(name)")
      }
      #expect(try Opening.file.with(file) { try pages(#require($0.content.data)) } == 1, "\(name)")
    }
    #expect(try pages(many) == 50, "the bytes of the caller are unchanged")
  }

  @Test(
    "Bytes behind the only directory of a TIFF file that lead nowhere are not changed",
    arguments: [false, true])
  func noLink(isBigEndian: Bool) throws {
    // The last four bytes of the file are the link, in place of which some writers have other bytes.
    let file = tiff(isBigEndian: isBigEndian)
    for bytes in [[0xff, 0xff, 0xff, 0xff], [0, 0, 0, 1], [7, 7, 7, 7]] as [[UInt8]] {
      let changed = file.dropLast(4) + bytes
      let image = try Image(data: changed)
      #expect(image.content.data == changed, "\(bytes)")
    }
  }

  @Test("A link to the next image that is a part of the head of a TIFF file cannot be removed")
  func linkInHead() {
    // A directory without entries at the place 4, whose link begins at 6, and leads to another one.
    var file = Data("MM\0*".utf8)
    file += [0, 0, 0, 4, 0, 8]
    file += Data(repeating: 1, count: 300_000)
    #expect(throws: ImageError.limitExceeded(.tags, limit: 1_000, actual: 0x4d4d)) { try Image(data: file) }
  }

  @Test("A TIFF of very many tags is refused by its head", arguments: Opening.allCases)
  func tags(opening: Opening) throws {
    func file(_ count: Int) -> Data { tiff((0..<count - 9).map { (40_000 + $0, 3, 1, 7) }) }
    #expect(try opening.width(file(1_000)) == 8)
    for count in [1_001, 4_096, 40_000] {
      #expect(throws: ImageError.limitExceeded(.tags, limit: 1_000, actual: count)) {
        try opening.width(file(count))
      }
    }
  }

  @Test("A TIFF of 64 bits that claims to have very many tags is refused before they are read")
  func tagsOfBigTIFF() throws {
    func tile(_ count: [UInt8]) throws -> Int? {
      let file = Array("II".utf8) + [43, 0, 8, 0, 0, 0] + [16, 0, 0, 0, 0, 0, 0, 0] + count
      return try (file + [UInt8](repeating: 0, count: 20_000)).withUnsafeBytes {
        try FileStructure.tile(ofTIFF: $0)
      }?.width
    }
    #expect(try tile([0xe8, 3, 0, 0, 0, 0, 0, 0]) == nil)
    for (count, actual) in [
      ([0xe9, 3, 0, 0, 0, 0, 0, 0], 1_001), ([0, 0, 1, 0, 0, 0, 0, 0], 65_536),
      ([0, 0, 0, 0, 0, 1, 0, 0], 1 << 40), ([255, 255, 255, 255, 255, 255, 255, 255], .max),
    ] as [([UInt8], Int)] {
      #expect(throws: ImageError.limitExceeded(.tags, limit: 1_000, actual: actual)) { try tile(count) }
    }
  }
}
