import Alamofire
public import Foundation

/// A change of an image, with a name by which caches tell its results apart.
///
/// ```swift
/// struct TopHalf: ImageFilter {
///   var filter: @Sendable (Image) -> Image {
///     { image in
///       let size = CGSize(width: image.size.width, height: image.size.height / 2)
///       return image.af.imageAspectScaled(toFill: size, scale: image.scale)
///     }
///   }
/// }
/// print(TopHalf().identifier)
/// ```
public protocol ImageFilter: Sendable {
  /// The change. If it fails, it returns the image unchanged.
  var filter: @Sendable (_ image: Image) -> Image { get }
  /// The name. Two filters with the same name must have the same results. Default: the name of the type.
  var identifier: String { get }
  /// Changes an image as ``filter`` does, but throws if that fails. Default: calls ``filter``.
  ///
  /// - Throws: ``ImageError``.
  func apply(_ image: Image) throws -> Image
}

extension ImageFilter {
  /// The name of the type.
  public var identifier: String { "\(type(of: self))" }
  /// Calls ``filter``.
  public func apply(_ image: Image) throws -> Image { filter(image) }
}

extension Image {
  /// Returns the result of a filter, which runs on a thread for images.
  ///
  /// - Parameter filter: Ends early if the task is cancelled, or if it takes longer than ``ImageLimits/time``. A
  ///   composite filter has this time for all its filters.
  /// - Throws: ``ImageError``, or what the filter throws.
  public func filtered(by filter: any ImageFilter) async throws -> Image {
    try await ImageQueue.shared.run(limit: limits.time) { try filter.apply(self) }
  }

  /// Decodes the pixels for all copies of the image, on a thread for images, and returns the image.
  ///
  /// - Throws: ``ImageError``.
  public func inflated() async throws -> Image {
    try await ImageQueue.shared.run(limit: limits.time) {
      _ = try content.decoded()
      return self
    }
  }
}

/// The protocol of the filters that come with the module: they throw, and ``filter`` returns what it cannot change.
protocol ThrowingImageFilter: ImageFilter {}

extension ThrowingImageFilter {
  /// Calls `apply(_:)`, and returns the image unchanged if that throws.
  public var filter: @Sendable (_ image: Image) -> Image {
    { image in (try? apply(image)) ?? image }
  }
}

/// A filter with a size in points.
public protocol Sizable {
  /// The size in points.
  var size: CGSize { get }
}

extension ImageFilter where Self: Sizable {
  /// The name of the type and the size in points, such as `ScaledToSizeFilter-size:(400x300)`.
  public var identifier: String { "\(type(of: self))-size:(\(size.width.name)x\(size.height.name))" }
}

/// A filter with a radius.
public protocol Roundable {
  /// The radius in points.
  var radius: CGFloat { get }
}

extension ImageFilter where Self: Roundable {
  /// The name of the type and the radius in points, such as `RoundedCornersFilter-radius:(8)`.
  public var identifier: String { "\(type(of: self))-radius:(\(radius.name))" }
}

extension CGFloat {
  /// The number as text, without a fraction if it is whole. Different numbers have different texts.
  var name: String { Int64(exactly: self).map(String.init) ?? "\(self)" }
}

/// Scales an image to exactly a size; its proportions may change.
///
/// ```swift
/// let filter = ScaledToSizeFilter(size: CGSize(width: 100, height: 100))
/// print(filter.identifier)
/// ```
public struct ScaledToSizeFilter: ImageFilter, ThrowingImageFilter, Sizable {
  /// The size of the result, in points.
  public let size: CGSize

  /// Makes the filter.
  ///
  /// - Parameter size: In points. A side that is smaller than a pixel becomes one pixel.
  public init(size: CGSize) { self.size = size }

  /// Returns the scaled image, with the scale `DataRequest.imageScale`.
  public func apply(_ image: Image) throws -> Image {
    try image.scaled(.stretch, to: size, scale: DataRequest.imageScale)
  }
}

/// Scales an image so that it fits into a size, in the middle of a transparent canvas of that size.
///
/// ```swift
/// let filter = AspectScaledToFitSizeFilter(size: CGSize(width: 100, height: 100))
/// print(filter.identifier)
/// ```
public struct AspectScaledToFitSizeFilter: ImageFilter, ThrowingImageFilter, Sizable {
  /// The size of the result, in points.
  public let size: CGSize

