/// The least recently used order of entries whose sizes have a limit. Every operation takes constant time.
package struct ByteBudget<ID: Hashable & Sendable>: Sendable {
  private struct Node: Sendable {
    var id: ID
    var size: Int
    var newer: Int
    var older: Int
  }

  /// The limit of the bytes; at least 0.
  package private(set) var capacity: Int
  /// The bytes of all entries.
  package private(set) var used = 0
  private var nodes: [Node] = []
  private var free: [Int] = []
  private var indices: [ID: Int] = [:]
  private var newest = -1
  private var oldest = -1

  package init(capacity: Int) { self.capacity = max(0, capacity) }

  package var count: Int { indices.count }
  package var ids: some Collection<ID> { indices.keys }

  package func contains(_ id: ID) -> Bool { indices[id] != nil }

  /// Inserts an entry as the newest, or changes its size. Returns the entries to remove for it, which may include
  /// itself if it is larger than the capacity.
  package mutating func insert(_ id: ID, size: Int) -> [ID] {
    remove(id)
    guard size <= capacity else { return [id] }
    let index = take(Node(id: id, size: max(0, size), newer: -1, older: newest))
    if newest >= 0 { nodes[newest].newer = index } else { oldest = index }
    newest = index
    indices[id] = index
    used += max(0, size)
    return trimmed()
  }

  /// Marks an entry as the one that was used last.
  package mutating func touch(_ id: ID) {
    guard let index = indices[id], index != newest else { return }
    unlink(index)
    nodes[index].newer = -1
    nodes[index].older = newest
    if newest >= 0 { nodes[newest].newer = index } else { oldest = index }
    newest = index
  }

  package mutating func remove(_ id: ID) {
    guard let index = indices.removeValue(forKey: id) else { return }
    unlink(index)
    used -= nodes[index].size
    free.append(index)
  }

  package mutating func removeAll() { self = ByteBudget(capacity: capacity) }

  /// Returns the entries to remove.
  package mutating func setCapacity(_ capacity: Int) -> [ID] {
    self.capacity = max(0, capacity)
    return trimmed()
  }

  private mutating func trimmed() -> [ID] {
    var gone: [ID] = []
    while used > capacity, oldest >= 0 {
      let id = nodes[oldest].id
      gone.append(id)
      remove(id)
    }
    return gone
  }

  private mutating func take(_ node: Node) -> Int {
    if let index = free.popLast() {
      nodes[index] = node
      return index
    }
    nodes.append(node)
    return nodes.count - 1
  }

  private mutating func unlink(_ index: Int) {
    let node = nodes[index]
    if node.newer >= 0 { nodes[node.newer].older = node.older } else { newest = node.older }
    if node.older >= 0 { nodes[node.older].newer = node.newer } else { oldest = node.newer }
  }
}
