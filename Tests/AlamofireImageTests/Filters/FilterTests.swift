import Alamofire
import AlamofireImage
import Foundation
import Testing

@Suite("Filters")
struct FilterTests {
  private let size = CGSize(width: 100, height: 50)

  @Test("Each filter has the identifier that upstream gives it")
  func identifiers() {
    let filters: [(any ImageFilter, String)] = [
      (ScaledToSizeFilter(size: size), "ScaledToSizeFilter-size:(100x50)"),
      (AspectScaledToFitSizeFilter(size: size), "AspectScaledToFitSizeFilter-size:(100x50)"),
      (AspectScaledToFillSizeFilter(size: size), "AspectScaledToFillSizeFilter-size:(100x50)"),
      (RoundedCornersFilter(radius: 13), "RoundedCornersFilter-radius:(13)-divided:(false)"),
      (
        RoundedCornersFilter(radius: 4, divideRadiusByImageScale: true),
        "RoundedCornersFilter-radius:(4)-divided:(true)"
      ),
      (CircleFilter(), "CircleFilter"),
      (DynamicImageFilter("mine") { $0 }, "mine"),
      (
        ScaledToSizeWithRoundedCornersFilter(size: size, radius: 3),
        "ScaledToSizeFilter-size:(100x50)_RoundedCornersFilter-radius:(3)-divided:(false)"
      ),
      (
        AspectScaledToFillSizeWithRoundedCornersFilter(size: size, radius: 3, divideRadiusByImageScale: true),
        "AspectScaledToFillSizeFilter-size:(100x50)_RoundedCornersFilter-radius:(3)-divided:(true)"
      ),
      (
        ScaledToSizeWithRoundedCornersFilter(size: size, radius: 3, divideRadiusByImageScale: true),
        "ScaledToSizeFilter-size:(100x50)_RoundedCornersFilter-radius:(3)-divided:(true)"
      ),
      (ScaledToSizeCircleFilter(size: size), "ScaledToSizeFilter-size:(100x50)_CircleFilter"),
      (
        AspectScaledToFillSizeCircleFilter(size: size),
        "AspectScaledToFillSizeFilter-size:(100x50)_CircleFilter"
      ),
      (DynamicCompositeImageFilter(CircleFilter(), DynamicImageFilter("b") { $0 }), "CircleFilter_b"),
      (DynamicCompositeImageFilter([]), ""),
    ]
    for (filter, identifier) in filters { #expect(filter.identifier == identifier) }
    #expect(BlurFilter().identifier != BlurFilter(blurRadius: 11).identifier)
    #expect(BlurFilter().blurRadius == 10)
  }

  @Test("A size that is not a whole number of 64 bits has a name, too")
  func strangeIdentifiers() {
    #expect(
      ScaledToSizeFilter(size: CGSize(width: 1e300, height: CGFloat.infinity)).identifier
        == "ScaledToSizeFilter-size:(1e+300xinf)")
    #expect(
      RoundedCornersFilter(radius: .nan).identifier == "RoundedCornersFilter-radius:(nan)-divided:(false)")
    #expect(
      RoundedCornersFilter(radius: -2.5).identifier == "RoundedCornersFilter-radius:(-2.5)-divided:(false)")
  }

  @Test("Filters with different values have different identifiers, also if the values are not whole")
  func fractions() {
    let values: [CGFloat] = [12, 12.4, 12.5, 12.6, 13]
    #expect(Set(values.map { RoundedCornersFilter(radius: $0).identifier }).count == values.count)
    let sizes = values.flatMap { [CGSize(width: $0, height: 12), CGSize(width: 20, height: $0)] }
    #expect(Set(sizes.map { ScaledToSizeFilter(size: $0).identifier }).count == sizes.count)
    #expect(
      AspectScaledToFitSizeFilter(size: CGSize(width: 100.4, height: 49.5)).identifier
        == "AspectScaledToFitSizeFilter-size:(100.4x49.5)")
  }

  @Test("A scaled image has exactly the size", arguments: [false, true])
  func exactSizes(isFile: Bool) throws {
    let drawing = Drawing(gradientOf: 61, 37)
    let image = isFile ? try Image(data: drawing.file(.jpeg)) : try drawing.image()
    for (width, height) in [(1, 1), (13, 200), (61, 37), (7, 91), (122, 74), (250, 3)] {
      let size = CGSize(width: width, height: height)
      for result in [
        image.af.imageScaled(to: size), image.af.imageAspectScaled(toFit: size),
        image.af.imageAspectScaled(toFill: size),
      ] { #expect((result.pixelWidth, result.pixelHeight) == (width, height)) }
    }
  }

  @Test("The scale multiplies the pixels")
  func scale() throws {
    let image = try Drawing(gradientOf: 100, 100).image()
    let scaled = image.af.imageScaled(to: CGSize(width: 10, height: 20), scale: 3)
    #expect(scaled.size == CGSize(width: 10, height: 20))
    #expect((scaled.pixelWidth, scaled.pixelHeight, scaled.scale) == (30, 60, 3))
  }

  @Test("Fitting shows all of the image in the middle of a transparent canvas")
  func fitting() throws {
    let image = try Drawing(of: [255, 0, 0], 40, 20).image()
    let fitted = image.af.imageAspectScaled(toFit: CGSize(width: 20, height: 20))
    #expect(try fitted.pixel(0, 0) == [0, 0, 0, 0])
    #expect(try fitted.pixel(10, 4) == [0, 0, 0, 0])
    #expect(try fitted.pixel(0, 5) == [255, 0, 0, 255])
    #expect(try fitted.pixel(19, 14) == [255, 0, 0, 255])
    #expect(try fitted.pixel(10, 15) == [0, 0, 0, 0])
    #expect(fitted.af.containsAlphaComponent)
  }

  @Test("Filling cuts off the same on both sides")
  func filling() throws {
    let image = try Drawing(60, 20, bands: 3) { x, _ in
      x < 20 ? [255, 0, 0] : x < 40 ? [0, 255, 0] : [0, 0, 255]
    }
    .image()
    let filled = image.af.imageAspectScaled(toFill: CGSize(width: 20, height: 20))
    #expect(try filled.pixel(0, 10) == [0, 255, 0, 255])
    #expect(try filled.pixel(19, 10) == [0, 255, 0, 255])
    #expect(filled.af.isOpaque)
    let wide = image.af.imageAspectScaled(toFill: CGSize(width: 26, height: 20))
    #expect(try wide.pixel(2, 10) == [255, 0, 0, 255])
    #expect(try wide.pixel(3, 10) == [0, 255, 0, 255])
    #expect(try wide.pixel(23, 10) == [0, 0, 255, 255])
  }

  @Test("Rounding makes only the corners transparent")
  func rounding() throws {
    let image = try Drawing(of: [9, 8, 7], 40, 30).image(scale: 2)
    let rounded = image.af.imageRounded(withCornerRadius: 5)
    for (x, y) in [(0, 0), (39, 0), (0, 29), (39, 29)] { #expect(try rounded.pixel(x, y) == [9, 8, 7, 0]) }
    for (x, y) in [(10, 0), (0, 10), (29, 0), (39, 19), (20, 15), (3, 3)] {
      #expect(try rounded.pixel(x, y)[3] == 255, "(\(x), \(y))")
    }
    // The arc of ten pixels crosses the diagonal at 2.93 pixels.
    #expect((1...254).contains(try rounded.pixel(2, 3)[3]))
    #expect(rounded.scale == 2)
    let divided = image.af.imageRounded(withCornerRadius: 5, divideRadiusByImageScale: true)
    #expect(try divided.pixel(0, 0)[3] < 255)
    #expect(try divided.pixel(6, 0)[3] == 255)
    #expect(image.af.imageRounded(withCornerRadius: 0) == image)
    #expect(try image.af.imageRounded(withCornerRadius: -3).pixel(0, 0)[3] == 255)
  }

  @Test("Rounding multiplies the alpha that the image has")
  func roundingTransparent() throws {
    let image = try Drawing(of: [9, 8, 7, 100], 20, 20).image()
    let rounded = image.af.imageRounded(withCornerRadius: 8)
    #expect(try rounded.pixel(10, 10)[3] == 100)
    #expect(try rounded.pixel(3, 3)[3] == 100)
    #expect(try rounded.pixel(0, 0)[3] == 0)
  }

  @Test("A circle is cut out of the middle square")
  func circle() throws {
    let image = try Drawing(50, 30, bands: 3) { x, _ in (10..<40).contains(x) ? [1, 2, 3] : [200, 0, 0] }
      .image()
    let circle = image.af.imageRoundedIntoCircle()
    #expect((circle.pixelWidth, circle.pixelHeight) == (30, 30))
    for (x, y) in [(0, 15), (29, 14), (15, 0), (14, 29)] {
      let pixel = try circle.pixel(x, y)
      #expect(Array(pixel.prefix(3)) == [1, 2, 3])
      #expect(pixel[3] > 245)
    }
    #expect(try circle.pixel(2, 2)[3] == 0)
    let area = try circle.pixels(as: .rgba).enumerated().reduce(0) { $0 + ($1.0 % 4 == 3 ? Int($1.1) : 0) }
    #expect(abs(Double(area) / 255 - .pi * 225) < 2)
  }

  @Test("Blurring keeps the size and the mean, and does not let colours of transparent pixels out")
  func blurring() throws {
    let image = try Drawing(40, 40, bands: 4) { x, _ in x < 20 ? [0, 0, 200, 255] : [255, 0, 0, 0] }.image()
    let blurred = BlurFilter(blurRadius: 3).filter(image)
    #expect((blurred.pixelWidth, blurred.pixelHeight) == (40, 40))
    #expect(try blurred.pixel(5, 20) == [0, 0, 200, 255])
    let edge = try blurred.pixel(21, 20)
    #expect(edge[0] < 5 && edge[2] > 190 && (50...160).contains(edge[3]))
    #expect(BlurFilter(blurRadius: 0).filter(image) == image)
  }

  @Test("A radius of more than 100 blurs as 100 does")
  func largeRadius() throws {
    let image = try Drawing(200, 2, bands: 3) { x, _ in x < 100 ? [0, 0, 0] : [255, 255, 255] }.image()
    let blurred = try BlurFilter(blurRadius: 100).apply(image)
    #expect(try BlurFilter(blurRadius: .max).apply(image) == blurred)
    #expect(try BlurFilter(blurRadius: 1_000).apply(image) == blurred)
    #expect(blurred != image)
  }

  @Test("An image of data has the scale that is asked for")
  func threadSafeImage() throws {
    let file = try Drawing(gradientOf: 6, 4).file(.png)
    let image = try #require(Image.af.threadSafeImage(with: file, scale: 2))
    #expect(image.size == CGSize(width: 3, height: 2))
    #expect(Image.af.threadSafeImage(with: file)?.scale == 1)
    #expect(Image.af.threadSafeImage(with: Data("hello".utf8)) == nil)
  }

  @Test("A composite filter applies its filters in order")
  func composites() throws {
    let image = try Drawing(gradientOf: 80, 40).image()
    let size = CGSize(width: 20, height: 20)
    let expected = image.af.imageAspectScaled(toFill: size).af.imageRoundedIntoCircle()
    #expect(AspectScaledToFillSizeCircleFilter(size: size).filter(image) == expected)
    #expect(try AspectScaledToFillSizeCircleFilter(size: size).apply(image) == expected)
    #expect(
      ScaledToSizeWithRoundedCornersFilter(size: size, radius: 4).filter(image)
        == image.af.imageScaled(to: size).af.imageRounded(withCornerRadius: 4))
    #expect(DynamicCompositeImageFilter().filter(image) == image)
  }

  @Test("What cannot be decoded is returned unchanged, and thrown by apply")
  func damage() throws {
    let file = try Drawing(gradientOf: 200, 100).file(.png)
    let image = try Image(data: file.prefix(file.count / 2))
    let filters: [any ImageFilter] = [
      ScaledToSizeFilter(size: size), AspectScaledToFitSizeFilter(size: size), CircleFilter(), BlurFilter(),
      RoundedCornersFilter(radius: 3), AspectScaledToFillSizeCircleFilter(size: size),
    ]
    for filter in filters {
      #expect(filter.filter(image) == image)
      #expect(throws: ImageError.self, "\(filter.identifier)") { try filter.apply(image) }
    }
  }

  @Test("Filters run on threads for images")
  func threads() async throws {
    let image = try Drawing(gradientOf: 30, 30).image()
    #expect(try await image.filtered(by: CircleFilter()) == image.af.imageRoundedIntoCircle())
    #expect(try await image.inflated() == image)
    #expect(try await image.encoded(as: .png) == image.encode(as: .png))
    let file = try Image(data: image.encode(as: .png))
    #expect(!file.af.isInflated)
    _ = try await file.inflated()
    #expect(file.af.isInflated)
  }

  @Test("The filter of round corners divides the radius as its option says", arguments: [false, true])
  func dividedRadius(isDivided: Bool) throws {
    let image = try Drawing(of: [9, 8, 7], 40, 30).image(scale: 2)
    let expected = image.af.imageRounded(withCornerRadius: 8, divideRadiusByImageScale: isDivided)
    let filter = RoundedCornersFilter(radius: 8, divideRadiusByImageScale: isDivided)
    #expect(try filter.apply(image) == expected)
    #expect(try expected.pixel(0, 8)[3] == (isDivided ? 255 : expected.pixel(8, 0)[3]))
  }

  @Test("Results of filters with a size have the scale of the process, whatever the scale of the image")
  func scaleOfResults() throws {
    let image = try Drawing(gradientOf: 40, 30).image(scale: 3)
    let size = CGSize(width: 10, height: 10)
    let filters: [any ImageFilter] = [
      ScaledToSizeFilter(size: size), AspectScaledToFitSizeFilter(size: size),
      AspectScaledToFillSizeFilter(size: size),
    ]
    for filter in filters {
      let result = try filter.apply(image)
      #expect((result.scale, result.pixelWidth) == (1, 10), "\(filter.identifier)")
    }
  }

  @Test("The scale of the call is that of the result")
  func scaleOfCalls() throws {
    let image = try Drawing(gradientOf: 40, 30).image()
    let size = CGSize(width: 10, height: 20)
    for result in [
      image.af.imageScaled(to: size, scale: 2), image.af.imageAspectScaled(toFit: size, scale: 2),
      image.af.imageAspectScaled(toFill: size, scale: 2),
    ] {
      #expect(result.scale == 2)
      #expect((result.pixelWidth, result.pixelHeight) == (20, 40))
    }
  }
}
