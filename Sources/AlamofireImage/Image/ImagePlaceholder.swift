import Foundation

/// A colour in sRGB with 8 bits per sample.
///
/// ```swift
/// print(ImageColor(red: 255, green: 127, blue: 0).hex)
/// ```
public struct ImageColor: Sendable, Hashable {
  /// Red, from 0 to 255.
  public var red: UInt8
  /// Green, from 0 to 255.
  public var green: UInt8
  /// Blue, from 0 to 255.
  public var blue: UInt8
  /// The opacity, from 0 to 255.
  public var alpha: UInt8

  /// Makes a colour, which is opaque by default.
  public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
    self.red = red
    self.green = green
    self.blue = blue
    self.alpha = alpha
  }

  /// The colour for HTML and CSS, such as `#ff7f00`, or `#ff7f0080` if it is not opaque.
  public var hex: String {
    let samples = alpha == 255 ? [red, green, blue] : [red, green, blue, alpha]
    return "#" + samples.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

// What can be shown while an image is loaded.
extension Image {
  /// Returns the mean of all pixels of the first frame, each weighted by its opacity.
  ///
  /// - Throws: ``ImageError``.
  public func averageColor() throws(ImageError) -> ImageColor {
    let side = ScalingPlan.shrinking(width: pixelWidth, height: pixelHeight, toSide: 64)
    let pixels = try content.stretched(width: side.width, height: side.height).withAlpha()
    return pixels.withBytes { samples in
      var sums = [0, 0, 0, 0]
      for pixel in stride(from: 0, to: pixels.layout.frameBytes, by: 4) {
        let alpha = Int(samples[pixel + 3])
        for band in 0..<3 { sums[band] += Int(samples[pixel + band]) * alpha }
        sums[3] += alpha
      }
      let weight = max(1, sums[3])
      let count = max(1, pixels.layout.frameBytes / 4)
      return ImageColor(
        red: UInt8(clamping: (sums[0] + weight / 2) / weight),
        green: UInt8(clamping: (sums[1] + weight / 2) / weight),
        blue: UInt8(clamping: (sums[2] + weight / 2) / weight),
        alpha: UInt8(clamping: (sums[3] + count / 2) / count))
    }
  }

  /// Returns a small, blurred image of the first frame, which can be shown enlarged while the image is loaded.
  ///
  /// - Parameter longestSide: In pixels, from 1 to 100. Default: 20, with which a JPEG has some 400 bytes.
  /// - Throws: ``ImageError``.
  public func placeholder(longestSide: Int = 20) throws(ImageError) -> Image {
    let side = ScalingPlan.shrinking(
      width: pixelWidth, height: pixelHeight, toSide: min(100, max(1, longestSide)))
    let small = Image(try content.stretched(width: side.width, height: side.height), like: self, scale: 1)
    return try (small.frame(0) ?? small).blurred(sigma: 1)
  }

  /// Returns a `data:` URL (RFC 2397) with a file of the image, for HTML and CSS.
  ///
  /// - Parameters:
  ///   - format: The format of the file.
  ///   - quality: From 0 to 1, for formats that lose details. Default: 0.5.
  /// - Throws: ``ImageError``.
  public func dataURL(as format: ImageFormat, quality: Double = 0.5) throws(ImageError) -> String {
    "data:\(format.mediaType);base64,\(try encode(as: format, quality: quality).base64EncodedString())"
  }
}
