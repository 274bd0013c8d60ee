import Alamofire
@testable import AlamofireImage
import Foundation
import Testing

@Suite("Results of changes, and what they keep")
struct ImageResultsTests {
  private let size = CGSize(width: 10, height: 10)

  @Test("All that is made from an image has its limits")
  func limits() throws {
    let limits = ImageLimits(pixels: 1_000, frames: 3)
    let image = try Drawing(gradientOf: 30, 20).image(limits: limits)
    let results = [
      image.af.imageScaled(to: size), image.af.imageAspectScaled(toFit: size),
      image.af.imageAspectScaled(toFill: size), image.af.imageRounded(withCornerRadius: 4),
      image.af.imageRoundedIntoCircle(), try BlurFilter(blurRadius: 2).apply(image), try image.placeholder(),
      try #require(try image.frame(0)),
      try #require(try ImageVariants(.init("a", longestSide: 5)).make(of: image)["a"]),
    ]
    for (index, result) in results.enumerated() { #expect(result.limits == limits, "result \(index)") }
  }

  @Test("What is stretched on the way to a size keeps to the limits, too")
  func stretchedLimit() throws {
    let content = try Drawing(gradientOf: 60, 10).image(limits: ImageLimits(pixels: 1_000)).content
    let plan = ScalingPlan(.fill, fromWidth: 60, height: 10, toWidth: 30, height: 30)
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 1_000, actual: 180 * 30)) {
      try content.stretched(width: plan.width, height: plan.height)
    }
    // It is cut first, so that less is stretched.
    #expect(try Image.scaled(content, plan).layout.byteCount == 30 * 30 * 3)
  }

  @Test("A number of pixels whose bytes cannot be counted exceeds any limit")
  func largestLimit() {
    #expect(throws: ImageError.limitExceeded(.pixels, limit: .max / 8, actual: .max / 8 + 1)) {
      try ImageLimits(pixels: .max).check(width: .max / 8 + 1, height: 1, frames: 1)
    }
  }

  @Test("What runs on another thread has the time of the image")
  func time() async throws {
    let image = try Drawing(gradientOf: 4, 4).image(limits: ImageLimits(time: .seconds(-1)))
    let variants = ImageVariants(.init("a", longestSide: 4))
    let calls: [(String, () async throws -> Void)] = [
      ("inflated", { _ = try await image.inflated() }),
      ("encoded", { _ = try await image.encoded(as: .png) }),
      ("images of variants", { _ = try await variants.images(of: image) }),
      ("files of variants", { _ = try await variants.files(of: image, as: .png) }),
    ]
    for (name, call) in calls {
      await #expect("\(name)") { try await call() } throws: { error in
        if case .limitExceeded(.time, limit: -1_000, actual: _)? = error as? ImageError {
          true
        } else {
          false
        }
      }
    }
  }

  @Test("An image that is fitted into a size has alpha, also if it fills the size")
  func alphaOfFitted() throws {
    let image = try Drawing(gradientOf: 30, 20).image()
    for size in [CGSize(width: 15, height: 10), CGSize(width: 30, height: 20), size] {
      let fitted = image.af.imageAspectScaled(toFit: size)
      #expect(fitted.af.containsAlphaComponent, "\(size)")
      #expect(try fitted.pixel(fitted.pixelWidth / 2, fitted.pixelHeight / 2)[3] == 255, "\(size)")
      #expect(image.af.imageAspectScaled(toFill: size).af.isOpaque, "\(size)")
      #expect(image.af.imageScaled(to: size).af.isOpaque, "\(size)")
    }
  }

  @Test("A side that follows from the other is the nearest number of pixels")
  func nearestSides() throws {
    let image = try Drawing(gradientOf: 30, 20).image()
    for (side, height) in [(16, 11), (20, 13), (1, 1)] {
      let result = try ImageVariants(.init("a", longestSide: side)).make(of: image)["a"]
      #expect((result?.pixelWidth, result?.pixelHeight) == (side, height))
    }
    let fitted = ScalingPlan(.fit, fromWidth: 30, height: 20, toWidth: 16, height: 16)
    #expect((fitted.width, fitted.height, fitted.x, fitted.y) == (16, 11, 0, 2))
    let filling = ScalingPlan(.fill, fromWidth: 30, height: 20, toWidth: 17, height: 17)
    #expect((filling.width, filling.height, filling.x, filling.y) == (26, 17, -4, 0))
  }

  @Test("A frame is cut before it is stretched if it would become over eight times larger than its canvas")
  func regions() throws {
    func region(_ width: Int, _ height: Int) -> [Int]? {
      ScalingPlan(.fill, fromWidth: width, height: height, toWidth: 10, height: 10)
        .region(ofWidth: width, height: height).map { [$0.x, $0.y, $0.width, $0.height] }
    }
    #expect(region(80, 10) == nil)
    #expect(region(10, 80) == nil)
    #expect(region(81, 10) == [35, 0, 10, 10])
    #expect(region(10, 81) == [0, 35, 10, 10])
    #expect(region(162, 20) == [71, 0, 20, 20])
  }

  @Test("A circle is cut out of the middle", arguments: [false, true])
  func centredCircle(isTall: Bool) throws {
    let drawing = Drawing(isTall ? 20 : 60, isTall ? 60 : 20, bands: 3) { x, y in
      (20..<40).contains(isTall ? y : x) ? [0, 255, 0] : [255, 0, 0]
    }
    let circle = try drawing.image().af.imageRoundedIntoCircle()
    #expect((circle.pixelWidth, circle.pixelHeight) == (20, 20))
    for (x, y) in [(10, 10), (1, 10), (18, 10), (10, 1), (10, 18)] {
      #expect(try circle.pixel(x, y) == [0, 255, 0, 255], "(\(x), \(y))")
    }
  }

  @Test("A circle of an odd diameter reaches all sides, and no pixel is masked twice")
  func oddCircle() throws {
    let side = 31
    let circle = try Drawing(of: [1, 2, 3], side, side).image().af.imageRoundedIntoCircle()
    let alphas = try circle.pixels(as: .rgba).enumerated().filter { $0.offset % 4 == 3 }.map(\.element)
    let area = alphas.reduce(0) { $0 + Double($1) } / 255
    #expect(abs(area - .pi * 15.5 * 15.5) < 2, "\(area)")
    let shape = RoundedRectangle(width: side, height: side, radius: 15.5)
    for row in 0..<side {
      let partial = shape.partialColumns(ofRow: row)
      #expect(partial == Set(partial).sorted(), "row \(row)")
      #expect(partial.first == 0 && partial.last == side - 1, "row \(row)")
      for column in 0..<side {
        if !partial.contains(column) { #expect(alphas[row * side + column] == 255, "(\(column), \(row))") }
        #expect(Int(alphas[row * side + column]) == shape.coverage(column: column, row: row))
      }
    }
  }

  @Test("Each frame of an animation is rounded, and keeps its duration on a canvas")
  func frames() throws {
    let frames = try [Drawing(of: [255, 0, 0], 20, 16).image(), Drawing(of: [0, 255, 0], 20, 16).image()]
    let durations: [Duration] = [.milliseconds(70), .milliseconds(90)]
    let image = try Image(frames: frames, durations: durations, loopCount: 2)
    let rounded = image.af.imageRounded(withCornerRadius: 8)
    for index in 0..<2 {
      let frame = try #require(try rounded.frame(index))
      for (x, y) in [(0, 0), (19, 0), (0, 15), (19, 15)] {
        #expect(try frame.pixel(x, y)[3] == 0, "frame \(index), (\(x), \(y))")
      }
      #expect(try frame.pixel(10, 8)[3] == 255, "frame \(index)")
    }
    #expect(rounded.frameDurations == durations)
  }

  @Test("Alpha that is added to an animation leaves its durations and its loop")
  func addedAlpha() throws {
    let layout = PixelLayout(width: 2, height: 1, frames: 2, bands: 3)
    let pixels = try PixelBuffer(layout, delays: [70, 90], loop: 3) { $0.copyBytes(from: 1...12) }
    let changed = try pixels.withAlpha()
    #expect(changed.delays == [70, 90])
    #expect(changed.loop == 3)
    #expect(Array(changed.data) == [1, 2, 3, 255, 4, 5, 6, 255, 7, 8, 9, 255, 10, 11, 12, 255])
  }

  @Test("Frames of an animation have the height of the first one")
  func otherHeight() throws {
    let frames = try [Drawing(of: [1, 2, 3], 4, 3).image(), Drawing(of: [1, 2, 3], 4, 2).image()]
    #expect(throws: ImageError.invalidPixels) { try Image(frames: frames) }
    #expect(throws: ImageError.invalidPixels) { try Image(frames: frames.reversed()) }
  }

  @Test("Durations are the nearest milliseconds, within their bounds, and a negative loop has no end")
  func durations() throws {
    let frame = try Drawing(of: [1, 2, 3], 4, 3).image()
    let durations: [Duration] = [
      .microseconds(1_600), .microseconds(1_400), .zero, .milliseconds(-5), .seconds(Int64.max),
      .seconds(1),
    ]
    let image = try Image(frames: Array(repeating: frame, count: 5), durations: durations, loopCount: -3)
    let longest = Duration.milliseconds(Int(Int32.max))
    #expect(
      image.frameDurations
        == [.milliseconds(2), .milliseconds(1), .milliseconds(100), .milliseconds(100), longest])
    #expect(image.loopCount == 0)
    #expect(try image.content.decoded().delays.count == 5, "the sixth has no frame")
  }

  @Test("An animation is made of the first frames of others, and keeps to the limits of the first")
  func nestedFrames() throws {
    let frames = try [Drawing(of: [200, 0, 0], 4, 3).image(), Drawing(of: [0, 100, 0], 4, 3).image()]
    let image = try Image(frames: [frames[1], Image(frames: frames)])
    #expect(try image.frame(0)?.pixel(0, 0) == [0, 100, 0, 255])
    #expect(try image.frame(1)?.pixel(0, 0) == [200, 0, 0, 255])
    let limited = try Drawing(of: [200, 0, 0], 4, 3).image(limits: ImageLimits(frames: 1))
    #expect(throws: ImageError.limitExceeded(.frames, limit: 1, actual: 2)) {
      try Image(frames: [limited, frames[0]])
    }
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 11, actual: 12)) {
      try Drawing(of: [200, 0, 0], 4, 3).image(limits: ImageLimits(pixels: 11))
    }
    #expect(frames[0].frameDurations.isEmpty, "a still image has no durations")
  }

  @Test("Two images of the same damaged file are equal")
  func sameDamage() throws {
    let file = try Drawing(gradientOf: 200, 200).file(.png)
    let damaged = file.prefix(file.count / 2)
    #expect(try Image(data: damaged) == Image(data: damaged))
    #expect(try Image(data: damaged) != Image(data: damaged, scale: 2))
    #expect(try Image(data: damaged) != Image(data: file))
  }

  @Test("The head of an animation tells whether one of its frames has alpha", arguments: [false, true])
  func alphaOfAnimations(isFirst: Bool) throws {
    let (opaque, clear) = try (
      Drawing(of: [1, 2, 3, 255], 4, 3).image(), Drawing(of: [1, 2, 3, 0], 4, 3).image()
    )
    let frames = isFirst ? [clear, opaque] : [opaque, clear]
    for format in [ImageFormat.gif, .webp] {
      let file = try Image(frames: frames).encode(as: format, isLossless: true)
      let image = try Image(data: file)
      #expect(!image.af.isInflated)
      #expect(image.af.containsAlphaComponent, "\(format)")
      image.af.inflate()
      #expect(image.frameCount == 2 && image.af.containsAlphaComponent, "\(format)")
      #expect(try image.frame(isFirst ? 0 : 1)?.pixel(1, 1)[3] == 0, "\(format)")
    }
  }

  @Test("Pixels with another size or number of frames than the head says are damage")
  func mismatch() throws {
    let content = try Drawing(gradientOf: 4, 3).image().content
    let layout = PixelLayout(width: 4, height: 3, frames: 1, bands: 3)
    #expect(try content.checked(PixelBuffer(layout) { _ in }, width: 4, height: 3).layout == layout)
    for (width, height, frames) in [(3, 3, 1), (4, 2, 1), (4, 3, 2)] {
      let other = PixelLayout(width: width, height: height, frames: frames, bands: 3)
      #expect(throws: ImageError.self, "\(other)") {
        try content.checked(PixelBuffer(other) { _ in }, width: 4, height: 3)
      }
    }
  }

  @Test("The average of an animation is that of its first frame")
  func averageOfAnimation() throws {
    let frames = try [Drawing(of: [200, 0, 0], 3, 3).image(), Drawing(of: [0, 100, 0], 3, 3).image()]
    #expect(try Image(frames: frames).averageColor() == ImageColor(red: 200, green: 0, blue: 0))
  }

  @Test("A variant of an exact size is filled, not stretched")
  func filledVariant() throws {
    let image = try Drawing(60, 20, bands: 3) { x, _ in (20..<40).contains(x) ? [0, 255, 0] : [255, 0, 0] }
      .image()
    let result = try #require(try ImageVariants(.init("a", width: 20, height: 20)).make(of: image)["a"])
    for x in [0, 10, 19] { #expect(try result.pixel(x, 10) == [0, 255, 0, 255], "column \(x)") }
  }
}

