@testable import AlamofireImage
import Foundation
import Testing

@Suite("Pixels in memory")
struct PixelBufferTests {
  private typealias Pixel = [UInt8]

  /// Makes frames whose samples all differ from their neighbours, with durations and a loop.
  private func buffer(_ width: Int, _ height: Int, frames: Int = 2, bands: Int) throws -> PixelBuffer {
    let layout = PixelLayout(width: width, height: height, frames: frames, bands: bands)
    return try PixelBuffer(layout, delays: (1...Int32(frames)).map { $0 * 10 }, loop: 3) { target in
      for index in target.indices { target[index] = UInt8(truncatingIfNeeded: 1 + index * 7) }
    }
  }

  /// Returns a pixel with alpha.
  private func pixel(_ pixels: PixelBuffer, _ frame: Int, _ x: Int, _ y: Int) -> Pixel {
    let layout = pixels.layout
    let start = ((frame * layout.height + y) * layout.width + x) * layout.bands
    let samples = Array(pixels.data)[start..<start + layout.bands]
    return Array(samples) + (layout.bands == 3 ? [255] : [])
  }

  private func expectSameAnimation(_ pixels: PixelBuffer, _ frames: Int, _ name: Comment) {
    #expect(pixels.layout.frames == frames, name)
    #expect(pixels.delays == (1...Int32(frames)).map { $0 * 10 }, name)
    #expect(pixels.loop == 3, name)
  }

  @Test("The dimensions follow from each other")
  func layout() {
    let layout = PixelLayout(width: 5, height: 3, frames: 2, bands: 4)
    #expect((layout.rowBytes, layout.frameBytes, layout.byteCount) == (20, 60, 120))
    #expect(layout.hasAlpha)
    #expect(!PixelLayout(width: 5, height: 3, frames: 2, bands: 3).hasAlpha)
  }

  @Test("Each pixel of each frame is at its place on a canvas", arguments: [3, 4], [1, 2])
  func placing(bands: Int, frames: Int) throws {
    let source = try buffer(4, 3, frames: frames, bands: bands)
    for (width, height) in [(4, 3), (2, 2), (4, 5), (6, 3), (7, 6), (4, 1), (1, 3), (3, 8), (9, 2)] {
      for x in -3...3 {
        for y in -3...3 {
          let name: Comment = "(\(x), \(y)) on \(width) × \(height)"
          let placed = try source.placed(x: x, y: y, width: width, height: height)
          #expect((placed.layout.width, placed.layout.height) == (width, height), name)
          expectSameAnimation(placed, frames, name)
          let covers = x <= 0 && y <= 0 && x + 4 >= width && y + 3 >= height
          #expect(placed.layout.hasAlpha == (bands == 4 || !covers), name)
          var expected: [Pixel] = []
          var found: [Pixel] = []
          for frame in 0..<frames {
            for row in 0..<height {
              for column in 0..<width {
                let isInside = (0..<4).contains(column - x) && (0..<3).contains(row - y)
                expected.append(isInside ? pixel(source, frame, column - x, row - y) : [0, 0, 0, 0])
                found.append(pixel(placed, frame, column, row))
              }
            }
          }
          #expect(found == expected, name)
        }
      }
    }
  }

  @Test("Pixels that are placed where they are, or that have alpha, are not copied")
  func sameBuffer() throws {
    let (opaque, clear) = (try buffer(4, 3, bands: 3), try buffer(4, 3, bands: 4))
    #expect(try opaque.placed(x: 0, y: 0, width: 4, height: 3) === opaque)
    #expect(try clear.withAlpha() === clear)
    #expect(try opaque.withAlpha() !== opaque)
  }

