import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import Testing

@Suite("Parameters of filters")
struct FilterParametersTests {
  private let size = CGSize(width: 10, height: 14)

  private func drawing(bands: Int = 3) -> Drawing {
    Drawing(41, 20, bands: bands) { x, y in [UInt8(x * 6), UInt8(y * 12), UInt8(x + y), UInt8(255 - x)] }
  }

  @Test("A filter that throws fails on a thread for images, although its closure does not")
  func failure() async throws {
    struct Failing: ImageFilter {
      var filter: @Sendable (Image) -> Image { { $0 } }
      func apply(_ image: Image) throws -> Image { throw ImageError.invalidPixels }
    }
    let image = try drawing().image(scale: 2)
    await #expect(throws: ImageError.invalidPixels) { try await image.filtered(by: Failing()) }
  }

  @Test("Each filter does what its parts do, by its closure, by apply, and on a thread for images")
  func results() async throws {
    let image = try drawing().image(scale: 2)
    func scaled(_ mode: ScalingPlan.Mode, to size: CGSize? = nil) throws -> Image {
      try image.scaled(mode, to: size ?? self.size, scale: 1)
    }
    let filters: [(any ImageFilter, Image)] = try [
      (ScaledToSizeFilter(size: size), scaled(.stretch)),
      (AspectScaledToFitSizeFilter(size: size), scaled(.fit)),
      (AspectScaledToFillSizeFilter(size: size), scaled(.fill)),
      (RoundedCornersFilter(radius: 3), image.rounded(radius: 6)),
      (RoundedCornersFilter(radius: 3, divideRadiusByImageScale: true), image.rounded(radius: 3)),
      (RoundedCornersFilter(radius: 0.5), image.rounded(radius: 1)),
      (CircleFilter(), image.roundedIntoCircle()), (BlurFilter(), image.blurred(sigma: 10)),
      (BlurFilter(blurRadius: 3), image.blurred(sigma: 3)), (BlurFilter(blurRadius: 0), image),
      (ScaledToSizeWithRoundedCornersFilter(size: size, radius: 3), scaled(.stretch).rounded(radius: 3)),
      (
        AspectScaledToFillSizeWithRoundedCornersFilter(size: size, radius: 3),
        scaled(.fill).rounded(radius: 3)
      ),
      (ScaledToSizeCircleFilter(size: size), scaled(.stretch).roundedIntoCircle()),
      (AspectScaledToFillSizeCircleFilter(size: size), scaled(.fill).roundedIntoCircle()),
      (
        DynamicCompositeImageFilter([CircleFilter(), ScaledToSizeFilter(size: size)]),
        image.roundedIntoCircle().scaled(.stretch, to: size, scale: 1)
      ),
      (
        DynamicCompositeImageFilter(ScaledToSizeFilter(size: size), CircleFilter()),
        scaled(.stretch).roundedIntoCircle()
      ),
      (DynamicImageFilter("circle") { $0.af.imageRoundedIntoCircle() }, image.roundedIntoCircle()),
      (DynamicCompositeImageFilter(), image),
    ]
    for (filter, expected) in filters {
      #expect(try filter.apply(image) == expected, "\(filter.identifier)")
      #expect(filter.filter(image) == expected, "\(filter.identifier)")
      #expect(try await image.filtered(by: filter) == expected, "\(filter.identifier)")
    }
  }