  /// Makes the filter.
  ///
  /// - Parameter size: In points. A side that is smaller than a pixel becomes one pixel.
  public init(size: CGSize) { self.size = size }

  /// Returns the scaled image, with the scale `DataRequest.imageScale`.
  public func apply(_ image: Image) throws -> Image {
    try image.scaled(.fit, to: size, scale: DataRequest.imageScale)
  }
}

/// Scales an image so that it fills a size, and cuts off what is too much on both sides.
///
/// ```swift
/// let filter = AspectScaledToFillSizeFilter(size: CGSize(width: 100, height: 100))
/// print(filter.identifier)
/// ```
public struct AspectScaledToFillSizeFilter: ImageFilter, ThrowingImageFilter, Sizable {
  /// The size of the result, in points.
  public let size: CGSize

  /// Makes the filter.
  ///
  /// - Parameter size: In points. A side that is smaller than a pixel becomes one pixel.
  public init(size: CGSize) { self.size = size }

  /// Returns the scaled image, with the scale `DataRequest.imageScale`.
  public func apply(_ image: Image) throws -> Image {
    try image.scaled(.fill, to: size, scale: DataRequest.imageScale)
  }
}

/// Makes the corners of an image transparent.
///
/// ```swift
/// let filter = RoundedCornersFilter(radius: 8)
/// print(filter.identifier)
/// ```
public struct RoundedCornersFilter: ImageFilter, ThrowingImageFilter, Roundable {
  /// The radius in points.
  public let radius: CGFloat
  /// Whether the radius is divided by the scale of the image, so that it counts pixels.
  public let divideRadiusByImageScale: Bool

  /// Makes the filter.
  ///
  /// - Parameters:
  ///   - radius: At most half of the shorter side counts.
  ///   - divideRadiusByImageScale: Whether the radius is divided by the scale of the image. Default: `false`.
  public init(radius: CGFloat, divideRadiusByImageScale: Bool = false) {
    self.radius = radius
    self.divideRadiusByImageScale = divideRadiusByImageScale
  }

  /// The name of the type, the radius, and whether it is divided.
  public var identifier: String {
    "\(type(of: self))-radius:(\(radius.name))-divided:(\(divideRadiusByImageScale))"
  }

  /// Returns the image with round corners.
  public func apply(_ image: Image) throws -> Image {
    try image.rounded(radius: Double(divideRadiusByImageScale ? radius : radius * image.scale))
  }
}

/// Cuts the largest circle out of the middle of an image.
///
/// ```swift
/// print(CircleFilter().identifier)
/// ```
public struct CircleFilter: ImageFilter, ThrowingImageFilter {
  /// Makes the filter.
  public init() {}

  /// Returns the circle, in a square whose corners are transparent.
  public func apply(_ image: Image) throws -> Image { try image.roundedIntoCircle() }
}

/// Blurs an image.
///
/// ```swift
/// print(BlurFilter(blurRadius: 4).identifier)
/// ```
public struct BlurFilter: ImageFilter, ThrowingImageFilter {
  /// The standard deviation of the Gaussian function, in pixels.
  public let blurRadius: UInt

  /// Makes the filter.
  ///
  /// - Parameter blurRadius: In pixels. 0 changes nothing, and more than 100 counts as 100. Default: 10.
  public init(blurRadius: UInt = 10) { self.blurRadius = blurRadius }

  /// The name of the type and the radius.
  public var identifier: String { "\(type(of: self))-parameters:(inputRadius=\(blurRadius))" }

  /// Returns the blurred image, in the size of the original.
  public func apply(_ image: Image) throws -> Image { try image.blurred(sigma: Double(min(blurRadius, 100))) }
}

/// A filter that is a closure.
///
/// ```swift
/// let half = DynamicImageFilter("half") { image in
///   image.af.imageScaled(to: CGSize(width: image.size.width / 2, height: image.size.height / 2))
/// }
/// print(half.identifier)
/// ```
public struct DynamicImageFilter: ImageFilter {
  /// The name that was given.
  public let identifier: String
  /// The closure.
  public let filter: @Sendable (Image) -> Image

