import Foundation
import ImageDecoding

/// Files of images: what is accepted has as many pixels as its head says, within the limits.
enum ImageReading {
  /// Reads the bytes as a file, decodes all of it, and scales it.
  static func check(_ bytes: UnsafeRawBufferPointer) {
    let limits = ImageLimits(pixels: 1_000_000, frames: 20, bytes: 1 << 16, time: .seconds(5))
    guard let image = try? Image(data: Data(bytes), limits: limits) else { return }
    let count = image.pixelWidth * image.pixelHeight * image.frameCount
    precondition(image.frameCount <= limits.frames && count <= limits.pixels, "the limits do not hold")
    let small = try? ImageVariants(.init("small", longestSide: 7)).make(of: image)
    precondition(small.map { $0["small"]?.pixelWidth ?? 8 <= 7 } ?? true, "the small image is large")
    guard let pixels = try? image.pixels(as: .rgba) else { return }
    precondition(pixels.count == count * 4, "\(pixels.count) bytes for \(image)")
    precondition(image.frameDurations.count == (image.frameCount > 1 ? image.frameCount : 0), "\(image)")
  }
}
