public import Foundation

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
