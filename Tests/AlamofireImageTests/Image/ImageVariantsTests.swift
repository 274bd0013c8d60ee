import Alamofire
import AlamofireImage
import Foundation
import Testing

@Suite("Variants and placeholders")
struct ImageVariantsTests {
  @Test("All sizes are made of one decoding", arguments: [false, true])
  func variants(isFile: Bool) async throws {
    let drawing = Drawing(gradientOf: 800, 400)
    let image = isFile ? try Image(data: drawing.file(.jpeg)) : try drawing.image(scale: 2)
    let sizes = ImageVariants(
      .init("large", longestSide: 400), .init("small", longestSide: 100),
      .init("square", width: 50, height: 50),
      .init("same", longestSide: 5_000), .init("tall", width: 10, height: 90))
    let results = try await sizes.images(of: image)
    let expected = [
      "large": (400, 200), "small": (100, 50), "square": (50, 50), "same": (800, 400), "tall": (10, 90),
    ]
    #expect(results.count == 5)
    for (name, size) in expected {
      let result = try #require(results[name])
      #expect((result.pixelWidth, result.pixelHeight) == size, "\(name)")
      #expect(result.scale == 1)
    }
    #expect(image.af.isInflated == !isFile)
    let direct = image.af.imageScaled(to: CGSize(width: 100, height: 50), scale: 1)
    #expect(try results["small"]?.greatestDifference(to: direct) ?? .max <= 8)
    let middle = try #require(try results["square"]?.pixel(25, 25))
    #expect((115...140).contains(middle[0]) && (115...140).contains(middle[1]), "\(middle)")
  }

  @Test("Variants become files")
  func files() async throws {
    let image = try Drawing(gradientOf: 300, 200).image()
    let files = try await ImageVariants(.init("a", longestSide: 30), .init("b", width: 9, height: 8)).files(
      of: image, as: .png)
    #expect(try Image(data: #require(files["a"])).pixelHeight == 20)
    #expect(try Image(data: #require(files["b"])).pixelHeight == 8)
    #expect(try ImageVariants([]).make(of: image).isEmpty)
  }