@Suite("Files of images")
struct ImageFilesTests {
  @Test("The files of variants have the quality that was asked for")
  func quality() async throws {
    let image = try Drawing(gradientOf: 60, 40).image()
    let variants = ImageVariants(.init("a", longestSide: 60))
    for quality in [0.1, 0.95] {
      let files = try await variants.files(of: image, as: .jpeg, quality: quality)
      #expect(try files["a"] == image.encode(as: .jpeg, quality: quality), "\(quality)")
    }
  }

  @Test("A file that is encoded on another thread, or written, is the same")
  func encoded() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("images-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("a")
    let image = try Drawing(gradientOf: 60, 40).image()
    let choices: [(ImageFormat, Double, Bool)] = [
      (.jpeg, 0.1, false), (.jpeg, 0.95, false), (.webp, 0.1, false), (.webp, 0.1, true), (.png, 0.5, false),
    ]
    for (format, quality, isLossless) in choices {
      let expected = try image.encode(as: format, quality: quality, isLossless: isLossless)
      #expect(
        try await image.encoded(as: format, quality: quality, isLossless: isLossless) == expected,
        "\(format), \(quality), \(isLossless)")
      try image.write(to: file, as: format, quality: quality, isLossless: isLossless)
      #expect(try Data(contentsOf: file) == expected, "\(format), \(quality), \(isLossless)")
    }
    let usual = try image.encode(as: .jpeg, quality: 0.8)
    #expect(try image.encode(as: .jpeg) == usual)
    #expect(try await image.encoded(as: .jpeg) == usual)
    try image.write(to: file, as: .jpeg)
    #expect(try Data(contentsOf: file) == usual)
  }

  @Test("A data URL has the type of its format, and the quality that was asked for")
  func dataURLs() throws {
    let image = try Drawing(gradientOf: 60, 40).image()
    for (format, type) in [(ImageFormat.jpeg, "image/jpeg"), (.webp, "image/webp"), (.png, "image/png")] {
      for quality in [0.1, 0.5, 0.95] {
        let file = try image.encode(as: format, quality: quality)
        let url = "data:\(type);base64,\(file.base64EncodedString())"
        #expect(try image.dataURL(as: format, quality: quality) == url, "\(format), \(quality)")
        if quality == 0.5 { #expect(try image.dataURL(as: format) == url, "\(format)") }
      }
    }
  }

  @Test("Where a format has no transparency, what is behind the image is black")
  func background() throws {
    let image = try Drawing(32, 16, bands: 4) { x, _ in x < 16 ? [255, 255, 255, 0] : [255, 255, 255, 255] }
      .image()
    let read = try Image(data: image.encode(as: .jpeg, quality: 1))
    #expect(try read.pixel(4, 8).prefix(3).allSatisfy { $0 < 8 })
    #expect(try read.pixel(28, 8).prefix(3).allSatisfy { $0 > 247 })
  }

  @Test("An image from a file has the scale and the limits that were asked for")
  func scaleOfFile() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("images-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("a.png")
    try Drawing(gradientOf: 30, 20).image().write(to: file, as: .png)
    let limits = ImageLimits(pixels: 1_000)
    let image = try Image(contentsOf: file, scale: 2, limits: limits)
    #expect(image.size == CGSize(width: 15, height: 10))
    #expect(image.limits == limits)
    #expect(try Image(contentsOf: file).scale == 1)
  }

  @Test("The least quality above 0 can be written, too", arguments: [ImageFormat.jpeg, .webp])
  func leastQuality(format: ImageFormat) throws {
    let image = try Drawing(gradientOf: 30, 20).image()
    #expect(try image.encode(as: format, quality: 0.001) == image.encode(as: format, quality: 0))
  }

  @Test("A file is written without losses if that is asked for, and read through a symbolic link")
  func losslessFile() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("images-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (file, link) = (folder.appendingPathComponent("a.webp"), folder.appendingPathComponent("b.webp"))
    let image = try Drawing(33, 21, bands: 3) { x, y in [UInt8(x * 7), UInt8(y * 11), UInt8(x * y % 256)] }
      .image()
    try image.write(to: file, as: .webp, quality: 0.1, isLossless: true)
    #expect(try Image(contentsOf: file) == image)
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
    #expect(try Image(contentsOf: link) == image)
  }

  @Test("The scans of a JPEG file are counted up to its end, whatever its segments contain")
  func scans() throws {
    func count(_ bytes: [UInt8]) throws -> Int { try FileStructure.parts(ofJPEG: reading(bytes)).scans }
    let start: [UInt8] = [0xff, 0xd8]
    let scan: [UInt8] = [0xff, 0xda, 0, 2, 1, 2, 3]
    #expect(try count(start + scan + [0xff, 0xd9] + scan) == 1, "a scan after the end")
    #expect(
      try count(start + scan + [0xff, 0xd9, 0, 2] + scan) == 1, "what follows the end is not its length")
    #expect(try count(start + [0xff, 0xda, 0, 2]) == 1, "the last four bytes")
    #expect(try count(start + [0xff, 0xda, 0]) == 0, "an incomplete length")
    #expect(try count([]) == 0)
    let inside = Array(repeating: [0xff, 0xda] as [UInt8], count: 128).flatMap { $0 }
    #expect(try count(start + [0xff, 0xe1, 1, 2] + inside + scan) == 1, "scans inside of a segment")
    #expect(try count(start + [0xff, 0xe1, 0, 0] + scan) == 1, "a length that does not count itself")
    for marker in [0x00, 0x01, 0xd8] as [UInt8] {
      #expect(try count(start + scan + [0xff, marker, 0, 40] + scan) == 2, "marker \(marker) has no length")
    }
  }

  @Test("The size of a chunk of a WebP file has four bytes, the least one first")
  func chunkSizes() {
    let frame = Array("ANMF".utf8) + [0, 0, 0, 0]
    for size in [[0x08, 0x01, 0, 0], [0x06, 0x02, 0x01, 0]] as [[UInt8]] {
      let count = Int(size[0]) | Int(size[1]) << 8 | Int(size[2]) << 16
      let file =
        Array("RIFF\0\0\0\0WEBPEXIF".utf8) + size + [UInt8](repeating: 0xff, count: count) + frame + frame
      #expect(file.withUnsafeBytes { FileStructure.frames(ofWebP: $0) } == 2, "\(size)")
      #expect(file.dropLast().withUnsafeBytes { FileStructure.frames(ofWebP: $0) } == 1, "\(size), cut off")
    }
  }

  @Test("A colour profile without a complete head fits nothing")
  func shortProfile() {
    // The head has 128 bytes. The count of tags is behind it.
    let profile = [UInt8](repeating: 0, count: 16) + Array("RGB ".utf8) + [UInt8](repeating: 0, count: 112)
    #expect(profile.withUnsafeBytes { FileStructure.profile($0, fits: 3) })
    #expect(!profile.dropLast().withUnsafeBytes { FileStructure.profile($0, fits: 3) })
    #expect(!profile.prefix(20).withUnsafeBytes { FileStructure.profile($0, fits: 3) })
    #expect(!profile.prefix(0).withUnsafeBytes { FileStructure.profile($0, fits: 3) })
  }

  @Test("Restart markers of a JPEG file have no length")
  func restartMarkers() throws {
    let scan: [UInt8] = [0xff, 0xda, 0, 2, 1, 2, 3]
    for marker in UInt8(0xd0)...0xd7 {
      // The bytes after the marker are samples. As a length, they would lead past the next scan.
      let file = [0xff, 0xd8] + scan + [0xff, marker, 0, 40] + scan + [0xff, 0xd9]
      #expect(try FileStructure.parts(ofJPEG: reading(file)).scans == 2, "marker \(marker)")
    }
  }
}
