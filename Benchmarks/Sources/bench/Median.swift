import Foundation

extension [Double] {
  /// The middle value, or the mean of the two in the middle; 0 for an empty array.
  var median: Double {
    guard !isEmpty else { return 0 }
    let sorted = sorted()
    return (sorted[count / 2] + sorted[(count - 1) / 2]) / 2
  }
}

extension Double {
  /// Returns the value rounded to a number of digits after the point.
  func rounded(toDigits digits: Int) -> Double {
    let scale = pow(10, Double(digits))
    return (self * scale).rounded() / scale
  }
}
