import Alamofire
import AlamofireImage
import Foundation
import Randomness
import Testing

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
    "A side that is no number or not positive becomes one pixel",
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

  @Test("What is no image of a known format is refused")
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

  @Test("Heads alone are errors")
  func heads() {
    let heads: [[UInt8]] = [
      [0xff, 0xd8, 0xff], [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], Array("GIF89a".utf8),
      Array("RIFF\u{4}\0\0\0WEBP".utf8), [0x49, 0x49, 0x2a, 0], Array("\0\0\0\u{18}ftypavif".utf8),
      Array("\0\0\0\u{18}ftypheic".utf8),
    ]
    for head in heads { #expect(throws: ImageError.self, "\(head)") { try Image(data: Data(head)) } }
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
    #expect { try BlurFilter(blurRadius: 20).apply(image) } throws: { error in
      if case ImageError.limitExceeded(.time, limit: 0, actual: _) = error { true } else { false }
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
