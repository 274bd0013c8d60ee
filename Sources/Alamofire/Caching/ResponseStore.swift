package import HTTPWire

/// Where a session keeps responses.
package protocol ResponseStore: AnyObject, Sendable {
  /// Seconds since 1970.
  var now: Int64 { get }
  /// Whether there may be something for a URL with this hash; quick, and true when nobody knows yet. The hash is not
  /// made where nothing is stored at all.
  func mayHold(_ hash: @autoclosure () -> UInt64) -> Bool
  /// What is there for a URL, as far as it can be had at once; `nil` when ``read(_:)`` has to look.
  func find(_ key: CacheKey) -> [StoredResponse]?
  /// What is there for a URL. May wait for a disk.
  func read(_ key: CacheKey) -> [StoredResponse]
  /// How many removals there were so far; a request notes it when it begins.
  var removalCount: UInt64 { get }
  /// Takes a response in place of another one of its kind, unless something was removed for its URL since there were so
  /// many removals. Quick where ``waits`` is false.
  func put(_ stored: StoredResponse, askedAfter removals: UInt64)
  /// Removes all that is there for a URL. Quick where ``waits`` is false.
  func remove(_ key: CacheKey)
  /// Whether ``put(_:askedAfter:)`` and ``remove(_:)`` may wait for a disk, or run code of a user.
  var waits: Bool { get }
}

extension ResponseStore {
  /// Takes a response that a server has confirmed; not one that it forbids to keep meanwhile.
  func putConfirmed(_ stored: StoredResponse, askedAfter removals: UInt64) {
    if stored.control.noStore, !stored.control.mustUnderstand {
      remove(stored.key)
    } else {
      put(stored, askedAfter: removals)
    }
  }
}
