public import Alamofire
import CVips
public import Foundation

extension Image {
  /// Stretches each frame to a size in pixels, or fits it into the size, or fills the size with it.
  func scaled(_ mode: ScalingPlan.Mode, to size: CGSize, scale: CGFloat) throws(ImageError) -> Image {
    let plan = ScalingPlan(
      mode, fromWidth: pixelWidth, height: pixelHeight, toWidth: size.width.pixels(scale: scale),
      height: size.height.pixels(scale: scale))
    try limits.check(width: plan.canvasWidth, height: plan.canvasHeight, frames: frameCount)
    let work = content.work
    let placed = try Image.scaled(content, plan)
    return Image(mode == .fit ? try placed.withAlpha(work) : placed, like: self, scale: scale)
  }

  /// Carries out a plan.
  static func scaled(_ content: ImageContent, _ plan: ScalingPlan) throws(ImageError) -> PixelBuffer {
    let work = content.work
    let limit = content.limits.pixels / max(1, content.facts.frames)
    if let region = plan.region(ofWidth: content.facts.width, height: content.facts.height, limit: limit) {
      let cut = try content.decoded().placed(
        x: -region.x, y: -region.y, width: region.width, height: region.height, work)
      return try ImageContent(cut, content.limits).stretched(
        width: plan.canvasWidth, height: plan.canvasHeight)
    }
    return try content.stretched(width: plan.width, height: plan.height)
      .placed(x: plan.x, y: plan.y, width: plan.canvasWidth, height: plan.canvasHeight, work)
  }

  /// Makes the corners of each frame transparent, with a radius in pixels.
  func rounded(radius: Double) throws(ImageError) -> Image {
    let mask = RoundedRectangle(width: pixelWidth, height: pixelHeight, radius: radius)
    let work = content.work
    return Image(try content.decoded().masked(mask, work), like: self)
  }

  /// Cuts out the largest circle around the centre.
  func roundedIntoCircle() throws(ImageError) -> Image {
    let side = min(pixelWidth, pixelHeight)
    let work = content.work
    let pixels = try content.decoded()
    let square = try pixels.placed(
      x: -((pixelWidth - side) / 2), y: -((pixelHeight - side) / 2), width: side, height: side, work)
    let mask = RoundedRectangle(width: side, height: side, radius: Double(side) / 2)
    return Image(try square.masked(mask, work), like: self)
  }

  /// Blurs each frame with a standard deviation in pixels.
  func blurred(sigma: Double) throws(ImageError) -> Image {
    guard sigma > 0 else { return self }
    let work = content.work
    let pixels = try content.decoded().mapFrames { frame throws(ImageError) in
      try frame.withImage(work) { image throws(ImageError) in
        try VipsImage(cvips_blurred(image.reference, sigma)).pixels(work)
      }
    }
    return Image(pixels, like: self)
  }
}

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
