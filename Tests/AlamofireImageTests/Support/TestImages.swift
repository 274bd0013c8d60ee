import AlamofireImage
import Foundation

/// A picture in memory that tests make: its samples follow from their places.
struct Drawing {
  let width: Int
  let height: Int
  let bands: Int
  private(set) var samples: [UInt8]

  /// Draws a gradient: red grows to the right, green to the bottom, blue is constant, and alpha is 255.
  init(gradientOf width: Int, _ height: Int, bands: Int = 3) {
    self.init(width, height, bands: bands) { x, y in
      let red = width > 1 ? x * 255 / (width - 1) : 0
      let green = height > 1 ? y * 255 / (height - 1) : 0
      return [UInt8(red), UInt8(green), 80, 255]
    }
  }

  /// Draws pixels with the same samples.
  init(of samples: [UInt8], _ width: Int, _ height: Int) {
    self.init(width, height, bands: samples.count) { _, _ in samples }
  }

  init(_ width: Int, _ height: Int, bands: Int, _ pixel: (_ x: Int, _ y: Int) -> [UInt8]) {
    self.width = width
    self.height = height
    self.bands = bands
    samples = []
    for y in 0..<height {
      for x in 0..<width { samples += pixel(x, y).prefix(bands) }
    }
  }

  func image(scale: CGFloat = 1, limits: ImageLimits = .default) throws -> Image {
    try Image(
      pixels: Data(samples), width: width, height: height,
      format: bands == 4 ? .rgba : bands == 3 ? .rgb : .grey,
      scale: scale, limits: limits)
  }

  func file(_ format: ImageFormat = .png, quality: Double = 0.9) throws -> Data {
    try image().encode(as: format, quality: quality)
  }
}

extension Image {
  /// Returns the samples of one pixel: red, green, blue, alpha.
  func pixel(_ x: Int, _ y: Int) throws -> [UInt8] {
    let pixels = try pixels(as: .rgba)
    let start = pixels.startIndex + (y * pixelWidth + x) * 4
    return Array(pixels[start..<start + 4])
  }

  /// Returns the largest difference between the samples of two images of the same size.
  func greatestDifference(to other: Image) throws -> Int {
    let (first, second) = (try pixels(as: .rgba), try other.pixels(as: .rgba))
    guard first.count == second.count else { return .max }
    return zip(first, second).lazy.map { abs(Int($0) - Int($1)) }.max() ?? 0
  }
}
