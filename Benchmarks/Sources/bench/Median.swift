import Foundation

extension [Double] {
  /// The middle value, or the mean of the two in the middle; 0 when there is none.
  var median: Double {
    guard !isEmpty else { return 0 }
    let sorted = sorted()
    return (sorted[count / 2] + sorted[(count - 1) / 2]) / 2
  }
}

extension Double {
  /// The nearest number with that many digits after the point.
  func rounded(toDigits digits: Int) -> Double {
    let scale = pow(10, Double(digits))
    return (self * scale).rounded() / scale
  }
}
