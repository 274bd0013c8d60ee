/// The least recently used order of entries whose sizes have a limit. Every operation takes constant time.
package struct ByteBudget<ID: Hashable & Sendable>: Sendable {
  private struct Place: Sendable {
    var id: ID
    var size: Int
    var newer: Int
    var older: Int
  }

  /// The limit of the bytes; at least 0.
  package private(set) var capacity: Int
  /// The bytes of all entries.
  package private(set) var used = 0
  private var places: [Place] = []
  private var free: [Int] = []
  private var indices: [ID: Int] = [:]
  private var newest = -1
  private var oldest = -1

  package init(capacity: Int) { self.capacity = max(0, capacity) }

  package var count: Int { indices.count }
  package var ids: some Collection<ID> { indices.keys }

  package func contains(_ id: ID) -> Bool { indices[id] != nil }

  /// Puts something there as the newest, or gives it another size. Returns what has to go for it, which may be
  /// itself when it is larger than the whole.
  package mutating func insert(_ id: ID, size: Int) -> [ID] {
    remove(id)
    guard size <= capacity else { return [id] }
    let index = take(Place(id: id, size: max(0, size), newer: -1, older: newest))
    if newest >= 0 { places[newest].newer = index } else { oldest = index }
    newest = index
    indices[id] = index
    used += max(0, size)
    return trimmed()
  }

  /// It has been used.
  package mutating func touch(_ id: ID) {
    guard let index = indices[id], index != newest else { return }
    unlink(index)
    places[index].newer = -1
    places[index].older = newest
    if newest >= 0 { places[newest].newer = index } else { oldest = index }
    newest = index
  }

  package mutating func remove(_ id: ID) {
    guard let index = indices.removeValue(forKey: id) else { return }
    unlink(index)
    used -= places[index].size
    free.append(index)
  }

  package mutating func removeAll() { self = ByteBudget(capacity: capacity) }

  /// Returns what has to go.
  package mutating func setCapacity(_ capacity: Int) -> [ID] {
    self.capacity = max(0, capacity)
    return trimmed()
  }

  private mutating func trimmed() -> [ID] {
    var gone: [ID] = []
    while used > capacity, oldest >= 0 {
      let id = places[oldest].id
      gone.append(id)
      remove(id)
    }
    return gone
  }

  private mutating func take(_ place: Place) -> Int {
    if let index = free.popLast() {
      places[index] = place
      return index
    }
    places.append(place)
    return places.count - 1
  }

  private mutating func unlink(_ index: Int) {
    let place = places[index]
    if place.newer >= 0 { places[place.newer].older = place.older } else { newest = place.older }
    if place.older >= 0 { places[place.older].newer = place.newer } else { oldest = place.newer }
  }
}
