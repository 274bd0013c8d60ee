@testable import AlamofireImage
import Foundation
import Testing

@Suite("Plans of sizes, and round corners")
struct GeometryTests {
  /// Returns the width, the height, the canvas and the place of a plan.
  private func plan(_ mode: ScalingPlan.Mode, _ from: (Int, Int), _ to: (Int, Int)) -> [Int] {
    let plan = ScalingPlan(mode, fromWidth: from.0, height: from.1, toWidth: to.0, height: to.1)
    return [plan.width, plan.height, plan.canvasWidth, plan.canvasHeight, plan.x, plan.y]
  }

  @Test("A frame that is stretched becomes its canvas")
  func stretching() {
    #expect(plan(.stretch, (40, 30), (7, 9)) == [7, 9, 7, 9, 0, 0])
    #expect(plan(.stretch, (1, 1), (70, 9)) == [70, 9, 70, 9, 0, 0])
  }

  @Test("A frame that is fitted is as large as the smaller of both factors permits, in the middle")
  func fitting() {
    #expect(plan(.fit, (40, 20), (20, 20)) == [20, 10, 20, 20, 0, 5])
    #expect(plan(.fit, (20, 40), (20, 20)) == [10, 20, 20, 20, 5, 0])
    #expect(plan(.fit, (40, 20), (20, 13)) == [20, 10, 20, 13, 0, 1])
    #expect(plan(.fit, (20, 40), (13, 20)) == [10, 20, 13, 20, 1, 0])
    #expect(plan(.fit, (10, 5), (30, 40)) == [30, 15, 30, 40, 0, 12], "it is enlarged")
    #expect(plan(.fit, (1_000, 1), (20, 20)) == [20, 1, 20, 20, 0, 9], "one row at least")
    #expect(plan(.fit, (1, 1_000), (20, 20)) == [1, 20, 20, 20, 9, 0], "one column at least")
    #expect(plan(.fit, (1_000, 1), (1, 1)) == [1, 1, 1, 1, 0, 0])
  }

  @Test("A frame that fills its canvas covers it, and the same is cut off on both sides")
  func filling() {
    #expect(plan(.fill, (40, 20), (20, 20)) == [40, 20, 20, 20, -10, 0])
    #expect(plan(.fill, (20, 40), (20, 20)) == [20, 40, 20, 20, 0, -10])
    #expect(plan(.fill, (40, 20), (11, 10)) == [20, 10, 11, 10, -4, 0])
    #expect(plan(.fill, (20, 40), (10, 11)) == [10, 20, 10, 11, 0, -4])
    #expect(plan(.fill, (10, 5), (30, 40)) == [80, 40, 30, 40, -25, 0])
    #expect(plan(.fill, (1_000, 999), (10, 10)) == [10, 10, 10, 10, 0, 0])
  }

  @Test("Sizes beyond the largest integer are the largest integer")
  func hugeSizes() {
    let huge = 2_000_000_000_000_000_000
    #expect(plan(.fill, (100, 1_000), (.max, 1))[0...1] == [.max, .max])
    #expect(plan(.fill, (100, 1_000), (huge, 1))[0...1] == [huge, .max])
    #expect(plan(.fit, (1_000, 100), (.max, .max))[0] == .max)
    let size = ScalingPlan.shrinking(width: .max, height: 3, toSide: .max - 1)
    #expect(size.width > .max / 2 && size.height == 3)
  }

  @Test("A frame without pixels is stretched", arguments: [ScalingPlan.Mode.fit, .fill, .stretch])
  func emptyFrames(mode: ScalingPlan.Mode) {
    for from in [(0, 5), (5, 0), (0, 0)] {
      #expect(plan(mode, from, (6, 7)) == [6, 7, 6, 7, 0, 0], "\(from)")
    }
  }