  /// Makes the filter.
  ///
  /// - Parameters:
  ///   - identifier: The name. Closures with the same name must have the same results.
  ///   - filter: Called on the thread that applies the filter.
  public init(_ identifier: String, filter: @escaping @Sendable (Image) -> Image) {
    self.identifier = identifier
    self.filter = filter
  }
}

/// Several filters that are applied one after the other.
public protocol CompositeImageFilter: ImageFilter {
  /// The filters, in their order.
  var filters: [any ImageFilter] { get }
}

extension CompositeImageFilter {
  /// The names of the filters, joined by `_`.
  public var identifier: String { filters.map(\.identifier).joined(separator: "_") }
  /// Applies the filters. One that cannot change the image is left out.
  public var filter: @Sendable (_ image: Image) -> Image {
    { image in filters.reduce(image) { $1.filter($0) } }
  }
  /// Applies the filters.
  public func apply(_ image: Image) throws -> Image { try filters.reduce(image) { try $1.apply($0) } }
}

/// Filters that are only known when the program runs.
///
/// ```swift
/// let filter = DynamicCompositeImageFilter(
///   AspectScaledToFillSizeFilter(size: CGSize(width: 64, height: 64)), CircleFilter())
/// print(filter.identifier)
/// ```
public struct DynamicCompositeImageFilter: CompositeImageFilter {
  /// The filters, in their order.
  public let filters: [any ImageFilter]

  /// Makes the filter. Without filters, it changes nothing.
  public init(_ filters: [any ImageFilter]) { self.filters = filters }
  /// Makes the filter.
  public init(_ filters: any ImageFilter...) { self.init(filters) }
}

/// Scales an image to exactly a size, and makes its corners transparent.
///
/// ```swift
/// let filter = ScaledToSizeWithRoundedCornersFilter(
///   size: CGSize(width: 100, height: 100), radius: 8)
/// print(filter.identifier)
/// ```
public struct ScaledToSizeWithRoundedCornersFilter: CompositeImageFilter {
  /// The filters, in their order.
  public let filters: [any ImageFilter]

  /// Makes the filter with the parameters of ``ScaledToSizeFilter`` and ``RoundedCornersFilter``.
  public init(size: CGSize, radius: CGFloat, divideRadiusByImageScale: Bool = false) {
    filters = [
      ScaledToSizeFilter(size: size),
      RoundedCornersFilter(radius: radius, divideRadiusByImageScale: divideRadiusByImageScale),
    ]
  }
}

/// Fills a size with an image, and makes its corners transparent.
///
/// ```swift
/// let filter = AspectScaledToFillSizeWithRoundedCornersFilter(
///   size: CGSize(width: 100, height: 100), radius: 8)
/// print(filter.identifier)
/// ```
public struct AspectScaledToFillSizeWithRoundedCornersFilter: CompositeImageFilter {
  /// The filters, in their order.
  public let filters: [any ImageFilter]

  /// Makes the filter with the parameters of ``AspectScaledToFillSizeFilter`` and ``RoundedCornersFilter``.
  public init(size: CGSize, radius: CGFloat, divideRadiusByImageScale: Bool = false) {
    filters = [
      AspectScaledToFillSizeFilter(size: size),
      RoundedCornersFilter(radius: radius, divideRadiusByImageScale: divideRadiusByImageScale),
    ]
  }
}

/// Scales an image to exactly a size, and cuts a circle out of it.
///
/// ```swift
/// print(ScaledToSizeCircleFilter(size: CGSize(width: 64, height: 64)).identifier)
/// ```
public struct ScaledToSizeCircleFilter: CompositeImageFilter {
  /// The filters, in their order.
  public let filters: [any ImageFilter]

  /// Makes the filter with the parameter of ``ScaledToSizeFilter``.
  public init(size: CGSize) { filters = [ScaledToSizeFilter(size: size), CircleFilter()] }
}

/// Fills a size with an image, and cuts a circle out of it.
///
/// ```swift
/// print(AspectScaledToFillSizeCircleFilter(size: CGSize(width: 64, height: 64)).identifier)
/// ```
public struct AspectScaledToFillSizeCircleFilter: CompositeImageFilter {
  /// The filters, in their order.
  public let filters: [any ImageFilter]

  /// Makes the filter with the parameter of ``AspectScaledToFillSizeFilter``.
  public init(size: CGSize) { filters = [AspectScaledToFillSizeFilter(size: size), CircleFilter()] }
}
