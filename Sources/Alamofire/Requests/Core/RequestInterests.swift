import Synchronization

/// The parts of its course that a request makes known while it runs. Most requests make none known.
struct RequestInterests: OptionSet, Sendable {
  let rawValue: UInt8

  /// The number of bytes that have moved.
  static let progress = RequestInterests(rawValue: 1)
  /// The head of the response, before its body is read.
  static let head = RequestInterests(rawValue: 2)
  /// The body of the response as it comes; it is not kept then.
  static let body = RequestInterests(rawValue: 4)
  /// The events of this request, for a monitor or a handler of its own.
  static let events = RequestInterests(rawValue: 8)
}

extension RequestCore {
  /// Whether any of these interests was added.
  func has(_ interests: RequestInterests) -> Bool {
    self.interests.load(ordering: .acquiring) & interests.rawValue != 0
  }

  func add(_ interest: RequestInterests) {
    interests.bitwiseOr(interest.rawValue, ordering: .releasing)
  }

  func remove(_ interest: RequestInterests) {
    interests.bitwiseAnd(~interest.rawValue, ordering: .releasing)
  }
}
