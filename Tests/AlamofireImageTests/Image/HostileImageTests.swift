import Alamofire
import Foundation
import Randomness
import Testing

@testable import AlamofireImage

@Suite("Hostile and damaged images")
struct HostileImageTests {
  /// Makes a PNG whose head promises a size that its data do not have.
  private func png(_ width: UInt32, _ height: UInt32) throws -> Data {
    var file = try Drawing(gradientOf: 2, 2).file(.png)
    var head = Data("IHDR".utf8)
    for side in [width, height] { withUnsafeBytes(of: side.bigEndian) { head.append(contentsOf: $0) } }
    head += file[24..<29]
    file.replaceSubrange(12..<29, with: head)
    withUnsafeBytes(of: crc(head).bigEndian) { file.replaceSubrange(29..<33, with: $0) }
    return file
  }

  private func crc(_ data: Data) -> UInt32 {
    ~data.reduce(UInt32.max) { crc, byte in
      (0..<8).reduce(crc ^ UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xedb8_8320 : value >> 1
      }
    }
  }

  @Test("A small file of many pixels is refused by its head")
  func bomb() throws {
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 100_000_000, actual: 2_500_000_000)) {
      try Image(data: png(50_000, 50_000))
    }
    #expect(try Image(data: png(50, 50)).pixelWidth == 50)
  }

  /// Makes a chunk of a PNG file (PNG §5.3).
  private func chunk(_ kind: String, _ content: Data) -> Data {
    let body = Data(kind.utf8) + content
    return bigEndian(content.count) + body + bigEndian(Int(crc(body)))
  }

  private func bigEndian(_ number: Int) -> Data {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) { Data($0) }
  }

  /// Makes a PNG of 2 by 2 pixels with chunks behind its head.
  private func png(with chunks: [Data]) throws -> Data {
    var file = try Drawing(gradientOf: 2, 2).file(.png)
    file.insert(contentsOf: chunks.reduce(Data(), +), at: 33)
    return file
  }

  @Test("A PNG whose texts would take too much memory is refused by their lengths", arguments: [false, true])
  func texts(isFile: Bool) throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).png")
    defer { try? FileManager.default.removeItem(at: url) }
    let open = { (data: Data) throws -> Int in
      guard isFile else { return try Image(data: data).pixelWidth }
      try data.write(to: url)
      return try Image(streaming: url, .default).pixelWidth
    }
    let keyword = Data("Comment\0".utf8)
    // A compressed text of 8,000 bytes can become 8,000,000.
    let compressed = chunk("zTXt", keyword + Data(count: 8_000))
    let international = chunk("iTXt", keyword + Data([1, 0, 0, 0]) + Data(count: 8_000))
    let plain = chunk("iTXt", keyword + Data([0, 0, 0, 0]) + Data(repeating: 0x41, count: 100_000))
    for text in [compressed, international] {
      let file = try png(with: Array(repeating: text, count: 9))
      #expect(throws: ImageError.limitExceeded(.bytes, limit: 64 << 20, actual: 72_000_000)) {
        try open(file)
      }
    }
    #expect(try open(png(with: [compressed] + Array(repeating: plain, count: 20))) == 2)
    let small = ImageLimits(bytes: 20_000)
    #expect(try Image(data: png(with: [compressed]), limits: small).pixelWidth == 2, "the file is small")
  }

  @Test("A TIFF with larger tiles than an image may have pixels is refused by its head")
  func tiles() throws {
    let limits = ImageLimits(pixels: 10_000)
    #expect(try Image(data: tiff(samples: 3, photometric: 2), limits: limits).pixelWidth == 8)
    let tiled = tiff(samples: 3, photometric: 2, more: [(322, 4, 1, 3_008), (323, 3, 1, 3_008)])
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 10_000, actual: 3_008 * 3_008)) {
      try Image(data: tiled, limits: limits)
    }
  }

  @Test("A TIFF with larger pixels than others is refused as if it had more of them")
  func largePixels() throws {
    let image = tiff(samples: 5, photometric: 2, bits: 32)
    #expect(try Image(data: image, limits: ImageLimits(pixels: 160)).pixelWidth == 8)
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 159, actual: 64 * 20 / 8)) {
      try Image(data: image, limits: ImageLimits(pixels: 159))
    }
    let tiled = tiff(samples: 5, photometric: 2, bits: 32, more: [(322, 4, 1, 16), (323, 3, 1, 16)])
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 639, actual: 256 * 20 / 8)) {
      try Image(data: tiled, limits: ImageLimits(pixels: 639))
    }
    let small = tiff(samples: 4, photometric: 2, bits: 16)
    #expect(
      try Image(data: small, limits: ImageLimits(pixels: 64)).pixelWidth == 8, "eight bytes are one pixel")
  }

  /// Makes a codestream of JPEG 2000 (ISO 15444-1) of 16 by 16 pixels with so many components, which are empty.
  private static func codestream(components: Int) -> Data {
    func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
      [0xff, marker, UInt8((content.count + 2) >> 8), UInt8((content.count + 2) & 255)] + content
    }
    let sides: [UInt8] = [0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0]
    let count = [UInt8(components >> 8), UInt8(components & 255)]
    let each = Array(repeating: [7, 1, 1] as [UInt8], count: components).joined()
    let part = [0xff, 0x93] + [UInt8](repeating: 0, count: components)
    let length = UInt16(12 + part.count)
    let bytes =
      [0xff, 0x4f] + segment(0x51, [0, 0] + sides + sides + count + each)
      + segment(0x52, [0, 0, 0, 1, 0, 0, 4, 4, 0, 1]) + segment(0x5c, [0x40, 64])
      + segment(0x90, [0, 0, 0, 0, UInt8(length >> 8), UInt8(length & 255), 0, 1]) + part + [0xff, 0xd9]
    return Data(bytes)
  }

  @Test("A TIFF of JPEG 2000 with more components than samples does no harm")
  func components() async {
    await #expect(processExitsWith: .success) {
      let content = HostileImageTests.codestream(components: 200)
      for compression in [33_003, 33_004, 33_005] {
        let file = HostileImageTests.tiff(
          content, side: 16, isTiled: true, [(259, 3, 1, compression), (262, 3, 1, 2)])
        // The decoder would write behind the memory of a tile.
        _ = try? Image(data: file).pixels(as: .rgba)
      }
    }
  }

  @Test("A TIFF is read if its compression is a known one, in the only form that all readers know")
  func compressions() throws {
    let content = Data(count: 64 * 3)
    func open(_ compressions: [Entry], isTiled: Bool = false) throws -> Int {
      let file = Self.tiff(content, side: 8, isTiled: isTiled, compressions + [(262, 3, 1, 2)])
      return try Image(data: file).pixelWidth
    }
    for known in [1, 5, 8, 32_946, 32_773] {
      for type in [3, 4] as [UInt16] {
        #expect(try open([(259, type, 1, known)]) == 8, "\(known)")
        #expect(try open([(259, type, 1, known)], isTiled: true) == 8, "\(known) in tiles")
      }
    }
    #expect(try open([]) == 8, "no compression")
    #expect(try open([(259, 3, 1, 1), (259, 3, 1, 8)]) == 8)
    let refused: [[Entry]] =
      [0, 6, 9, 32_766, 33_003, 33_004, 33_005, 34_676, 34_712, 34_925, 50_000, 50_001, 65_535].map {
        [(259, 3, 1, $0)]
      } + [
        [(259, 3, 1, 33_005), (259, 3, 1, 1)], [(259, 3, 1, 1), (259, 3, 1, 33_005)], [(259, 3, 3, 8)],
        [(259, 3, 0, 1)], [(259, 3, 2, 1 | 33_005 << 16)], [(259, 1, 1, 1)], [(259, 8, 1, 1)],
        [(259, 12, 1, 1)], [(259, 4, 1, 65_537)],
      ]
    for entries in refused {
      for isTiled in [false, true] {
        #expect(throws: ImageError.unsupportedFormat(.tiff), "\(entries)") {
          try open(entries, isTiled: isTiled)
        }
      }
    }
  }

  /// A progressive JPEG of 16 by 16 grey pixels, with six scans.
  private static let progressive = Data(
    base64Encoded: """
      /9j/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/wgALCAAQABABAREA\
      /8QAFQABAQAAAAAAAAAAAAAAAAAAAAf/2gAIAQEAAAABn4//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAEFAh//xAAUEAEAAAAAAAAAAAAA\
      AAAAAAAg/9oACAEBAAY/Ah//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAE/IR//2gAIAQEAAAAQD//EABQQAQAAAAAAAAAAAAAAAAAAACD/\
      2gAIAQEAAT8QH//Z
      """)

  @Test("A TIFF of JPEG is read in strips, with at most 100 scans, and refused in tiles")
  func jpegInTIFF() throws {
    let file = try #require(Self.progressive)
    let last = try #require(file.range(of: Data([0xff, 0xda]), options: .backwards))
    let scan = file[last.lowerBound..<file.endIndex - 2]
    func tiff(scans: Int, isTiled: Bool = false) -> Data {
      let content = file.dropLast(2) + Array(repeating: scan, count: scans).joined() + [0xff, 0xd9]
      return Self.tiff(
        content, side: 16, isTiled: isTiled, [(258, 3, 1, 8), (259, 3, 1, 7), (262, 3, 1, 1), (277, 3, 1, 1)])
    }
    #expect(try Image(data: tiff(scans: 0)).pixels(as: .grey).count == 256)
    #expect(throws: ImageError.self) { try Image(data: tiff(scans: 101)).pixels(as: .grey) }
    for scans in [0, 101] {
      #expect(throws: ImageError.unsupportedFormat(.tiff)) {
        try Image(data: tiff(scans: scans, isTiled: true))
      }
    }
    // One of the sides is enough to have tiles.
    for tag in [322, 323] as [UInt16] {
      let entries: [Entry] = [
        (258, 3, 1, 8), (259, 3, 1, 7), (262, 3, 1, 1), (277, 3, 1, 1), (tag, 3, 1, 16),
      ]
      let half = Self.tiff(file, side: 16, isTiled: false, entries)
      #expect(throws: ImageError.unsupportedFormat(.tiff)) { try Image(data: half) }
    }
  }

  @Test(
    "The entries of a TIFF of 64 bits are read in the same way, in both orders of bytes",
    arguments: [false, true])
  func bigTIFF(isBigEndian: Bool) throws {
    func number(_ value: Int, _ size: Int) -> [UInt8] {
      let bytes = (0..<size).map { UInt8(value >> (8 * $0) & 255) }
      return isBigEndian ? bytes.reversed() : bytes
    }
    func tile(_ entries: [Entry]) throws -> [Int]? {
      var file = Array((isBigEndian ? "MM" : "II").utf8) + number(43, 2) + number(8, 2) + number(0, 2)
      file += number(16, 8) + number(entries.count, 8)
      for entry in entries {
        let size = entry.type == 3 ? 2 : 4
        file += number(Int(entry.tag), 2) + number(Int(entry.type), 2) + number(entry.count, 8)
        file += number(entry.value, size) + number(0, 8 - size)
      }
      return try file.withUnsafeBytes { try FileStructure.tile(ofTIFF: $0) }.map { [$0.width, $0.height] }
    }
    #expect(try tile([(259, 3, 1, 1), (322, 3, 1, 32), (323, 4, 1, 70_000)]) == [32, 70_000])
    #expect(try tile([(259, 3, 1, 7)]) == nil)
    for entries in [
      [(259, 3, 1, 7), (322, 3, 1, 32)], [(259, 3, 1, 33_005)], [(259, 3, 2, 1)], [(259, 2, 1, 1)],
    ] as [[Entry]] {
      #expect(throws: ImageError.unsupportedFormat(.tiff), "\(entries)") { try tile(entries) }
    }
  }

  @Test("A filter does not make more pixels than the image may have")
  func growth() throws {
    let image = try Drawing(gradientOf: 10, 10).image(limits: ImageLimits(pixels: 1_000))
    for size in [CGSize(width: 100, height: 100), CGSize(width: 1e300, height: 1)] {
      #expect(throws: ImageError.self) { try ScaledToSizeFilter(size: size).apply(image) }
      #expect(throws: ImageError.self) { try AspectScaledToFitSizeFilter(size: size).apply(image) }
      #expect(throws: ImageError.self) { try AspectScaledToFillSizeFilter(size: size).apply(image) }
      #expect(image.af.imageScaled(to: size) == image)
    }
  }

  @Test(
    "A side that is not a positive number becomes one pixel",
    arguments: [0, -5, CGFloat.nan, -CGFloat.infinity, 0.2])
  func strangeSizes(side: CGFloat) throws {
    let image = try Drawing(gradientOf: 10, 10).image()
    let size = CGSize(width: side, height: 3)
    for result in [
      image.af.imageScaled(to: size), image.af.imageAspectScaled(toFit: size),
      image.af.imageAspectScaled(toFill: size),
    ] {
      #expect((result.pixelWidth, result.pixelHeight) == (1, 3))
    }
  }

  @Test(
    "A truncated file is an error, not half an image",
    arguments: [ImageFormat.jpeg, .png, .webp, .gif, .tiff])
  func truncated(format: ImageFormat) throws {
    let file = try Drawing(300, 200, bands: 3) { x, y in
      [
        UInt8(truncatingIfNeeded: x &* 7 &+ y), UInt8(truncatingIfNeeded: x ^ y),
        UInt8(truncatingIfNeeded: x &* y),
      ]
    }.file(format)
    for share in [0.1, 0.5, 0.9] {
      let part = file.prefix(Int(Double(file.count) * share))
      #expect(throws: ImageError.self, "\(share) of \(format)") { try Image(data: part).pixels(as: .rgb) }
      #expect(throws: ImageError.self, "\(share) of \(format), scaled") {
        try ScaledToSizeFilter(size: CGSize(width: 30, height: 20)).apply(Image(data: part))
      }
    }
  }

  @Test("Files of unknown formats are refused")
  func unknownFormats() {
    let files: [String] = [
      "", "GIF", "hello", "%PDF-1.7", "P6 1 1 255 aaa", "<svg xmlns='http://www.w3.org/2000/svg'/>",
      "BM      ",
      "RIFF0000WAVE", "\0\0\0\u{18}ftypisom", "v2\0\0",
    ]
    for file in files {
      #expect(throws: ImageError.unknownFormat, "\(file)") { try Image(data: Data(file.utf8)) }
    }
  }

  /// An entry of a TIFF file.
  private typealias Entry = (tag: UInt16, type: UInt16, count: Int, value: Int)

  /// Makes a TIFF whose only strip or tile has this content: red, green and blue, if the entries do not say otherwise.
  private static func tiff(_ content: Data, side: Int, isTiled: Bool, _ more: [Entry]) -> Data {
    var entries: [Entry] = [(256, 3, 1, side), (257, 3, 1, side), (284, 3, 1, 1)]
    // The bits of samples are behind the content.
    let bits = 8 + content.count + content.count % 2
    if !more.contains(where: { $0.tag == 258 }) { entries += [(258, 3, 3, bits), (277, 3, 1, 3)] }
    entries +=
      isTiled
      ? [(322, 3, 1, 16), (323, 3, 1, 16), (324, 4, 1, 8), (325, 4, 1, content.count)]
      : [(273, 4, 1, 8), (278, 3, 1, side), (279, 4, 1, content.count)]
    entries = (entries + more).sorted { $0.tag < $1.tag }
    func number(_ value: Int, _ size: Int) -> [UInt8] { (0..<size).map { UInt8(value >> (8 * $0) & 255) } }
    var file = Data([0x49, 0x49, 42, 0] + number(bits + 6, 4)) + content
    if content.count % 2 == 1 { file.append(0) }
    file += [8, 0, 8, 0, 8, 0] + number(entries.count, 2)
    for entry in entries {
      file += number(Int(entry.tag), 2) + number(Int(entry.type), 2)
      file += number(entry.count, 4) + number(entry.value, 4)
    }
    return file + [0, 0, 0, 0]
  }

  /// Makes an uncompressed TIFF of 8 by 8 pixels with so many samples, whose values are their numbers.
  private func tiff(samples: Int, photometric: UInt16, bits: Int = 8, more: [Entry] = []) -> Data {
    let depths = 8 + 2 + 12 * (9 + more.count) + 4
    let pixels = depths + 2 * samples
    var entries: [Entry] = [
      (256, 3, 1, 8), (257, 3, 1, 8), (258, 3, samples, depths), (259, 3, 1, 1),
      (262, 3, 1, Int(photometric)),
      (273, 4, 1, pixels), (277, 3, 1, samples), (278, 3, 1, 8), (279, 4, 1, 64 * samples * bits / 8),
    ]
    entries += more
    var file = Data([0x49, 0x49, 42, 0, 8, 0, 0, 0, UInt8(entries.count), 0])
    func append(_ value: Int, _ bytes: Int) {
      for byte in 0..<bytes { file.append(UInt8(value >> (8 * byte) & 255)) }
    }
    while !entries.isEmpty {
      let entry = entries.removeFirst()
      append(Int(entry.tag), 2)
      append(Int(entry.type), 2)
      append(entry.count, 4)
      append(entry.value, 4)
    }
    append(0, 4)
    for _ in 0..<samples { append(bits, 2) }
    for _ in 0..<64 { for sample in 0..<samples { append((sample + 1) * 20 % 256, bits / 8) } }
    return file
  }

  @Test("More samples than colours and alpha are left out, or refused")
  func samples() throws {
    #expect(try Image(data: tiff(samples: 3, photometric: 2)).pixel(3, 3) == [20, 40, 60, 255])
    let five = try Image(data: tiff(samples: 5, photometric: 2))
    #expect(try five.pixels(as: .rgb).count == 64 * 3)
    #expect(try five.pixels(as: .rgba).count == 64 * 4)
    #expect(try Array(five.pixel(3, 3).prefix(3)) == [20, 40, 60])
    #expect(try five.af.imageScaled(to: CGSize(width: 4, height: 4)).pixels(as: .rgba).count == 64)
    #expect(throws: ImageError.limitExceeded(.samples, limit: 5, actual: 200)) {
      try Image(data: tiff(samples: 200, photometric: 2))
    }
  }

  @Test("A JPEG of many scans is refused by its structure")
  func scans() throws {
    let file = try Drawing(gradientOf: 16, 16).file(.jpeg)
    let start = try #require(file.range(of: Data([0xff, 0xda])))
    let length = Int(file[start.upperBound]) << 8 | Int(file[start.upperBound + 1])
    let scan = file[start.lowerBound..<start.upperBound + length]
    var hostile = Data(file.prefix(upTo: start.lowerBound))
    for _ in 0..<5_000 { hostile += scan }
    hostile += file.suffix(from: start.lowerBound)
    #expect(throws: ImageError.limitExceeded(.scans, limit: 100, actual: 5_001)) { try Image(data: hostile) }
  }

  @Test("Filling a size with a very long image needs little memory")
  func longImage() throws {
    let long = try Drawing(gradientOf: 20_000, 1).image()
    let filled = try AspectScaledToFillSizeFilter(size: CGSize(width: 100, height: 100)).apply(long)
    #expect((filled.pixelWidth, filled.pixelHeight) == (100, 100))
    let middle = try filled.pixel(50, 50)
    #expect((125...130).contains(middle[0]), "\(middle)")
    let high = try Drawing(gradientOf: 1, 20_000).image()
    #expect(
      (125...130).contains(
        try AspectScaledToFillSizeFilter(size: CGSize(width: 90, height: 30)).apply(high).pixel(1, 1)[1]))
  }

  @Test("Heads alone are errors")
  func heads() {
    let heads: [[UInt8]] = [
      [0xff, 0xd8, 0xff], [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], Array("GIF89a".utf8),
      Array("RIFF\u{4}\0\0\0WEBP".utf8), [0x49, 0x49, 0x2a, 0], Array("\0\0\0\u{18}ftypavif".utf8),
      Array("\0\0\0\u{18}ftypheic".utf8),
    ]
    let limits = ImageLimits(formats: Set(ImageFormat.allCases))
    for head in heads {
      #expect(throws: ImageError.self, "\(head)") { try Image(data: Data(head), limits: limits) }
    }
  }

  @Test(
    "Files with changed bytes are decoded or refused", .seeded,
    arguments: [ImageFormat.jpeg, .png, .webp, .gif, .tiff])
  func changedBytes(format: ImageFormat) throws {
    let file = try Drawing(gradientOf: 40, 30).file(format)
    var generator = Seed.generator()
    for _ in 0..<150 {
      var changed = file
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        changed[Int.random(in: 0..<file.count, using: &generator)] = UInt8.random(
          in: 0...255, using: &generator)
      }
      guard let image = try? Image(data: changed, limits: ImageLimits(pixels: 1_000_000)) else { continue }
      guard let pixels = try? image.pixels(as: .rgba) else { continue }
      #expect(pixels.count == image.pixelWidth * image.pixelHeight * image.frameCount * 4)
    }
  }

  @Test("Work that takes longer than its limit ends")
  func time() throws {
    let image = try Drawing(gradientOf: 500, 500).image(limits: ImageLimits(time: .zero))
    let filters: [any ImageFilter] = [
      BlurFilter(blurRadius: 20), CircleFilter(), RoundedCornersFilter(radius: 9),
    ]
    for filter in filters {
      #expect("\(filter)") { try filter.apply(image) } throws: { error in
        if case ImageError.limitExceeded(.time, limit: 0, actual: _) = error { true } else { false }
      }
    }
  }

  @Test("A cancelled task ends with an error")
  func cancellation() async throws {
    let image = try Drawing(gradientOf: 500, 500).image()
    let task = Task { try await image.filtered(by: BlurFilter(blurRadius: 20)) }
    task.cancel()
    await #expect(throws: ImageError.cancelled) { try await task.value }
  }
}
