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
    let image = try Drawing(gradientOf: 60, 10).image(limits: ImageLimits(pixels: 1_000))
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 1_000, actual: 180 * 30)) {
      try AspectScaledToFillSizeFilter(size: CGSize(width: 30, height: 30)).apply(image)
    }
  }

  @Test("A number of pixels whose bytes cannot be counted exceeds any limit")
  func largestLimit() {
    #expect(throws: ImageError.limitExceeded(.pixels, limit: .max / 8, actual: .max / 8 + 1)) {
      try ImageLimits(pixels: .max).check(width: .max / 8 + 1, height: 1, frames: 1)
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
      #expect(shape.partialColumns(ofRow: row) == Array(0..<side))
      for column in 0..<side {
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

  @Test("Restart markers of a JPEG file have no length")
  func restartMarkers() {
    let scan: [UInt8] = [0xff, 0xda, 0, 2, 1, 2, 3]
    for marker in UInt8(0xd0)...0xd7 {
      // The bytes after the marker are samples. As a length, they would lead past the next scan.
      let file = [0xff, 0xd8] + scan + [0xff, marker, 0, 40] + scan + [0xff, 0xd9]
      #expect(file.withUnsafeBytes { FileStructure.scans(ofJPEG: $0) } == 2, "marker \(marker)")
    }
  }
}
