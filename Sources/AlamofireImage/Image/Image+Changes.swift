import CVips
import Foundation

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
