extension String {
  /// Returns the text with spaces in front, so that numbers are aligned on the right.
  func leftPadded(to width: Int) -> String {
    String(repeating: " ", count: max(0, width - count)) + self
  }

  /// Returns the text with spaces at its end, so that names are aligned on the left.
  func rightPadded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}

extension [String] {
  /// Returns a line of a table: names aligned left in columns of the given widths, then numbers aligned right.
  func aligned(names: [Int], numbers: Int) -> String {
    enumerated().map { place, cell in
      place < names.count ? cell.rightPadded(to: names[place]) : cell.leftPadded(to: numbers)
    }.joined(separator: " ")
  }
}
