import CVips
import Foundation

extension Image {
  /// Stretches each frame to a size in pixels, or fits it into the size, or fills the size with it.
  func scaled(_ mode: ScalingPlan.Mode, to size: CGSize, scale: CGFloat) throws(ImageError) -> Image {
    let plan = ScalingPlan(
      mode, fromWidth: pixelWidth, height: pixelHeight, toWidth: size.width.pixels(scale: scale),
      height: size.height.pixels(scale: scale))
    try limits.check(width: plan.canvasWidth, height: plan.canvasHeight, frames: frameCount)
    let stretched = try content.stretched(width: plan.width, height: plan.height)
    let placed = try Image.placed(stretched, plan)
    return Image(mode == .fit ? try placed.withAlpha() : placed, like: self, scale: scale)
  }

  /// Places a stretched image on the canvas of a plan.
  static func placed(_ pixels: PixelBuffer, _ plan: ScalingPlan) throws(ImageError) -> PixelBuffer {
    try pixels.placed(x: plan.x, y: plan.y, width: plan.canvasWidth, height: plan.canvasHeight)
  }

  /// Makes the corners of each frame transparent, with a radius in pixels.
  func rounded(radius: Double) throws(ImageError) -> Image {
    let mask = RoundedRectangle(width: pixelWidth, height: pixelHeight, radius: radius)
    return Image(try content.decoded().masked(mask), like: self)
  }

  /// Cuts out the largest circle around the centre.
  func roundedIntoCircle() throws(ImageError) -> Image {
    let side = min(pixelWidth, pixelHeight)
    let pixels = try content.decoded()
    let square = try pixels.placed(
      x: -((pixelWidth - side) / 2), y: -((pixelHeight - side) / 2), width: side, height: side)
    let mask = RoundedRectangle(width: side, height: side, radius: Double(side) / 2)
    return Image(try square.masked(mask), like: self)
  }

  /// Blurs each frame with a standard deviation in pixels.
  func blurred(sigma: Double) throws(ImageError) -> Image {
    guard sigma > 0 else { return self }
    var frames: [PixelBuffer] = []
    for index in 0..<frameCount {
      guard let frame = try frame(index) else { continue }
      let work = frame.content.work
      let pixels = try frame.content.decoded()
      frames.append(
        try pixels.withImage(work) { image throws(ImageError) in
          try VipsImage(cvips_blurred(image.reference, sigma)).pixels(work)
        })
    }
    return Image(try joined(frames), like: self)
  }

  /// Puts frames of one size together again.
  private func joined(_ frames: [PixelBuffer]) throws(ImageError) -> PixelBuffer {
    guard let first = frames.first else { return try content.decoded() }
    guard frames.count > 1 else { return first }
    var layout = first.layout
    layout.frames = frames.count
    return try PixelBuffer(layout, delays: content.facts.delays, loop: content.facts.loop) { target in
      for (index, frame) in frames.enumerated() where frame.layout == first.layout {
        frame.copy(to: target, at: index * layout.frameBytes)
      }
    }
  }
}
