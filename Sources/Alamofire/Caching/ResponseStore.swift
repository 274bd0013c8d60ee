package import HTTPWire

/// The storage of a session for responses.
package protocol ResponseStore: AnyObject, Sendable {
  /// Seconds since 1970.
  var now: Int64 { get }
  /// Whether there may be a response for a URL with this hash; fast, and true if the store is not open yet. The hash
  /// is not computed if nothing is stored.
  func mayHold(_ hash: @autoclosure () -> UInt64) -> Bool
  /// Returns the responses for a URL if this takes no waiting; `nil` if ``read(_:)`` has to be called.
  func find(_ key: CacheKey) -> [StoredResponse]?
  /// Returns the responses for a URL. May wait for a disk.
  func read(_ key: CacheKey) -> [StoredResponse]
  /// The number of removals so far; a request notes it when it begins.
  var removalCount: UInt64 { get }
  /// Stores a response in place of an equivalent one, unless something was removed for its URL after removal number
  /// `removals`. Fast if ``waits`` is false.
  func put(_ stored: StoredResponse, askedAfter removals: UInt64)
  /// Removes all responses for a URL. Fast if ``waits`` is false.
  func remove(_ key: CacheKey)
  /// Whether ``put(_:askedAfter:)`` and ``remove(_:)`` may wait for a disk, or run code of a user.
  var waits: Bool { get }
}

extension ResponseStore {
  /// Stores a response that a server has validated, unless its updated fields forbid it.
  func putConfirmed(_ stored: StoredResponse, askedAfter removals: UInt64) {
    if stored.control.noStore, !stored.control.mustUnderstand {
      remove(stored.key)
    } else {
      put(stored, askedAfter: removals)
    }
  }
}
