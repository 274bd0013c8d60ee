public import Alamofire
public import Foundation

extension Image: AlamofireExtended {}

// Upstream's extensions. What cannot be decoded is returned unchanged; `filtered(by:)` and `apply(_:)` throw.
extension AlamofireExtension where ExtendedType == Image {
  /// Makes an image from the bytes of a file, or returns `nil` if they are none.
  public static func threadSafeImage(with data: Data, scale: CGFloat = 1) -> Image? {
    try? Image(data: data, scale: scale)
  }

  /// Whether the pixels are decoded.
  public var isInflated: Bool { type.content.isDecoded }

  /// Decodes the pixels for all copies of the image. Does nothing if they are decoded, or cannot be.
  public func inflate() { _ = try? type.content.decoded() }

  /// Whether the pixels have alpha.
  public var containsAlphaComponent: Bool { type.content.facts.hasAlpha }

  /// Whether the pixels have no alpha.
  public var isOpaque: Bool { !containsAlphaComponent }

  /// Returns the image in exactly this size; its proportions may change.
  ///
  /// - Parameters:
  ///   - size: In points. A side that is smaller than a pixel becomes one pixel.
  ///   - scale: The pixels per point of the result. Default: `DataRequest.imageScale`.
  /// - Returns: The result; the image itself if it cannot be decoded, or if the result would exceed its limits.
  public func imageScaled(to size: CGSize, scale: CGFloat? = nil) -> Image {
    (try? type.scaled(.stretch, to: size, scale: scale ?? DataRequest.imageScale)) ?? type
  }

  /// Returns the image in the middle of a transparent canvas of exactly this size, as large as it fits.
  ///
  /// The parameters and the result of a failure are the same as for ``imageScaled(to:scale:)``.
  public func imageAspectScaled(toFit size: CGSize, scale: CGFloat? = nil) -> Image {
    (try? type.scaled(.fit, to: size, scale: scale ?? DataRequest.imageScale)) ?? type
  }

  /// Returns the image in exactly this size, which it covers; what is too much is cut off on both sides.
  ///
  /// The parameters and the result of a failure are the same as for ``imageScaled(to:scale:)``.
  public func imageAspectScaled(toFill size: CGSize, scale: CGFloat? = nil) -> Image {
    (try? type.scaled(.fill, to: size, scale: scale ?? DataRequest.imageScale)) ?? type
  }

  /// Returns the image with round, transparent corners.
  ///
  /// - Parameters:
  ///   - radius: In points; in pixels if `divideRadiusByImageScale`. At most half of the shorter side counts.
  ///   - divideRadiusByImageScale: Whether the radius is divided by the scale of the image. Default: `false`.
  /// - Returns: The result; the image itself if it cannot be decoded.
  public func imageRounded(withCornerRadius radius: CGFloat, divideRadiusByImageScale: Bool = false) -> Image
  {
    (try? type.rounded(radius: Double(divideRadiusByImageScale ? radius : radius * type.scale))) ?? type
  }

  /// Returns the largest circle around the centre of the image; what is around it is transparent.
  ///
  /// - Returns: The result, a square; the image itself if it cannot be decoded.
  public func imageRoundedIntoCircle() -> Image { (try? type.roundedIntoCircle()) ?? type }
}
