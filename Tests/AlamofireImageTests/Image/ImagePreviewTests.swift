@testable import AlamofireImage
import Foundation
import Testing

@Suite("Averages, placeholders and variants")
struct ImagePreviewTests {
  @Test("Each sample of an average is the nearest one, weighted by the opacity")
  func averages() throws {
    let cases: [([[UInt8]], [UInt8])] = [
      ([[0, 0, 0, 255], [1, 3, 5, 255]], [1, 2, 3, 255]),
      ([[10, 20, 30, 255], [10, 20, 30, 255]], [10, 20, 30, 255]),
      ([[0, 0, 0, 255], [0, 0, 0, 255], [1, 2, 4, 255]], [0, 1, 1, 255]),
      ([[0, 0, 0, 255], [1, 1, 1, 255], [1, 1, 1, 255]], [1, 1, 1, 255]),
      ([[100, 0, 200, 50], [200, 100, 0, 150]], [175, 75, 50, 100]),
      ([[9, 8, 7, 0], [6, 5, 4, 0]], [0, 0, 0, 0]),
      ([[9, 8, 7, 1], [6, 5, 4, 0]], [9, 8, 7, 1]),
      ([[9, 8, 7, 1], [6, 5, 4, 0], [6, 5, 4, 0]], [9, 8, 7, 0]),
      ([[255, 255, 255, 255]], [255, 255, 255, 255]), ([[7, 0, 9, 254], [7, 0, 9, 255]], [7, 0, 9, 255]),
    ]
    for (pixels, expected) in cases {
      for isTall in [false, true] {
        let drawing = Drawing(isTall ? 1 : pixels.count, isTall ? pixels.count : 1, bands: 4) {
          pixels[$0 + $1]
        }
        let colour = try drawing.image().averageColor()
        #expect([colour.red, colour.green, colour.blue, colour.alpha] == expected, "\(pixels)")
      }
    }
  }

  @Test("The average of a large image is that of all its parts")
  func largeAverage() throws {
    let image = try Drawing(200, 100, bands: 3) { x, y in [x < 50 ? 200 : 0, y < 25 ? 200 : 0, 40] }.image()
    let colour = try image.averageColor()
    #expect(abs(Int(colour.red) - 50) <= 1 && abs(Int(colour.green) - 50) <= 1, "\(colour)")
    #expect((colour.blue, colour.alpha) == (40, 255))
  }

  @Test(
    "A placeholder is the blurred image in its size, with a scale of 1",
    arguments: [(300, 150), (150, 300), (30, 30), (12, 9)])
  func placeholders(width: Int, height: Int) throws {
    let image = try Drawing(gradientOf: width, height).image(scale: 3)
    let longest = max(width, height)
    for (side, expected) in [
      (-5, 1), (0, 1), (1, 1), (2, 2), (20, 20), (99, 99), (100, 100), (101, 100), (.max, 100),
    ] {
      let size = ScalingPlan.shrinking(width: width, height: height, toSide: expected)
      let placeholder = try image.placeholder(longestSide: side)
      #expect(max(placeholder.pixelWidth, placeholder.pixelHeight) == min(expected, longest), "\(side)")
      let small = try Image(
        image.content.stretched(width: size.width, height: size.height), like: image, scale: 1)
      #expect(try placeholder == small.blurred(sigma: 1), "\(side)")
      #expect(placeholder.scale == 1)
    }
    #expect(try image.placeholder() == image.placeholder(longestSide: 20))
  }

