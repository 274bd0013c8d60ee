/// The trailer fields of a request (RFC 9110 §6.5), which are made when its content has been sent.
package struct RequestTrailers: Sendable {
  /// The names that the head of the request announces in `Trailer` (RFC 9110 §6.6.2).
  package let names: [String]
  /// Begins to make the fields, once for each time that the content was sent to its end. Called on the thread of the
  /// transport, and returns at once. The completion may be called on any thread.
  package let make: @Sendable (_ completion: @escaping @Sendable ([HTTPHeader]) -> Void) -> Void

  package init(
    names: [String],
    make: @escaping @Sendable (_ completion: @escaping @Sendable ([HTTPHeader]) -> Void) -> Void
  ) {
    self.names = names
    self.make = make
  }
}
