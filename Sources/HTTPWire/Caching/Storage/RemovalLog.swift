/// The removals from a cache. A request remembers their number at its beginning; its response is not stored if there
/// was a removal for its URL since. Counted, because a second is too long: a GET may follow a POST in it.
package struct RemovalLog: Sendable {
  private static let limit = 4_096

  /// The number of removals so far.
  package private(set) var count: UInt64 = 0
  /// Of the hash of each URL, the number of its last removal.
  private var numbers: [UInt64: UInt64] = [:]
  /// The number of the last removal of all entries, including the hashes that are not listed.
  private var numberOfAll: UInt64 = 0

  package init() {}

  /// Counts a removal of the responses for a URL.
  package mutating func note(_ hash: UInt64) {
    count += 1
    if numbers.count >= Self.limit {
      numbers.removeAll()
      numberOfAll = count
    }
    numbers[hash] = count
  }

  /// Counts a removal of all responses.
  package mutating func noteAll() {
    count += 1
    numbers.removeAll()
    numberOfAll = count
  }

  /// Whether the responses for a URL were removed after removal number `count`.
  package func concerns(_ hash: UInt64, after count: UInt64) -> Bool {
    count < max(numbers[hash] ?? 0, numberOfAll)
  }
}
