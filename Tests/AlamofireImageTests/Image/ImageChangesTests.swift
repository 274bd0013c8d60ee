@testable import AlamofireImage
import Foundation
import Testing

@Suite("Changes of images, pixel by pixel")
struct ImageChangesTests {
  /// Draws a picture without symmetry.
  private static func drawing(_ width: Int, _ height: Int, bands: Int = 3) -> Drawing {
    Drawing(width, height, bands: bands) { x, y in
      [
        UInt8(x * 255 / width), UInt8(y * 255 / height), UInt8((x * 3 + y * 5) % 256),
        UInt8(100 + (x + y) % 100),
      ]
    }
  }

  /// Returns the samples of a part, with alpha, row by row; outside of the image they are 0.
  private func part(_ image: Image, _ x: Int, _ y: Int, _ width: Int, _ height: Int) throws -> [UInt8] {
    let samples = Array(try image.pixels(as: .rgba))
    var result: [UInt8] = []
    for row in y..<y + height {
      for column in x..<x + width {
        let isInside = (0..<image.pixelWidth).contains(column) && (0..<image.pixelHeight).contains(row)
        let start = (row * image.pixelWidth + column) * 4
        result += isInside ? Array(samples[start..<start + 4]) : [0, 0, 0, 0]
      }
    }
    return result
  }

  private static let sizes: [(Int, Int, Int, Int)] = [
    (40, 20, 20, 20), (20, 40, 20, 20), (40, 20, 11, 10), (20, 40, 10, 11), (10, 6, 33, 40), (40, 30, 13, 30),
    (40, 30, 40, 9), (7, 90, 60, 50), (90, 7, 50, 60), (9, 9, 9, 9),
  ]

  @Test(
    "Fitting places what is stretched by the smaller factor, and filling cuts what is stretched by the larger",
    arguments: sizes)
  func placing(width: Int, height: Int, toWidth: Int, toHeight: Int) throws {
    let image = try Self.drawing(width, height).image()
    let (horizontal, vertical) = (Double(toWidth) / Double(width), Double(toHeight) / Double(height))
    let size = CGSize(width: toWidth, height: toHeight)
    func stretched(_ factor: Double) throws -> Image {
      try image.scaled(
        .stretch,
        to: CGSize(
          width: max(1, (Double(width) * factor).rounded()),
          height: max(1, (Double(height) * factor).rounded())),
        scale: 1)
    }
    let small = try stretched(min(horizontal, vertical))
    let fitted = try image.scaled(.fit, to: size, scale: 1)
    let (left, top) = ((toWidth - small.pixelWidth) / 2, (toHeight - small.pixelHeight) / 2)
    #expect(try Array(fitted.pixels(as: .rgba)) == part(small, -left, -top, toWidth, toHeight))
    let large = try stretched(max(horizontal, vertical))
    guard large.pixelWidth * large.pixelHeight <= 8 * toWidth * toHeight else { return }
    let filled = try image.scaled(.fill, to: size, scale: 1)
    let (cutLeft, cutTop) = ((large.pixelWidth - toWidth) / 2, (large.pixelHeight - toHeight) / 2)
    #expect(try Array(filled.pixels(as: .rgba)) == part(large, cutLeft, cutTop, toWidth, toHeight))
  }

  @Test("A frame that would become much too large is cut before it is stretched", arguments: [false, true])
  func cutting(isTall: Bool) throws {
    let image = try Self.drawing(isTall ? 6 : 301, isTall ? 301 : 6).image()
    let size = CGSize(width: isTall ? 6 : 12, height: isTall ? 12 : 6)
    let filled = try image.scaled(.fill, to: size, scale: 1)
    #expect((filled.pixelWidth, filled.pixelHeight) == (Int(size.width), Int(size.height)))
    let middle = isTall ? try part(image, 0, 144, 6, 12) : try part(image, 144, 0, 12, 6)
    #expect(try Array(filled.pixels(as: .rgba)) == middle)
  }

  @Test("The size is in points of the scale, on both sides", arguments: [1, 2, 3] as [CGFloat])
  func points(scale: CGFloat) throws {
    let image = try Self.drawing(30, 20).image(scale: 5)
    for mode in [ScalingPlan.Mode.stretch, .fit, .fill] {
      let result = try image.scaled(mode, to: CGSize(width: 7, height: 4), scale: scale)
      #expect((result.pixelWidth, result.pixelHeight) == (Int(7 * scale), Int(4 * scale)), "\(mode)")
      #expect(result.scale == scale, "\(mode)")
      #expect(result.size == CGSize(width: 7, height: 4), "\(mode)")
    }
  }