  @Test("Added alpha is opaque, and leaves the colours", arguments: [1, 2, 3])
  func addedAlpha(frames: Int) throws {
    let source = try buffer(3, 2, frames: frames, bands: 3)
    let changed = try source.withAlpha()
    #expect(changed.layout == PixelLayout(width: 3, height: 2, frames: frames, bands: 4))
    expectSameAnimation(changed, frames, "\(frames)")
    for frame in 0..<frames {
      for (x, y) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
        #expect(pixel(changed, frame, x, y) == pixel(source, frame, x, y), "\(frame): (\(x), \(y))")
      }
    }
  }

  @Test("A mask multiplies the alpha of each frame, rounded, and leaves the colours", arguments: [3, 4])
  func masking(bands: Int) throws {
    let source = try buffer(9, 7, bands: bands)
    let mask = RoundedRectangle(width: 9, height: 7, radius: 3)
    let masked = try source.masked(mask)
    expectSameAnimation(masked, 2, "masked")
    for frame in 0..<2 {
      for row in 0..<7 {
        for column in 0..<9 {
          var expected = pixel(source, frame, column, row)
          let share = Double(mask.coverage(column: column, row: row)) / 255
          expected[3] = UInt8((Double(expected[3]) * share).rounded())
          #expect(pixel(masked, frame, column, row) == expected, "\(frame): (\(column), \(row))")
        }
      }
    }
  }

  @Test("A frame has its bytes, and neither durations nor a loop")
  func frames() throws {
    let source = try buffer(3, 2, frames: 3, bands: 4)
    for index in 0..<3 {
      let frame = try source.frame(index)
      #expect(frame.layout == PixelLayout(width: 3, height: 2, frames: 1, bands: 4))
      #expect(frame.data == source.data[index * 24..<index * 24 + 24])
      #expect(frame.delays.isEmpty && frame.loop == 0)
    }
  }

  @Test("Frames are changed one by one, and put together in their order", arguments: [1, 2, 3])
  func mapping(frames: Int) throws {
    let source = try buffer(3, 2, frames: frames, bands: 3)
    var sizes: [Int] = []
    let changed = try source.mapFrames { frame throws(ImageError) in
      sizes.append(frame.layout.frames)
      return try PixelBuffer(
        PixelLayout(width: 1, height: 1, frames: 1, bands: 3), delays: frame.delays, loop: frame.loop
      ) { $0.copyBytes(from: [UInt8(sizes.count), frame.data[0], 9]) }
    }
    #expect(sizes == Array(repeating: 1, count: frames))
    #expect(changed.layout == PixelLayout(width: 1, height: 1, frames: frames, bands: 3))
    expectSameAnimation(changed, frames, "\(frames)")
    let expected = (0..<frames).flatMap { [UInt8($0 + 1), source.data[$0 * 18], 9] as [UInt8] }
    #expect(Array(changed.data) == expected)
  }

  @Test("Frames that differ in size after their change are damage")
  func differentFrames() throws {
    let source = try buffer(3, 2, frames: 2, bands: 3)
    for (width, height, bands) in [(2, 1, 3), (1, 2, 3), (1, 1, 4)] {
      var isFirst = true
      #expect(throws: ImageError.damaged("the frames differ in size")) {
        try source.mapFrames { _ throws(ImageError) in
          defer { isFirst = false }
          let layout =
            isFirst
            ? PixelLayout(width: 1, height: 1, frames: 1, bands: 3)
            : PixelLayout(width: width, height: height, frames: 1, bands: bands)
          return try PixelBuffer(layout) { _ in }
        }
      }
    }
  }

  @Test("The error of what fills pixels is passed on")
  func failingFill() {
    #expect(throws: ImageError.cancelled) {
      try PixelBuffer(PixelLayout(width: 2, height: 2, frames: 1, bands: 3)) { _ throws(ImageError) in
        throw .cancelled
      }
    }
  }

  @Test("Pixels are equal if they show the same, and their durations do not count")
  func equality() throws {
    func buffer(
      _ width: Int, _ height: Int, _ frames: Int, _ bands: Int, _ change: (inout [UInt8]) -> Void = { _ in }
    ) throws -> PixelBuffer {
      var samples: [UInt8] = []
      for _ in 0..<width * height * frames { samples += [1, 2, 3, 255].prefix(bands) }
      change(&samples)
      return try PixelBuffer(PixelLayout(width: width, height: height, frames: frames, bands: bands)) {
        $0.copyBytes(from: samples)
      }
    }
    let one = try buffer(2, 2, 2, 3)
    #expect(try one.isEqual(to: buffer(2, 2, 2, 3)))
    #expect(try one.isEqual(to: buffer(2, 2, 2, 4)))
    #expect(try buffer(2, 2, 2, 4).isEqual(to: one))
    // The same bytes in other dimensions.
    for (width, height, frames) in [(4, 1, 2), (1, 4, 2), (2, 1, 4), (2, 4, 1), (4, 2, 1), (1, 2, 4)] {
      for bands in [3, 4] {
        #expect(
          try !one.isEqual(to: buffer(width, height, frames, bands)), "\(width) × \(height) × \(frames)")
      }
    }
    for place in [0, 1, 2, 11, 12, 23] {
      #expect(try !one.isEqual(to: buffer(2, 2, 2, 3) { $0[place] = 9 }), "sample \(place)")
    }
    for place in [0, 3, 15, 31] {
      #expect(try !one.isEqual(to: buffer(2, 2, 2, 4) { $0[place] = 254 }), "sample \(place) with alpha")
    }
  }

  @Test("What libvips returns of pixels are these, with their frames, durations and loop", arguments: [3, 4])
  func throughLibrary(bands: Int) throws {
    for frames in 1...3 {
      // More rows than are computed at a time, and no multiple of these.
      let source = try buffer(5, 37, frames: frames, bands: bands)
      let work = ImageWork(limit: .seconds(60))
      let result = try source.withImage(work) { image throws(ImageError) in
        let isInterlaced = image.isInterlaced
        #expect(!isInterlaced)
        return try image.pixels(work)
      }
      #expect(result.layout == source.layout)
      #expect(result.data == source.data)
      // A still image has neither durations nor a loop.
      if frames > 1 { expectSameAnimation(result, frames, "\(frames)") }
    }
  }
}