  @Test("A filter without a name of its own has that of its type, and of its size or radius")
  func names() {
    struct Plain: ImageFilter {
      var filter: @Sendable (Image) -> Image { { $0.af.imageRoundedIntoCircle() } }
    }
    struct Sized: ImageFilter, Sizable {
      let size = CGSize(width: 3.5, height: 20.4)
      var filter: @Sendable (Image) -> Image { { $0 } }
    }
    struct Round: ImageFilter, Roundable {
      let radius: CGFloat = 7.5
      var filter: @Sendable (Image) -> Image { { $0 } }
    }
    #expect(Plain().identifier == "Plain")
    #expect(Sized().identifier == "Sized-size:(3.5x20.4)")
    #expect(Round().identifier == "Round-radius:(7.5)")
    #expect(BlurFilter(blurRadius: 7).identifier == "BlurFilter-parameters:(inputRadius=7)")
    #expect(DynamicCompositeImageFilter(Plain(), Sized()).identifier == "Plain_Sized-size:(3.5x20.4)")
    let names: [(CGFloat, String)] = [
      (0, "0"), (-0.0, "0"), (-0.4, "-0.4"), (1.49, "1.49"), (9e15, "9000000000000000"), (1e19, "1e+19"),
      (-7, "-7"),
    ]
    for (number, name) in names { #expect(number.name == name) }
  }

  @Test("The default of apply is the closure, and the default of the closure of others is apply")
  func defaults() throws {
    struct Plain: ImageFilter {
      var filter: @Sendable (Image) -> Image { { $0.af.imageRoundedIntoCircle() } }
    }
    let image = try drawing().image()
    #expect(try Plain().apply(image) == image.roundedIntoCircle())
    let rounded = RoundedCornersFilter(radius: 4, divideRadiusByImageScale: true)
    #expect((rounded.radius, rounded.divideRadiusByImageScale) == (4, true))
    #expect(RoundedCornersFilter(radius: 4).divideRadiusByImageScale == false)
  }

  @Test("The functions of an image have its own scale for a radius, and report what it is")
  func functions() throws {
    for bands in [3, 4] {
      let image = try drawing(bands: bands).image(scale: 2)
      #expect(image.af.isOpaque == (bands == 3))
      #expect(image.af.containsAlphaComponent == (bands == 4))
      #expect(image.af.isInflated)
      #expect(try image.af.imageRounded(withCornerRadius: 3) == image.rounded(radius: 6))
      #expect(
        try image.af.imageRounded(withCornerRadius: 3, divideRadiusByImageScale: true)
          == image.rounded(radius: 3))
      #expect(try image.af.imageRoundedIntoCircle() == image.roundedIntoCircle())
      for scale in [1, 3] as [CGFloat] {
        #expect(
          try image.af.imageScaled(to: size, scale: scale) == image.scaled(.stretch, to: size, scale: scale))
        #expect(
          try image.af.imageAspectScaled(toFit: size, scale: scale)
            == image.scaled(.fit, to: size, scale: scale))
        #expect(
          try image.af.imageAspectScaled(toFill: size, scale: scale)
            == image.scaled(.fill, to: size, scale: scale))
      }
    }
  }

  @Test("The scale of the process is the default of all that has none")
  func scaleOfProcess() async {
    // It holds for the whole process, so that this needs one of its own.
    await #expect(processExitsWith: .success) {
      #expect(DataRequest.imageScale == 1)
      DataRequest.imageScale = 3
      #expect(DataRequest.imageScale == 3)
      let image = try Drawing(gradientOf: 40, 30).image(scale: 2)
      let size = CGSize(width: 4, height: 5)
      let results: [(String, Image)] = try [
        ("scaled", image.af.imageScaled(to: size)), ("fitted", image.af.imageAspectScaled(toFit: size)),
        ("filled", image.af.imageAspectScaled(toFill: size)),
        ("stretching", ScaledToSizeFilter(size: size).apply(image)),
        ("fitting", AspectScaledToFitSizeFilter(size: size).apply(image)),
        ("filling", AspectScaledToFillSizeFilter(size: size).apply(image)),
      ]
      for (name, result) in results {
        #expect(result.scale == 3, "\(name)")
        #expect((result.pixelWidth, result.pixelHeight) == (12, 15), "\(name)")
      }
      #expect(image.af.imageScaled(to: size, scale: 1).scale == 1)
      #expect(ImageResponseSerializer().imageScale == 3)
      #expect(ImageResponseSerializer(imageScale: 2).imageScale == 2)
      let session = Session(configuration: .isolated)
      #expect(session.streamRequest("http://127.0.0.1:9/").streamImages().scale == 3)
      #expect(session.streamRequest("http://127.0.0.1:9/").streamImages(imageScale: 2).scale == 2)
      let request = URLRequest(url: URL(fileURLWithPath: "/a.png"))
      let file = try image.encode(as: .png)
      let read = try ImageResponseSerializer().serialize(
        request: request, response: nil, data: file, error: nil)
      #expect(read.scale == 3)
      for value in [0, -2, CGFloat.nan] {
        DataRequest.imageScale = value
        #expect(DataRequest.imageScale == 1, "\(value)")
      }
    }
  }
}
