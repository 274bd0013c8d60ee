import Foundation

/// The steps that bring a frame to a size: it is stretched, then placed on a canvas.
struct ScalingPlan: Equatable {
  /// The size that the frame is stretched to.
  var width: Int
  var height: Int
  /// The size of the result.
  var canvasWidth: Int
  var canvasHeight: Int

  /// The place of the stretched frame on the canvas; it is centred.
  var x: Int { (canvasWidth - width) / 2 }
  var y: Int { (canvasHeight - height) / 2 }

  enum Mode {
    /// The proportions may change.
    case stretch
    /// All of the frame is on the canvas.
    case fit
    /// The frame covers the canvas.
    case fill
  }

  /// Plans how pixels of one size become a canvas of another.
  init(_ mode: Mode, fromWidth: Int, height fromHeight: Int, toWidth: Int, height toHeight: Int) {
    (canvasWidth, canvasHeight) = (toWidth, toHeight)
    (width, height) = (toWidth, toHeight)
    guard mode != .stretch, fromWidth > 0, fromHeight > 0 else { return }
    let horizontal = Double(toWidth) / Double(fromWidth)
    let vertical = Double(toHeight) / Double(fromHeight)
    let factor = mode == .fit ? min(horizontal, vertical) : max(horizontal, vertical)
    width = Self.scaled(fromWidth, factor, atLeast: mode == .fill ? toWidth : 1)
    height = Self.scaled(fromHeight, factor, atLeast: mode == .fill ? toHeight : 1)
    if mode == .fit { (width, height) = (min(width, toWidth), min(height, toHeight)) }
  }

  /// Returns the part of a frame that is cut out before it is stretched, if the frame would become much larger than the
  /// canvas, or larger than it may be. Otherwise it is stretched first, because then less is decoded.
  ///
  /// - Parameter limit: The most pixels that a frame may have. The canvas has no more.
  func region(
    ofWidth fromWidth: Int, height fromHeight: Int, limit: Int = .max
  ) -> (x: Int, y: Int, width: Int, height: Int)? {
    let stretched = Double(width) * Double(height)
    let canvas = Double(canvasWidth) * Double(canvasHeight)
    guard stretched > min(8 * canvas, Double(limit)) else { return nil }
    let cutWidth = max(1, Int((Double(fromWidth) * Double(canvasWidth) / Double(width)).rounded()))
    let cutHeight = max(1, Int((Double(fromHeight) * Double(canvasHeight) / Double(height)).rounded()))
    return ((fromWidth - cutWidth) / 2, (fromHeight - cutHeight) / 2, cutWidth, cutHeight)
  }

  /// Returns the size of a frame that is made smaller, if necessary, so that its longer side has this length.
  static func shrinking(width: Int, height: Int, toSide side: Int) -> (width: Int, height: Int) {
    let longest = max(width, height)
    guard longest > side else { return (width, height) }
    let factor = Double(side) / Double(longest)
    return (scaled(width, factor, atLeast: 1), scaled(height, factor, atLeast: 1))
  }

  private static func scaled(_ side: Int, _ factor: Double, atLeast least: Int) -> Int {
    // A product beyond all integers exceeds every limit, too.
    let product = (Double(side) * factor).rounded()
    return max(least, product < Double(Int.max) ? Int(product) : .max)
  }
}

extension CGFloat {
  /// Returns the number of pixels for a number of points: at least 1, and 1 for what is not a number.
  func pixels(scale: CGFloat) -> Int {
    let product = (self * scale).rounded()
    guard product > 1 else { return 1 }
    return product < 10_000_000 ? Int(product) : 10_000_000
  }
}

/// A rectangle with round corners, as what it covers of each pixel.
struct RoundedRectangle {
  let width: Int
  let height: Int
  /// The radius in pixels, at most half of the shorter side.
  let radius: Double

  init(width: Int, height: Int, radius: Double) {
    self.width = width
    self.height = height
    self.radius = radius > 0 ? min(radius, Double(min(width, height)) / 2) : 0
  }

  /// Returns the columns of a row that are not covered in full, which are the first and the last ones.
  func partialColumns(ofRow row: Int) -> [Int] {
    let distance = radius - Double(min(row, height - 1 - row))
    guard distance > 0 else { return [] }
    // The arc crosses the row's outer edge there. The pixels behind it are inside, with all their corners.
    let count = Int((radius - (radius * radius - distance * distance).squareRoot()).rounded(.up))
    let left = 0..<min(count, width)
    return Array(left) + Array(max(left.upperBound, width - count)..<width)
  }

  /// Returns the covered part of a pixel, from 0 to 255: the share of 16 times 16 points in it.
  func coverage(column: Int, row: Int) -> Int {
    let fromRight = column >= width - column - 1
    let fromBottom = row >= height - row - 1
    let x = Double(fromRight ? width - 1 - column : column)
    let y = Double(fromBottom ? height - 1 - row : row)
    guard x < radius, y < radius else { return 255 }
    // The distances of the pixel's nearest and farthest corners from the centre of the circle.
    let nearest = hypot(max(0, radius - x - 1), max(0, radius - y - 1))
    if hypot(radius - x, radius - y) <= radius { return 255 }
    if nearest >= radius { return 0 }
    var inside = 0
    for sample in 0..<256 {
      let horizontal = cornerDistance(x + sampleOffset(sample & 15), of: width)
      let vertical = cornerDistance(y + sampleOffset(sample >> 4), of: height)
      if hypot(horizontal, vertical) <= radius { inside += 1 }
    }
    return (inside * 255 + 128) / 256
  }

  /// Returns how far a place on a side is in one of the corners: its distance from what is between their centres.
  private func cornerDistance(_ place: Double, of side: Int) -> Double {
    max(0, radius - place, place - (Double(side) - radius))
  }

  private func sampleOffset(_ index: Int) -> Double { (Double(index) + 0.5) / 16 }
}
