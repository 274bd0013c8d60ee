/// The reason why a file cannot be read whole.
package struct FileReadingFailure: Error, Sendable, Equatable {
  package let kind: TransportFailure.Kind
  /// The reason, for the parentheses of a sentence.
  package let reason: String

  package init(_ kind: TransportFailure.Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }
}
