/// Wrong arguments, and the sentence that says so.
package struct UsageError: Error, Equatable {
  /// The sentence.
  package let message: String

  package init(_ message: String) {
    self.message = message
  }
}
