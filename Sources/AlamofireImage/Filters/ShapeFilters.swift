public import Foundation

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
