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
