import HTTPWire

/// The trailer fields of a request, which the code of the caller makes on another thread. A request that is sent again
/// has a new one, so that a late reply to the first sending is not used.
final class TrailerReply: Sendable {
  private let made = TrackedMutex<[HTTPHeader]?>(nil)

  /// The fields; `nil` until they are made.
  var fields: [HTTPHeader]? { made.withLock { $0 } }

  func set(_ fields: [HTTPHeader]) { made.withLock { $0 = fields } }
}
