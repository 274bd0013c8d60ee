import Alamofire
@testable import AlamofireImage
import Foundation
import Testing

@Suite("What images are made of, and what they keep")
struct ImageMakingTests {
  private static let limits = ImageLimits(pixels: 5_000, frames: 7, time: .seconds(11))

  /// Makes an animation of three colours, two of them with durations.
  private func animation() throws -> Image {
    let frames = try [[200, 0, 0], [0, 100, 0], [0, 0, 50]].map { try Drawing(of: $0, 12, 8).image() }
    return try Image(
      frames: frames, durations: [.milliseconds(70), .milliseconds(250)], loopCount: 3)
  }

  @Test("Each initializer keeps the scale and the limits, and has its defaults without them")
  func initializers() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("making-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let url = folder.appendingPathComponent("a")
    let file = try Drawing(gradientOf: 12, 8).file(.png)
    try file.write(to: url)
    let grey = Data(repeating: 7, count: 96)
    let given: [(String, Image)] = try [
      ("data", Image(data: file, scale: 3, limits: Self.limits)),
      ("file", Image(contentsOf: url, scale: 3, limits: Self.limits)),
      ("grey", Image(pixels: grey, width: 12, height: 8, format: .grey, scale: 3, limits: Self.limits)),
      ("rgb", Drawing(gradientOf: 12, 8).image(scale: 3, limits: Self.limits)),
      ("rgba", Drawing(gradientOf: 12, 8, bands: 4).image(scale: 3, limits: Self.limits)),
      (
        "frames",
        Image(frames: [
          Drawing(gradientOf: 12, 8).image(scale: 3, limits: Self.limits),
          Drawing(gradientOf: 12, 8).image(scale: 5),
        ])
      ),
    ]
    for (name, image) in given {
      #expect(image.scale == 3, "\(name)")
      #expect(image.limits == Self.limits, "\(name)")
      #expect(image.size == CGSize(width: 4, height: 8 / 3 as CGFloat), "\(name)")
      #expect((image.pixelWidth, image.pixelHeight) == (12, 8), "\(name)")
      #expect(image.format == (["data", "file"].contains(name) ? .png : nil), "\(name)")
    }
    let usual: [(String, Image)] = try [
      ("data", Image(data: file)), ("file", Image(contentsOf: url)),
      ("open file", Image(streaming: url, .default)),
      ("pixels", Image(pixels: grey, width: 12, height: 8, format: .grey)),
      ("frames", Image(frames: [Drawing(gradientOf: 12, 8).image()])),
    ]
    for (name, image) in usual {
      #expect(image.scale == 1, "\(name)")
      #expect(image.limits == .default, "\(name)")
    }
    #expect(try Image(streaming: url, Self.limits).limits == Self.limits)
    for scale in [0, -1, CGFloat.nan] { #expect(try Image(data: file, scale: scale).scale == 1, "\(scale)") }
    #expect(try Image(data: file, scale: 0.5).size == CGSize(width: 24, height: 16))
  }

  @Test("Pixels must have exactly the bytes of their format, and sides of one pixel at least")
  func pixelCounts() throws {
    for (format, bytes) in [(Image.PixelFormat.grey, 1), (.rgb, 3), (.rgba, 4)] {
      let count = 6 * bytes
      #expect(format.bytes == bytes)
      let image = try Image(pixels: Data(1...UInt8(count)), width: 3, height: 2, format: format)
      #expect(try image.pixels(as: format) == Data(1...UInt8(count)), "\(format)")
      #expect(image.af.containsAlphaComponent == (format == .rgba), "\(format)")
      for wrong in [count - 1, count + 1, 0, 2 * count] {
        #expect(throws: ImageError.invalidPixels, "\(wrong) bytes") {
          try Image(pixels: Data(count: wrong), width: 3, height: 2, format: format)
        }
      }
      for (width, height) in [(0, 2), (3, 0), (-3, -2), (-1, 2), (3, -1), (0, 0)] {
        #expect(throws: ImageError.invalidPixels, "\(width) × \(height)") {
          try Image(
            pixels: Data(count: max(0, width * height * bytes)), width: width, height: height, format: format)
        }
      }
    }
    let limits = ImageLimits(pixels: 6)
    #expect(
      try Image(pixels: Data(count: 6), width: 3, height: 2, format: .grey, limits: limits).limits == limits)
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 6, actual: 7)) {
      try Image(pixels: Data(count: 7), width: 7, height: 1, format: .grey, limits: limits)
    }
  }

  @Test("Pixels come in each format: without alpha, and as the luma that is nearest")
  func formats() throws {
    let colours: [([UInt8], UInt8)] = [
      ([255, 0, 0], 76), ([0, 255, 0], 150), ([0, 0, 255], 29), ([10, 0, 0], 3), ([0, 1, 0], 1),
      ([0, 0, 5], 1),
      ([195, 110, 216], 147), ([144, 238, 217], 208), ([0, 0, 250], 29), ([0, 0, 4], 0),
      ([200, 100, 50], 124), ([255, 255, 255], 255), ([1, 2, 3], 2), ([90, 200, 7], 145),
      ([1, 0, 1], 0), ([0, 255, 255], 179), ([255, 255, 0], 226), ([255, 0, 255], 105),
    ]
    for bands in [3, 4] {
      let drawing = Drawing(colours.count, 1, bands: bands) { x, _ in colours[x].0 + [UInt8(13 * x)] }
      let image = try drawing.image()
      #expect(try Array(image.pixels(as: .rgb)) == colours.flatMap(\.0), "\(bands)")
      #expect(try Array(image.pixels(as: .grey)) == colours.map(\.1), "\(bands)")
      #expect(
        try Array(image.pixels(as: .rgba))
          == colours.enumerated().flatMap { $1.0 + [bands == 4 ? UInt8(13 * $0) : 255] }, "\(bands)")
    }
    let animation = try animation()
    #expect(try animation.pixels(as: .rgba).count == 3 * 96 * 4)
    #expect(try animation.pixels(as: .rgb).count == 3 * 96 * 3)
    #expect(try Set(animation.pixels(as: .grey)) == [60, 59, 6])
  }

  @Test("A frame is a still image with the scale and the limits, and exists from 0 up to the count")
  func frames() throws {
    let first = try Drawing(of: [1, 2, 3], 4, 3).image(scale: 2, limits: Self.limits)
    let image = try Image(frames: [first, Drawing(of: [4, 5, 6, 7], 4, 3).image()], loopCount: 5)
    #expect((image.frameCount, image.loopCount, image.decodedByteCount) == (2, 5, 96))
    for (index, pixel) in [[1, 2, 3, 255], [4, 5, 6, 7]].enumerated() {
      let frame = try #require(try image.frame(index))
      #expect((frame.scale, frame.limits, frame.frameCount, frame.loopCount) == (2, Self.limits, 1, 0))
      #expect(frame.frameDurations.isEmpty)
      #expect(try frame.pixel(3, 2) == pixel.map { UInt8($0) })
      #expect(frame.decodedByteCount == 48)
    }
    for index in [-1, 2, 3, .max, .min] { #expect(try image.frame(index) == nil, "\(index)") }
  }

  @Test("An animation has the durations that are given, and 100 milliseconds where there is none")
  func durations() throws {
    let frame = try Drawing(of: [1, 2, 3], 2, 2).image()
    let usual = Duration.milliseconds(100)
    let cases: [([Duration], [Duration])] = [
      ([], [usual, usual, usual]), ([.milliseconds(7)], [.milliseconds(7), usual, usual]),
      (
        [.milliseconds(1), .milliseconds(2), .milliseconds(3)],
        [.milliseconds(1), .milliseconds(2), .milliseconds(3)]
      ),
      ([.zero, .milliseconds(9), .seconds(70)], [usual, .milliseconds(9), .seconds(70)]),
      ([.seconds(1), .seconds(2), .seconds(3), .seconds(4)], [.seconds(1), .seconds(2), .seconds(3)]),
    ]
    for (given, expected) in cases {
      #expect(try Image(frames: [frame, frame, frame], durations: given).frameDurations == expected)
    }
    #expect(try Image(frames: [frame], durations: [.seconds(1)]).frameDurations.isEmpty)
    for (given, expected) in [(-1, 0), (0, 0), (1, 1), (7, 7)] {
      #expect(try Image(frames: [frame, frame], loopCount: given).loopCount == expected)
    }
    #expect(try Image(frames: [frame, frame]).loopCount == 0)
  }

  @Test("Images are equal if their scales, sizes, frames and pixels are")
  func equality() throws {
    let frames = try [[1, 2, 3], [4, 5, 6], [7, 8, 9]].map { try Drawing(of: $0, 6, 4).image() }
    let image = try Image(frames: [frames[0], frames[1]])
    #expect(try image == Image(frames: [frames[0], frames[1]], durations: [.seconds(1)], loopCount: 3))
    #expect(try image != Image(frames: [frames[0], frames[2]]))
    #expect(try image != Image(frames: [frames[0], frames[1], frames[1]]))
    #expect(image != frames[0])
    for (width, height) in [(6, 8), (12, 4), (4, 6), (24, 1), (6, 3), (5, 4)] {
      #expect(try frames[0] != Drawing(of: [1, 2, 3], width, height).image(), "\(width) × \(height)")
    }
    let file = try frames[0].encode(as: .png)
    #expect(try Image(data: file) == Image(data: file))
    #expect(try Image(data: file) != Image(data: file, scale: 3))
    #expect(try Image(data: file) == frames[0])
    #expect(try Image(data: file) != frames[1])
    #expect(try Image(data: file) != Image(data: frames[1].encode(as: .png)))
    let damaged = try Image(data: file.prefix(file.count - 20))
    #expect(try damaged != Image(data: file.prefix(file.count - 21)), "neither can be decoded")
    #expect(damaged != frames[0])
    #expect(frames[0] != damaged)
  }

  @Test(
    "Each format with frames writes them all, with durations and loop, and the others the first",
    arguments: [ImageFormat.gif, .webp, .png, .jpeg, .tiff])
  func writtenFrames(format: ImageFormat) throws {
    let image = try animation()
    let read = try Image(data: image.encode(as: format, quality: 1, isLossless: true))
    #expect((read.pixelWidth, read.pixelHeight, read.format) == (12, 8, format))
    guard format == .gif || format == .webp else {
      #expect((read.frameCount, read.loopCount, read.frameDurations) == (1, 0, []))
      let pixel = try read.pixel(6, 4)
      #expect(pixel[0] > 190 && pixel[1] < 9 && pixel[2] < 9, "\(pixel)")
      return
    }
    #expect((read.frameCount, read.loopCount) == (3, 3))
    #expect(read.frameDurations == [.milliseconds(70), .milliseconds(250), .milliseconds(100)])
    for (index, colour) in [[200, 0, 0, 255], [0, 100, 0, 255], [0, 0, 50, 255]].enumerated() {
      #expect(try read.frame(index)?.pixel(6, 4) == colour.map { UInt8($0) }, "frame \(index)")
    }
    // It is the same after its pixels were decoded.
    #expect((read.frameCount, read.loopCount, read.frameDurations.count) == (3, 3, 3))
    #expect(read == image)
  }

  @Test(
    "A still image is written by formats with frames, too", arguments: [ImageFormat.gif, .webp, .png, .tiff])
  func writtenStill(format: ImageFormat) throws {
    let image = try Drawing(of: [10, 200, 30], 12, 8).image()
    let read = try Image(data: image.encode(as: format, isLossless: true))
    #expect((read.frameCount, read.loopCount, read.frameDurations) == (1, 0, []))
    #expect(read == image)
  }

  @Test("The quality goes from the least of the format to its best", arguments: [ImageFormat.jpeg, .webp])
  func quality(format: ImageFormat) throws {
    let image = try Drawing(64, 64, bands: 3) { x, y in
      [UInt8(x * y % 256), UInt8(x * 37 % 256), UInt8(y * 91 % 256)]
    }.image()
    let counts = try [0, 0.005, 0.3, 0.5, 0.8, 1].map { try image.encode(as: format, quality: $0).count }
    #expect(counts[0] == counts[1])
    #expect(zip(counts.dropFirst(), counts.dropFirst(2)).allSatisfy { $0 < $1 }, "\(counts)")
    guard format == .jpeg else { return }
    // The first number of the table of quantization is 16 with a quality of 50, and 1 with 100 (libjpeg).
    for (quality, number) in [(0.5 - 0.005, 16), (1, 1), (0, 255), (-3, 255), (0.9 - 0.001, 3), (0.008, 255)]
    {
      let file = try image.encode(as: .jpeg, quality: quality)
      let table = try #require(file.firstRange(of: Data([0xff, 0xdb])))
      #expect(Int(file[table.upperBound + 3]) == number, "\(quality)")
    }
    #expect(try image.encode(as: .jpeg) == image.encode(as: .jpeg, quality: 0.8))
  }

  @Test("An image without losses has each pixel, and one with losses has others")
  func lossless() throws {
    let image = try Drawing(64, 48, bands: 4) { x, y in
      [UInt8(x * y % 256), UInt8(x * 37 % 256), UInt8(y * 91 % 256), UInt8(100 + x)]
    }.image()
    let (exact, lossy) = try (image.encode(as: .webp, isLossless: true), image.encode(as: .webp))
    #expect(try Image(data: exact) == image)
    #expect(try Image(data: lossy) != image)
    for format in [ImageFormat.png, .tiff] {
      #expect(try Image(data: image.encode(as: format)) == image, "\(format)")
    }
  }

  @Test(
    "An image that is too wide for a format cannot be encoded, and a file that cannot be written says why")
  func failures() throws {
    let wide = try Drawing(of: [1, 2, 3], 70_000, 1).image()
    for format in [ImageFormat.jpeg, .webp, .gif] {
      #expect("\(format)") { try wide.encode(as: format) } throws: { error in
        if case .encodingFailed(let text)? = error as? ImageError { !text.isEmpty } else { false }
      }
    }
    let missing = FileManager.default.temporaryDirectory.appendingPathComponent(
      "none-\(UUID().uuidString)/a.png")
    #expect { try Drawing(gradientOf: 3, 3).image().write(to: missing, as: .png) } throws: { error in
      if case .fileFailed(let text)? = error as? ImageError { !text.isEmpty } else { false }
    }
    let damaged = try Image(data: Drawing(gradientOf: 200, 200).file(.png).prefix(900))
    #expect { try damaged.write(to: missing, as: .png) } throws: { error in
      if case .damaged? = error as? ImageError { true } else { false }
    }
  }

  @Test("An encoding that takes longer than its limit ends with it, and not as a failure of the format")
  func timeOfEncoding() throws {
    let image = try Image(
      pixels: Data(repeating: 7, count: 490_000), width: 700, height: 700, format: .grey,
      limits: ImageLimits(time: .seconds(-2)))
    for format in [ImageFormat.png, .webp] {
      let end = ContinuousClock.now + .seconds(60)
      // The image is watched from another thread, which may look after it is encoded.
      #expect("\(format)") {
        while ContinuousClock.now < end { _ = try image.encode(as: format, isLossless: true) }
      } throws: { error in
        if case .limitExceeded(.time, limit: -2_000, actual: _)? = error as? ImageError {
          true
        } else {
          false
        }
      }
    }
  }
}