  @Test("A data URL is the file of the image in base 64")
  func dataURLs() throws {
    let image = try Drawing(gradientOf: 9, 7).image()
    for format in [ImageFormat.png, .jpeg, .gif, .webp, .tiff] {
      let parts = try image.dataURL(as: format).split(separator: ",", omittingEmptySubsequences: false)
      #expect(parts.count == 2)
      #expect(parts.first == "data:image/\(format.rawValue);base64")
      #expect(
        try parts.last.flatMap { Data(base64Encoded: String($0)) } == image.encode(as: format, quality: 0.5))
    }
  }

  @Test("Variants have the longest side or the exact size, of one pixel at least, in any order")
  func sizes() throws {
    let cases: [(ImageVariants.Variant, (Int, Int), (Int, Int))] = [
      (.init("a", longestSide: 30), (60, 40), (30, 20)), (.init("b", longestSide: 30), (40, 60), (20, 30)),
      (.init("c", longestSide: 60), (60, 40), (60, 40)), (.init("d", longestSide: 61), (60, 40), (60, 40)),
      (.init("e", longestSide: 59), (60, 40), (59, 39)), (.init("f", longestSide: 1), (60, 40), (1, 1)),
      (.init("g", longestSide: 0), (60, 40), (1, 1)), (.init("h", longestSide: -9), (60, 40), (1, 1)),
      (.init("i", width: 7, height: 90), (60, 40), (7, 90)),
      (.init("j", width: 90, height: 7), (60, 40), (90, 7)),
      (.init("k", width: 0, height: 5), (60, 40), (1, 5)),
      (.init("l", width: 5, height: -1), (60, 40), (5, 1)),
    ]
    for (variant, from, to) in cases {
      let plan = variant.plan(width: from.0, height: from.1)
      #expect((plan.canvasWidth, plan.canvasHeight) == to, "\(variant.name)")
      let image = try Drawing(gradientOf: from.0, from.1).image()
      let result = try #require(try ImageVariants(variant).make(of: image)[variant.name])
      #expect((result.pixelWidth, result.pixelHeight) == to, "\(variant.name)")
    }
    let variants = cases.filter { $0.1 == (60, 40) }.map(\.0)
    let image = try Drawing(gradientOf: 60, 40).image(scale: 3)
    let results = try ImageVariants(variants).make(of: image)
    let reversed = try ImageVariants(variants.reversed()).make(of: image)
    #expect(results == reversed)
    #expect(results.count == variants.count)
    for result in results.values { #expect((result.scale, result.limits) == (1, image.limits)) }
    #expect(try ImageVariants().make(of: image).isEmpty)
  }

  @Test("Variants are equal if their names and sizes are")
  func equality() {
    let variant = ImageVariants.Variant("a", width: 3, height: 4)
    #expect(variant == ImageVariants.Variant("a", width: 3, height: 4))
    for other in [
      ImageVariants.Variant("b", width: 3, height: 4), .init("a", width: 4, height: 4),
      .init("a", width: 3, height: 3),
      .init("a", longestSide: 3), .init("a", longestSide: 4),
    ] {
      #expect(variant != other)
      #expect(ImageVariants(variant) != ImageVariants(other))
      #expect(Set([variant, other, variant]).count == 2)
    }
    #expect(ImageVariants(variant) == ImageVariants([variant]))
    #expect(ImageVariants(variant).variants.map(\.name) == ["a"])
  }

  @Test("Variants are made of one source, which is no larger than the largest of them")
  func source() throws {
    // The pixels of the largest variant are the same as when the image is brought to that size.
    let drawing = Drawing(gradientOf: 640, 320)
    let image = try Image(data: drawing.file(.jpeg, quality: 1))
    let results = try ImageVariants(.init("a", longestSide: 160), .init("b", longestSide: 40)).make(of: image)
    let large = try image.content.stretched(width: 160, height: 80)
    #expect(try results["a"]?.content.decoded().data == large.data)
    let small = try ImageContent(large, .default).stretched(width: 40, height: 20)
    #expect(try results["b"]?.content.decoded().data == small.data)
    // A long and a tall one need a source that is as wide as one and as high as the other.
    let crossed = ImageVariants(.init("a", width: 160, height: 10), .init("b", width: 10, height: 160))
    let source = try ImageContent(image.content.stretched(width: 320, height: 160), .default)
    let shapes = try crossed.make(of: image)
    for (name, plan) in crossed.variants.map({ ($0.name, $0.plan(width: 640, height: 320)) }) {
      #expect(try shapes[name]?.content.decoded().data == Image.scaled(source, plan).data, "\(name)")
    }
  }

  @Test("Each variant keeps to the limits by its own size and all frames")
  func limits() throws {
    let frame = try Drawing(gradientOf: 20, 5).image(limits: ImageLimits(pixels: 800))
    let image = try Image(frames: [frame, frame])
    #expect(try ImageVariants(.init("a", width: 40, height: 10)).make(of: image)["a"]?.pixelWidth == 40)
    for (width, height) in [(401, 1), (1, 401)] {
      #expect(throws: ImageError.limitExceeded(.pixels, limit: 800, actual: 802)) {
        try ImageVariants(.init("b", longestSide: 3), .init("a", width: width, height: height)).make(
          of: image)
      }
    }
  }
}
