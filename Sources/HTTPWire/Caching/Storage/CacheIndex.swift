/// The index of a cache in memory and in files, which evicts entries when the capacity is exceeded. No I/O: it
/// returns the files that its owner has to write and remove.
package struct CacheIndex: Sendable {
  /// A response that is on its way into its file.
  package struct Pending: Sendable {
    package let serial: UInt64
    package let stored: StoredResponse
  }

  /// One of the responses of a URL.
  private struct Variant {
    let number: UInt32
    /// ``CacheIndex/lastSerial`` when it was put there; 0 for a file of an earlier process.
    private(set) var serial: UInt64 = 0
    /// The times of its request and of its `Date`, in seconds since 1970, also if it is only in a file; 0 for a file
    /// that was never read. To save memory, they have 32 bits, which suffice until 2106.
    private(set) var requestTime: UInt32 = 0
    private(set) var date: UInt32 = 0

    init(_ number: UInt32) { self.number = number }

    init(_ number: UInt32, serial: UInt64, of stored: StoredResponse) {
      self.number = number
      self.serial = serial
      note(stored)
    }

    mutating func note(_ stored: StoredResponse) {
      requestTime = UInt32(clamping: stored.requestTime)
      date = UInt32(clamping: stored.date)
    }

    /// Whether it is newer than a response, and was requested later.
    func overtakes(_ stored: StoredResponse) -> Bool {
      requestTime > UInt32(clamping: stored.requestTime) && date > UInt32(clamping: stored.date)
    }
  }

  /// The most responses of one URL.
  package static let variantLimit = 16
  private static let block = 4_096

  private var memory: ByteBudget<EntryID>
  private var disk: ByteBudget<EntryID>
  private var held: [EntryID: StoredResponse] = [:]
  private var pending: [EntryID: Pending] = [:]
  private var pendingBytes = 0
  /// The number of the last response that was put there.
  package private(set) var lastSerial: UInt64 = 0
  private var removals = RemovalLog()
  /// Of each hash, the variants there are, the newest last.
  private var variants: [UInt64: [Variant]] = [:]

  package init(memoryCapacity: Int, diskCapacity: Int) {
    memory = ByteBudget(capacity: memoryCapacity)
    disk = ByteBudget(capacity: diskCapacity)
  }

  /// The number of removals so far.
  package var removalCount: UInt64 { removals.count }
  package var memoryUsage: Int { memory.used }
  package var diskUsage: Int { disk.used }
  package var memoryCapacity: Int { memory.capacity }
  package var diskCapacity: Int { disk.capacity }
  package var isEmpty: Bool { variants.isEmpty }
  package var count: Int { variants.values.reduce(0) { $0 + $1.count } }

  /// Whether its file belongs there, or is about to be written.
  package func hasFile(_ id: EntryID) -> Bool { disk.contains(id) || pending[id] != nil }

  /// Whether there may be a response for a URL with this hash.
  package func mayHold(_ hash: UInt64) -> Bool { variants[hash] != nil }

  // MARK: Finding

  /// Returns the entries of a URL: responses in memory, and files that have not been read into memory.
  package mutating func find(_ key: CacheKey) -> (stored: [StoredResponse], files: [EntryID]) {
    var stored: [StoredResponse] = []
    var files: [EntryID] = []
    for variant in variants[key.hash] ?? [] {
      let id = EntryID(hash: key.hash, variant: variant.number)
      if let response = held[id] ?? pending[id]?.stored {
        guard response.key == key else { continue }
        memory.touch(id)
        disk.touch(id)
        stored.append(response)
      } else {
        files.append(id)
      }
    }
    return (stored, files)
  }

  /// Takes the response of a file that was read; `nil` without a file, or if the file has no response. Returns the
  /// files to remove.
  ///
  /// - Parameter serial: ``lastSerial`` when the file was found. Since then, another file may have been written in its
  ///   place.
  package mutating func read(_ id: EntryID, _ stored: StoredResponse?, foundAt serial: UInt64) -> [EntryID] {
    // A newer response has replaced it, or it has been removed.
    guard held[id] == nil, pending[id] == nil, disk.contains(id),
      variant(id).map({ $0.serial <= serial }) ?? false
    else { return [] }
    guard let stored, EntryID(stored) == id else {
      disk.remove(id)
      forget(id)
      return [id]
    }
    disk.touch(id)
    if let index = variants[id.hash]?.firstIndex(where: { $0.number == id.variant }) {
      variants[id.hash]?[index].note(stored)
    }
    hold(stored, id)
    return []
  }

  // MARK: Changing

  /// Puts a response there. Returns the number of the file to write, if there is one, and those to remove.
  ///
  /// - Parameters:
  ///   - old:      The response before the server updated it. It is dropped if the update changed the names of the
  ///     selecting fields. Otherwise it would still answer requests that the updated one no longer answers. So would
  ///     others that the update concerns, which are dropped as well.
  ///   - removals: ``removalCount`` when its request began; `nil` for a response that cannot be overtaken by a removal.
  ///   - mayWrite: Whether there is a folder for files.
  ///   - now:      Seconds since 1970; a later time was noted before the clock was set back.
  package mutating func put(
    _ stored: StoredResponse, replacing old: StoredResponse? = nil, askedAfter removals: UInt64? = nil,
    mayWrite: Bool = true, now: Int64 = .max
  ) -> (write: UInt64?, remove: [EntryID]) {
    let id = EntryID(stored)
    var gone = drop(old, updatedTo: stored, removals, now)
    if isOvertaken(stored, id, removals, now) { return (nil, gone) }
    var list = (variants[id.hash] ?? []).filter { $0.number != id.variant }
    while list.count >= Self.variantLimit {
      gone += drop(EntryID(hash: id.hash, variant: list.removeFirst().number))
    }
    lastSerial += 1
    variants[id.hash] = list + [Variant(id.variant, serial: lastSerial, of: stored)]
    hold(stored, id)
    let size = Self.size(onDisk: stored.cost)
    let isWritten =
      mayWrite && !stored.staysInMemory && size <= disk.capacity / 4 && pendingBytes <= disk.capacity / 4
    guard isWritten else {
      if disk.contains(id) || pending[id] != nil { gone.append(id) }
      disk.remove(id)
      settle(id)
      forget(id)
      return (nil, gone)
    }
    for other in disk.insert(id, size: size) where other != id { gone += dropFile(other) }
    settle(id)
    pending[id] = Pending(serial: lastSerial, stored: stored)
    pendingBytes += stored.cost
    return (lastSerial, gone)
  }

  /// Drops a response that depends on other fields than its update, and those in memory that the update concerns as
  /// well, unless they were replaced since. Returns their files.
  private mutating func drop(
    _ old: StoredResponse?, updatedTo stored: StoredResponse, _ count: UInt64?, _ now: Int64
  ) -> [EntryID] {
    guard let old else { return [] }
    let id = EntryID(stored)
    var obsolete = old.selection.hasSameNames(as: stored.selection) ? [] : [EntryID(old)]
    for variant in variants[id.hash] ?? [] where variant.number != id.variant {
      let other = EntryID(hash: id.hash, variant: variant.number)
      guard let response = held[other] ?? pending[other]?.stored, response.key == stored.key,
        response.isUpdated(with: stored), !obsolete.contains(other)
      else { continue }
      obsolete.append(other)
    }
    var gone: [EntryID] = []
    for id in obsolete where !isOvertaken(stored, id, count, now) { gone += drop(id) }
    return gone
  }

  /// Whether the response is obsolete: there was a removal after its request, or the stored response is newer.
  private func isOvertaken(
    _ stored: StoredResponse, _ id: EntryID, _ count: UInt64?, _ now: Int64
  ) -> Bool {
    guard let count else { return false }
    if removals.concerns(id.hash, after: count) { return true }
    guard let other = variant(id), other.overtakes(stored) else { return false }
    return !Self.wasSetBack(from: Int64(other.requestTime), to: now)
  }

  /// Whether the clock was set back since it said `time`, and not by the little that threads overtake each other.
  private static func wasSetBack(from time: Int64, to now: Int64) -> Bool {
    time > now && time - now > Freshness.clockTolerance
  }

  /// Returns the response that has to be written, unless it was replaced or removed.
  package func toWrite(_ id: EntryID, _ serial: UInt64) -> StoredResponse? {
    pending[id].flatMap { $0.serial == serial ? $0.stored : nil }
  }

  /// Notes that a file was written, or not. Returns whether the file has to be removed again.
  package mutating func wrote(_ id: EntryID, _ serial: UInt64, size: Int?) -> (
    isObsolete: Bool, remove: [EntryID]
  ) {
    guard let entry = pending[id] else { return (true, []) }
    // Another one is about to replace it.
    guard entry.serial == serial else { return (false, []) }
    settle(id)
    guard let size else {
      disk.remove(id)
      forget(id)
      return (true, [])
    }
    var gone: [EntryID] = []
    for other in disk.insert(id, size: Self.size(onDisk: size)) where other != id { gone += dropFile(other) }
    return (false, gone)
  }

  /// Counts a removal, so that no response to an earlier request for a URL with this hash is stored.
  package mutating func noteRemoval(of hash: UInt64) { removals.note(hash) }

  /// Forgets all of a URL. Returns the files to remove.
  ///
  /// - Parameter inAllPartitions: Whether the partition of the key does not count.
  package mutating func remove(_ key: CacheKey, inAllPartitions: Bool = false) -> [EntryID] {
    noteRemoval(of: key.hash)
    return (variants[key.hash] ?? []).flatMap { variant -> [EntryID] in
      let id = EntryID(hash: key.hash, variant: variant.number)
      // Of another URL with the same hash, as far as is known without reading.
      if let other = (held[id] ?? pending[id]?.stored)?.key,
        inAllPartitions ? !other.hasResource(of: key) : other != key
      {
        return []
      }
      return drop(id)
    }
  }

  /// Forgets one. Returns the file to remove, if there is one.
  package mutating func remove(_ id: EntryID) -> [EntryID] { drop(id) }

  /// Forgets everything. Returns the files to remove.
  @discardableResult package mutating func removeAll() -> [EntryID] {
    let gone = Array(disk.ids) + pending.keys.filter { !disk.contains($0) }
    let (serial, log) = (lastSerial, removals)
    self = CacheIndex(memoryCapacity: memory.capacity, diskCapacity: disk.capacity)
    lastSerial = serial
    removals = log
    removals.noteAll()
    return gone
  }

  /// Adds the files that were found when the folder is opened. Returns those to remove: among them all that were
  /// removed, or replaced in memory, while the folder could not be opened.
  package mutating func found(_ files: [EntryFile]) -> [EntryID] {
    var gone: [EntryID] = []
    for file in files.sorted(by: { $0.used < $1.used }) {
      guard let id = EntryID(name: file.name), !disk.contains(id) else { continue }
      guard !removals.concerns(id.hash, after: 0), held[id] == nil else {
        gone.append(id)
        continue
      }
      for other in disk.insert(id, size: Self.size(onDisk: file.size)) {
        if other == id { gone.append(id) } else { gone += dropFile(other) }
      }
      guard disk.contains(id), variant(id) == nil else { continue }
      variants[id.hash, default: []].append(Variant(id.variant))
    }
    return gone
  }

  package mutating func setCapacities(memory new: Int? = nil, disk newDisk: Int? = nil) -> [EntryID] {
    if let new {
      for id in memory.setCapacity(new) {
        held[id] = nil
        forget(id)
      }
    }
    guard let newDisk else { return [] }
    return disk.setCapacity(newDisk).flatMap { dropFile($0) }
  }

  /// Returns all entries with a response in memory that came at `time` or later, and all entries that exist only as
  /// files.
  package func since(_ time: Int64) -> (ids: [EntryID], unknown: [EntryID]) {
    var ids: [EntryID] = []
    var unknown: [EntryID] = []
    for (hash, list) in variants {
      for variant in list {
        let id = EntryID(hash: hash, variant: variant.number)
        if let stored = held[id] ?? pending[id]?.stored {
          if stored.responseTime >= time { ids.append(id) }
        } else {
          unknown.append(id)
        }
      }
    }
    return (ids, unknown)
  }

  // MARK: Within

  private func variant(_ id: EntryID) -> Variant? {
    variants[id.hash]?.first { $0.number == id.variant }
  }

  private mutating func hold(_ stored: StoredResponse, _ id: EntryID) {
    held[id] = nil
    guard stored.cost <= memory.capacity / 4 else { return memory.remove(id) }
    held[id] = stored
    for other in memory.insert(id, size: stored.cost) {
      held[other] = nil
      forget(other)
    }
  }

  private mutating func drop(_ id: EntryID) -> [EntryID] {
    let hasFile = hasFile(id)
    held[id] = nil
    memory.remove(id)
    let gone = dropFile(id)
    return hasFile ? gone : []
  }

  /// Removes a file that no longer fits; its response may stay in memory.
  private mutating func dropFile(_ id: EntryID) -> [EntryID] {
    disk.remove(id)
    settle(id)
    forget(id)
    return [id]
  }

  private mutating func settle(_ id: EntryID) {
    if let entry = pending.removeValue(forKey: id) { pendingBytes -= entry.stored.cost }
  }

  /// Takes a variant from the list if it is nowhere any more.
  private mutating func forget(_ id: EntryID) {
    guard held[id] == nil, pending[id] == nil, !disk.contains(id), var list = variants[id.hash] else {
      return
    }
    list.removeAll { $0.number == id.variant }
    variants[id.hash] = list.isEmpty ? nil : list
  }

  /// Returns the space of a file on the disk, in whole blocks. A file of another program may have any size.
  private static func size(onDisk bytes: Int) -> Int {
    let (sum, isTooLarge) = bytes.addingReportingOverflow(block - 1)
    return isTooLarge ? .max : sum / block * block
  }
}

/// The least recently used order of entries with limited sizes. Every operation takes constant time.
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
    let size = max(0, size)
    guard size <= capacity else { return [id] }
    // Before it is counted, so that the sum never exceeds the capacity, which may be the largest number.
    let gone = trimmed(to: capacity - size)
    let index = take(Node(id: id, size: size, newer: -1, older: newest))
    if newest >= 0 { nodes[newest].newer = index } else { oldest = index }
    newest = index
    indices[id] = index
    used += size
    return gone
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
    return trimmed(to: self.capacity)
  }

  /// Removes the entries that were used least recently, until at most `limit` bytes are used. Returns them.
  private mutating func trimmed(to limit: Int) -> [ID] {
    var gone: [ID] = []
    while used > limit, oldest >= 0 {
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