  @Test(
    "The limit is that of the result: its pixels at the limit are allowed, and no more",
    arguments: [ScalingPlan.Mode.stretch, .fit, .fill])
  func limit(mode: ScalingPlan.Mode) throws {
    let image = try Self.drawing(10, 10).image(limits: ImageLimits(pixels: 400))
    #expect(try image.scaled(mode, to: CGSize(width: 20, height: 20), scale: 1).pixelWidth == 20)
    for (size, scale) in [(CGSize(width: 401, height: 1), 1 as CGFloat), (CGSize(width: 1, height: 401), 1)] {
      #expect(throws: ImageError.limitExceeded(.pixels, limit: 400, actual: 401)) {
        try image.scaled(mode, to: size, scale: scale)
      }
    }
    #expect(throws: ImageError.limitExceeded(.pixels, limit: 400, actual: 484)) {
      try image.scaled(mode, to: CGSize(width: 11, height: 11), scale: 2)
    }
  }

  @Test(
    "An image that would exceed the limit before it is cut fills a size that does not", arguments: [1, 2])
  func fillingAtTheLimit(frames: Int) throws {
    let limits = ImageLimits(pixels: 1_000 * frames)
    let frame = try Self.drawing(30, 20).image(limits: limits)
    let image = frames == 1 ? frame : try Image(frames: [frame, frame])
    let filled = try AspectScaledToFillSizeFilter(size: CGSize(width: 30, height: 30)).apply(image)
    #expect((filled.pixelWidth, filled.pixelHeight, filled.frameCount) == (30, 30, frames))
    #expect(try abs(Int(filled.pixel(15, 15)[0]) - Int(frame.pixel(15, 10)[0])) <= 8, "it is the middle")
  }

  @Test(
    "Round corners have the radius in pixels, and a circle is cut out of the middle",
    arguments: [(31, 20), (20, 31), (30, 20), (20, 30), (21, 21)])
  func shapes(width: Int, height: Int) throws {
    let drawing = Self.drawing(width, height, bands: 4)
    let image = try drawing.image(scale: 2)
    let rounded = try image.rounded(radius: 4)
    let pixels = try image.content.decoded()
    #expect(
      try Array(rounded.pixels(as: .rgba))
        == Array(
          pixels.masked(
            RoundedRectangle(width: width, height: height, radius: 4)
          ).data))
    #expect(rounded.scale == 2)
    let side = min(width, height)
    let circle = try image.roundedIntoCircle()
    #expect((circle.pixelWidth, circle.pixelHeight, circle.scale) == (side, side, 2))
    let square = try part(image, (width - side) / 2, (height - side) / 2, side, side)
    let cut = try Image(pixels: Data(square), width: side, height: side, format: .rgba)
    #expect(
      try Array(circle.pixels(as: .rgba)) == Array(cut.rounded(radius: Double(side) / 2).pixels(as: .rgba)))
  }

  @Test("A blur changes the image, more with a larger radius, and keeps its scale")
  func blurring() throws {
    let image = try Drawing(60, 2, bands: 3) { x, _ in x < 30 ? [0, 0, 0] : [255, 255, 255] }.image(scale: 2)
    let original = try image.pixels(as: .grey)
    var last = -1
    for sigma in [0, 1, 2, 4, 8] as [Double] {
      let blurred = try image.blurred(sigma: sigma)
      #expect((blurred.pixelWidth, blurred.pixelHeight, blurred.scale) == (60, 2, 2))
      let changed = try zip(blurred.pixels(as: .grey), original).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
      #expect(changed > last, "\(sigma)")
      last = changed
    }
    #expect(try image.blurred(sigma: -1) == image)
    #expect(try image.blurred(sigma: .nan) == image)
    #expect(
      try BlurFilter(blurRadius: 60).apply(image) != BlurFilter(blurRadius: 100).apply(image),
      "100 is the most")
  }

  @Test("A blur, a mask, an encoding and a change of size have the time of the image")
  func time() throws {
    let image = try Drawing(gradientOf: 300, 300).image(limits: ImageLimits(time: .milliseconds(-3_000)))
    let calls: [(String, () throws -> Void)] = [
      ("blur", { _ = try image.blurred(sigma: 20) }),
      ("scale", { _ = try image.scaled(.stretch, to: CGSize(width: 90, height: 90), scale: 1) }),
      ("fill", { _ = try image.scaled(.fill, to: CGSize(width: 900, height: 2), scale: 1) }),
      ("fit", { _ = try image.scaled(.fit, to: CGSize(width: 300, height: 300), scale: 1) }),
      ("canvas", { _ = try image.scaled(.fit, to: CGSize(width: 300, height: 400), scale: 1) }),
      ("corners", { _ = try image.rounded(radius: 9) }),
      ("circle", { _ = try image.roundedIntoCircle() }),
      ("placeholder", { _ = try image.placeholder() }),
      ("average", { _ = try image.averageColor() }),
      ("variants", { _ = try ImageVariants(.init("a", longestSide: 9)).make(of: image) }),
    ]
    for (name, call) in calls {
      #expect("\(name)") { try call() } throws: { error in
        if case .limitExceeded(.time, limit: -3_000, actual: 0..<60_000)? = error as? ImageError {
          true
        } else {
          false
        }
      }
    }
  }
}