  @Test("Variants keep to the limits of the image, and sides are at least one pixel")
  func limits() throws {
    let image = try Drawing(gradientOf: 30, 20).image(limits: ImageLimits(pixels: 1_000))
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 1_000, actual: 10_000)) {
      try ImageVariants(.init("a", width: 100, height: 100)).make(of: image)
    }
    for (width, height) in [(Int.max, 1), (1, .max), (.max, .max), (2_000_000_000_000_000_000, 7)] {
      let error = #expect(throws: ImageError.self) {
        try ImageVariants(.init("a", width: width, height: height)).make(of: image)
      }
      guard case .limitExceeded(.pixels, limit: 1_000, _)? = error else {
        Issue.record("\(width) x \(height): \(String(describing: error))")
        continue
      }
    }
    let tiny = try ImageVariants(.init("a", longestSide: -3), .init("b", width: 0, height: 0)).make(of: image)
    #expect(tiny.values.allSatisfy { $0.pixelWidth == 1 && $0.pixelHeight == 1 })
  }

  @Test("The average colour is the mean, weighted by opacity")
  func averageColor() throws {
    let halves = try Drawing(40, 20, bands: 3) { x, _ in x < 20 ? [200, 0, 40] : [0, 100, 40] }.image()
    let average = try halves.averageColor()
    #expect(average == ImageColor(red: 100, green: 50, blue: 40))
    #expect(average.hex == "#643228")
    let clear = try Drawing(2, 1, bands: 4) { x, _ in x == 0 ? [200, 0, 0, 255] : [0, 0, 0, 0] }.image()
    #expect(try clear.averageColor() == ImageColor(red: 200, green: 0, blue: 0, alpha: 128))
    #expect(try clear.averageColor().hex == "#c8000080")
    #expect(try Drawing(of: [9, 9, 9, 0], 2, 2).image().averageColor().alpha == 0)
  }

  @Test("A placeholder is small, blurred, and fits into a page")
  func placeholder() throws {
    let image = try Drawing(300, 150, bands: 3) { x, _ in x < 150 ? [255, 255, 255] : [0, 0, 0] }.image(
      scale: 2)
    let small = try image.placeholder()
    #expect((small.pixelWidth, small.pixelHeight, small.scale) == (20, 10, 1))
    #expect((20...235).contains(try small.pixel(10, 5)[0]))
    #expect(try image.placeholder(longestSide: 0).pixelWidth == 1)
    #expect(try image.placeholder(longestSide: 5_000).pixelWidth == 100)
    let url = try small.dataURL(as: .jpeg)
    #expect(url.hasPrefix("data:image/jpeg;base64,/9j/"))
    #expect(url.utf8.count < 800)
  }

  @Test("The placeholder of an animation is a still image of its first frame")
  func placeholderOfAnimation() throws {
    let frames = try [Drawing(of: [200, 0, 0], 60, 30).image(), Drawing(of: [0, 100, 0], 60, 30).image()]
    let small = try Image(frames: frames).placeholder()
    #expect((small.pixelWidth, small.pixelHeight, small.frameCount) == (20, 10, 1))
    #expect(try small.pixel(10, 5) == [200, 0, 0, 255])
  }

  @Test("A placeholder is blurred, also if the image is as small")
  func smallPlaceholder() throws {
    let image = try Drawing(20, 10, bands: 3) { x, _ in x < 10 ? [255, 255, 255] : [0, 0, 0] }.image()
    let small = try image.placeholder()
    #expect((1...254).contains(try small.pixel(9, 5)[0]))
    #expect((1...254).contains(try small.pixel(10, 5)[0]))
  }

  @Test("The average is rounded to the nearest colour")
  func roundedAverage() throws {
    let image = try Drawing(2, 1, bands: 3) { x, _ in x == 0 ? [1, 10, 100] : [2, 11, 101] }.image()
    #expect(try image.averageColor() == ImageColor(red: 2, green: 11, blue: 101))
  }

  @Test("The limits count all frames of a variant")
  func framesOfVariants() throws {
    let frame = try Drawing(gradientOf: 10, 10).image(limits: ImageLimits(pixels: 1_000))
    let image = try Image(frames: [frame, frame])
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 1_000, actual: 1_600)) {
      try ImageVariants(.init("a", width: 40, height: 20)).make(of: image)
    }
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 1_000, actual: 1_200)) {
      try AspectScaledToFitSizeFilter(size: CGSize(width: 10, height: 60)).apply(image)
    }
  }

  @Test("Of two variants with the same name, the last one counts")
  func sameName() throws {
    let image = try Drawing(gradientOf: 30, 20).image()
    let results = try ImageVariants(.init("a", longestSide: 15), .init("a", width: 4, height: 3)).make(
      of: image)
    #expect(results.count == 1)
    #expect((results["a"]?.pixelWidth, results["a"]?.pixelHeight) == (4, 3))
  }

  @Test("An animation is made of frames of one size")
  func frames() throws {
    let frames = try [Drawing(of: [1, 2, 3], 4, 3).image(), Drawing(of: [4, 5, 6, 7], 4, 3).image()]
    let image = try Image(frames: frames, durations: [.milliseconds(40)], loopCount: 2)
    #expect(image.frameCount == 2)
    #expect(image.frameDurations == [.milliseconds(40), .milliseconds(100)])
    #expect(image.loopCount == 2)
    #expect(try image.frame(1)?.pixel(0, 0) == [4, 5, 6, 7])
    #expect(throws: ImageError.invalidPixels) { try Image(frames: []) }
    #expect(throws: ImageError.invalidPixels) {
      try Image(frames: frames + [Drawing(of: [1, 2, 3], 3, 3).image()])
    }
    #expect(try Image(frames: [image, image]).frameCount == 2)
  }
}
