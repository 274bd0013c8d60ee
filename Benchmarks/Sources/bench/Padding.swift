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
