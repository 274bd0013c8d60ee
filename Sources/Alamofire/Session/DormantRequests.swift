/// The requests of a session that wait for their start. They are weak references, so that a user can release a
/// request.
struct DormantRequests {
  private struct Entry {
    weak var request: Request?
  }

  private var entries: [ObjectIdentifier: Entry] = [:]
  /// Entries of released requests are removed when there are more entries than this.
  private var bound = 64

  /// The number of entries, those of released requests included.
  var count: Int { entries.count }

  /// Adds a request; a second call has no effect.
  ///
  /// - Returns: Requests that were retained meanwhile. The caller releases them outside of its lock, because a
  ///   reference can be the last one.
  mutating func add(_ request: Request) -> [Request] {
    entries[ObjectIdentifier(request)] = Entry(request: request)
    guard entries.count > bound else { return [] }
    let present = entries.values.compactMap(\.request)
    entries = Dictionary(
      present.map { (ObjectIdentifier($0), Entry(request: $0)) }, uniquingKeysWith: { first, _ in first })
    bound = max(64, entries.count * 2)
    return present
  }

  /// Removes and returns the requests that still exist. Some of them may have been started meanwhile.
  mutating func removeAll() -> [Request] {
    defer { entries = [:] }
    return entries.values.compactMap(\.request)
  }
}
