import Alamofire
public import Foundation

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