  @Test("What is cut out is the middle, and has the nearest number of pixels, one at least")
  func regions() {
    func region(_ from: (Int, Int), _ to: (Int, Int)) -> [Int]? {
      ScalingPlan(.fill, fromWidth: from.0, height: from.1, toWidth: to.0, height: to.1)
        .region(ofWidth: from.0, height: from.1).map { [$0.x, $0.y, $0.width, $0.height] }
    }
    #expect(region((1_000, 10), (20, 5)) == [480, 0, 40, 10])
    #expect(region((10, 1_000), (5, 20)) == [0, 480, 10, 40])
    #expect(region((1_001, 10), (20, 5)) == [480, 0, 40, 10])
    #expect(region((1_000, 3), (5, 10)) == [499, 0, 2, 3], "one and a half columns")
    #expect(region((3, 1_000), (10, 5)) == [0, 499, 3, 2], "one and a half rows")
    #expect(region((1_000, 1), (1, 100)) == [499, 0, 1, 1], "a hundredth of a column")
    #expect(region((1, 1_000), (100, 1)) == [0, 499, 1, 1], "a hundredth of a row")
    #expect(region((1_000, 100), (4, 4)) == [450, 0, 100, 100])
    #expect(region((1_000, 1_000), (4, 4)) == nil)
    // The canvas is not a square, so that its sides cannot be exchanged.
    #expect(region((400, 10), (8, 4)) == [190, 0, 20, 10])
    #expect(region((100, 10), (6, 4)) == nil)
    // The frame becomes 45 by 30, or 1,350 pixels.
    for (limit, isCut) in [(1_350, false), (1_349, true), (900, true)] {
      let plan = ScalingPlan(.fill, fromWidth: 30, height: 20, toWidth: 30, height: 30)
      let region = plan.region(ofWidth: 30, height: 20, limit: limit)
      #expect(
        region.map { [$0.x, $0.y, $0.width, $0.height] } == (isCut ? [5, 0, 20, 20] : nil), "\(limit)")
    }
  }

  @Test("Frames shrink so that the longer side has the length, and do not grow")
  func shrinking() {
    func shrunk(_ width: Int, _ height: Int, _ side: Int) -> [Int] {
      let size = ScalingPlan.shrinking(width: width, height: height, toSide: side)
      return [size.width, size.height]
    }
    #expect(shrunk(100, 50, 101) == [100, 50])
    #expect(shrunk(100, 50, 100) == [100, 50])
    #expect(shrunk(100, 50, 99) == [99, 50])
    #expect(shrunk(50, 100, 99) == [50, 99])
    #expect(shrunk(100, 30, 50) == [50, 15])
    #expect(shrunk(30, 100, 50) == [15, 50])
    #expect(shrunk(1_000, 1, 10) == [10, 1])
    #expect(shrunk(1, 1_000, 10) == [1, 10])
  }

  @Test("Points become pixels within their bounds")
  func pixels() {
    let sides: [(CGFloat, CGFloat, Int)] = [
      (0.4, 1, 1), (0.6, 1, 1), (1, 1, 1), (1.4, 1, 1), (1.5, 1, 2), (2, 1, 2), (2.49, 1, 2), (2.5, 1, 3),
      (0.4, 3, 1), (0.5, 3, 2), (10, 2, 20), (10, 0.25, 3), (-4, -1, 4), (.nan, 1, 1),
      (.infinity, 1, 10_000_000),
      (12_345, 1, 12_345), (9_999_998, 1, 9_999_998), (9_999_999, 1, 9_999_999), (10_000_000, 1, 10_000_000),
      (10_000_001, 1, 10_000_000), (1e300, 1e300, 10_000_000),
    ]
    for (points, scale, pixels) in sides {
      #expect(points.pixels(scale: scale) == pixels, "\(points) points at \(scale)")
    }
  }

  @Test(
    "The coverage of a pixel is the share of its 256 points that are inside of the shape",
    arguments: [
      (12, 10, 3.0), (12, 10, 0.0), (12, 10, 0.4), (12, 10, 4.6), (9, 9, 4.5), (11, 6, 3.0), (6, 11, 2.5),
      (30, 31, 15.0), (1, 1, 0.5), (2, 1, 0.5), (5, 40, 2.5), (8, 8, 1.0),
    ])
  func coverage(width: Int, height: Int, radius: Double) {
    let shape = RoundedRectangle(width: width, height: height, radius: radius)
    #expect((shape.width, shape.height, shape.radius) == (width, height, radius))
    for row in 0..<height {
      let partial = shape.partialColumns(ofRow: row)
      #expect(partial == Set(partial).sorted(), "each column once, in row \(row)")
      for column in 0..<width {
        let expected = pointsInside(column, row, width, height, radius)
        let coverage = shape.coverage(column: column, row: row)
        #expect(coverage == (expected * 255 + 128) / 256, "(\(column), \(row))")
        if expected < 256 { #expect(partial.contains(column), "(\(column), \(row)) is masked") }
      }
    }
  }

  /// Counts the points of a pixel, 16 in each direction, whose distance from the rectangle without its border of the
  /// radius is at most the radius.
  private func pointsInside(_ column: Int, _ row: Int, _ width: Int, _ height: Int, _ radius: Double) -> Int {
    var count = 0
    for point in 0..<256 {
      let x = Double(column) + (Double(point % 16) + 0.5) / 16
      let y = Double(row) + (Double(point / 16) + 0.5) / 16
      let nearestX = min(max(x, radius), Double(width) - radius)
      let nearestY = min(max(y, radius), Double(height) - radius)
      if hypot(x - nearestX, y - nearestY) <= radius || radius == 0 { count += 1 }
    }
    return count
  }

  @Test("Only the columns up to the arc may be covered in part")
  func partialColumns() {
    func columns(_ radius: Double, _ row: Int) -> [Int] {
      RoundedRectangle(width: 10, height: 9, radius: radius).partialColumns(ofRow: row)
    }
    #expect(columns(2, 0) == [0, 1, 8, 9])
    #expect(columns(2, 1) == [0, 9])
    #expect(columns(2, 2) == [])
    #expect(columns(2, 6) == [])
    #expect(columns(2, 7) == [0, 9])
    #expect(columns(2, 8) == [0, 1, 8, 9])
    #expect(columns(2.2, 0) == [0, 1, 2, 7, 8, 9])
    #expect(columns(2.2, 2) == [0, 9])
    #expect(columns(2.2, 3) == [])
    #expect(columns(0, 0) == [])
    #expect(columns(4.5, 0) == Array(0..<10))
    #expect(columns(4.5, 4) == [0, 9])
    #expect(RoundedRectangle(width: 3, height: 3, radius: 9).partialColumns(ofRow: 0) == [0, 1, 2])
  }

  @Test("The radius is at least 0, and at most half of the shorter side")
  func radius() {
    let radii: [(Double, Double)] = [
      (-1, 0), (0, 0), (.nan, 0), (0.2, 0.2), (1, 1), (3.5, 3.5), (3.6, 3.5), (.infinity, 3.5),
    ]
    for (given, expected) in radii {
      #expect(RoundedRectangle(width: 7, height: 20, radius: given).radius == expected, "\(given)")
      #expect(RoundedRectangle(width: 20, height: 7, radius: given).radius == expected, "\(given)")
    }
  }
}
