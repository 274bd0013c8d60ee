import FoundationEssentials
import HTTPWire
import Randomness
import Scenarios
import Testing

@Suite("The index of a cache", .timeLimit(.minutes(5))) struct CacheIndexTests {
  private static func stored(_ number: Int, size: Int = 100, variant: String? = nil) -> StoredResponse {
    CacheFixture.response(
      variant == nil ? [] : [("Vary", "v")], body: String(repeating: "x", count: size),
      requestFields: variant.map { [("V", $0)] } ?? [], url: "http://a.test/\(number)")
  }

  @Test("A budget evicts the least recently used response") func leastRecentlyUsed() {
    var budget = ByteBudget<Int>(capacity: 10)
    #expect(budget.insert(1, size: 4).isEmpty && budget.insert(2, size: 4).isEmpty)
    budget.touch(1)
    #expect(budget.insert(3, size: 4) == [2])
    #expect(budget.insert(4, size: 11) == [4])
    #expect(budget.insert(1, size: 8) == [3])
    #expect(budget.used == 8 && budget.setCapacity(0) == [1] && budget.used == 0 && budget.count == 0)
  }

  @Test("A budget agrees with a model") func model() {
    var generator = SeededGenerator(seed: 3)
    var budget = ByteBudget<Int>(capacity: 100)
    var model: [(id: Int, size: Int)] = []
    for _ in 0..<20_000 {
      let id = Int.random(in: 0..<40, using: &generator)
      let size = Int.random(in: 0..<30, using: &generator)
      switch Int.random(in: 0..<4, using: &generator) {
      case 0, 1:
        model.removeAll { $0.id == id }
        model.append((id, size))
        var gone: [Int] = []
        while model.reduce(0, { $0 + $1.size }) > 100 { gone.append(model.removeFirst().id) }
        #expect(budget.insert(id, size: size) == gone)
      case 2:
        if let index = model.firstIndex(where: { $0.id == id }) { model.append(model.remove(at: index)) }
        budget.touch(id)
      default:
        model.removeAll { $0.id == id }
        budget.remove(id)
      }
      #expect(budget.used == model.reduce(0) { $0 + $1.size } && budget.count == model.count)
    }
  }

  @Test("A response is found while its file is written") func pendingWrite() throws {
    var index = CacheIndex(memoryCapacity: 0, diskCapacity: 1 << 20)
    let stored = Self.stored(1)
    let (serial, gone) = index.put(stored)
    let number = try #require(serial)
    #expect(gone.isEmpty && index.find(stored.key).stored.count == 1)
    #expect(index.toWrite(EntryID(stored), number) === stored)
    #expect(index.wrote(EntryID(stored), number, size: 900).isObsolete == false)
    #expect(index.find(stored.key).files == [EntryID(stored)])
    #expect(index.diskUsage == 4096 && index.memoryUsage == 0)
  }

  @Test("A response that is removed while its file is written is not found") func removedDuringWrite() throws
  {
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 1 << 20)
    let stored = Self.stored(1)
    let serial = try #require(index.put(stored).write)
    #expect(index.remove(stored.key) == [EntryID(stored)])
    #expect(index.toWrite(EntryID(stored), serial) == nil)
    #expect(index.wrote(EntryID(stored), serial, size: 900).isObsolete)
    #expect(index.isEmpty && !index.mayHold(stored.key.hash))
    let first = try #require(index.put(stored).write)
    let second = try #require(index.put(stored).write)
    #expect(!index.wrote(EntryID(stored), first, size: 900).isObsolete)
    #expect(index.wrote(EntryID(stored), second, size: nil).isObsolete)
    // It is in memory although it has no file.
    #expect(index.find(stored.key).stored.count == 1 && index.diskUsage == 0)
  }

  @Test("An update that depends on other fields replaces the response and its file") func narrowerUpdate()
    throws
  {
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 1 << 20)
    let wide = Self.stored(1)
    let serial = try #require(index.put(wide).write)
    #expect(!index.wrote(EntryID(wide), serial, size: 900).isObsolete)
    let (first, second) = (Self.stored(1, variant: "a"), Self.stored(1, variant: "b"))
    let removals = index.removalCount
    #expect(index.put(first, replacing: wide, askedAfter: removals).remove == [EntryID(wide)])
    #expect(index.find(wide.key).stored.map { EntryID($0) } == [EntryID(first)])
    #expect(index.put(second, replacing: first).remove.isEmpty, "it depends on the same field")
    #expect(index.count == 2 && index.removalCount == removals)
    let newer = CacheFixture.response(url: "http://a.test/1", at: CacheFixture.start + 10)
    _ = index.put(newer)
    #expect(index.put(first, replacing: wide, askedAfter: removals).remove.isEmpty)
    #expect(index.count == 3, "a newer response than the update stays")
  }

  @Test("An update drops the other responses for its request that have the same strong tag") func commonTag()
  {
    func stored(_ tag: String, _ variant: String? = nil, at time: Int64 = 0) -> StoredResponse {
      CacheFixture.response(
        [("ETag", tag)] + (variant == nil ? [] : [("Vary", "v")]),
        requestFields: variant.map { [("V", $0)] } ?? [], at: CacheFixture.start + time)
    }
    func count(beside other: StoredResponse, updated tag: String = "\"1\"") -> Int {
      var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 0)
      let removals = index.removalCount
      _ = index.put(other)
      _ = index.put(stored(tag, "a", at: 5))
      _ = index.put(stored(tag, "a", at: 10), replacing: stored(tag, "a", at: 5), askedAfter: removals)
      return index.count
    }
    #expect(count(beside: stored("\"1\"")) == 1, "it could have answered the request")
    #expect(count(beside: stored("\"1\"", "b")) == 2, "it is for other fields")
    #expect(count(beside: stored("\"2\"")) == 2, "it has another tag")
    #expect(count(beside: stored("W/\"1\"")) == 2, "its tag is weak")
    #expect(count(beside: stored("\"1\""), updated: "W/\"1\"") == 2, "the tag of the update is weak")
    #expect(count(beside: stored("\"1\"", at: 20)) == 2, "it is newer than the update")
  }

  @Test("A response to a request before a removal is not stored") func requestBeforeRemoval() {
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 0)
    let stored = Self.stored(1)
    let early = index.removalCount
    _ = index.remove(stored.key)
    let late = index.removalCount
    _ = index.put(stored, askedAfter: early)
    #expect(index.isEmpty)
    // In the same second, but after the removal.
    _ = index.put(stored, askedAfter: late)
    #expect(index.count == 1)
    _ = index.remove(stored.key)
    _ = index.put(stored, askedAfter: nil)
    #expect(index.count == 1)
    _ = index.remove(Self.stored(2).key)
    _ = index.put(CacheFixture.response(), askedAfter: late)
    #expect(index.count == 2, "another URL is not concerned")
    let before = index.removalCount
    index.removeAll()
    _ = index.put(stored, askedAfter: before)
    #expect(index.isEmpty)
    _ = index.put(stored, askedAfter: index.removalCount)
    #expect(index.count == 1)
  }

  @Test("A removal that is only counted overtakes earlier requests") func countedRemoval() {
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 0)
    let stored = Self.stored(1)
    let early = index.removalCount
    index.noteRemoval(of: stored.key.hash)
    #expect(index.removalCount == early + 1)
    _ = index.put(stored, askedAfter: early)
    #expect(index.isEmpty)
    _ = index.put(Self.stored(2), askedAfter: early)
    #expect(index.count == 1, "another URL is not concerned")
    _ = index.put(stored, askedAfter: index.removalCount)
    index.noteRemoval(of: stored.key.hash)
    #expect(index.count == 2, "it removes nothing")
  }

  @Test("If too many removals are recorded, earlier responses are not stored") func manyRemovals() {
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 0)
    let early = index.removalCount
    for number in 0..<5_000 { _ = index.remove(Self.stored(number).key) }
    for number in [1, 4_999, 9_999] { _ = index.put(Self.stored(number), askedAfter: early) }
    #expect(index.isEmpty)
    _ = index.put(Self.stored(1), askedAfter: index.removalCount)
    #expect(index.count == 1)
  }

  @Test("A removal before the folder was listed applies to its files") func removalBeforeListing() throws {
    func files(_ numbers: Int...) -> [EntryFile] {
      numbers.map { EntryFile(name: EntryID(Self.stored($0)).name, size: 100, used: 1) }
    }
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 1 << 20)
    _ = index.remove(Self.stored(1).key)
    #expect(index.put(Self.stored(2), askedAfter: 1, mayWrite: false).write == nil)
    #expect(index.find(Self.stored(2).key).stored.count == 1)
    let gone = index.found(files(1, 2, 3))
    #expect(Set(gone) == [EntryID(Self.stored(1)), EntryID(Self.stored(2))])
    #expect(index.find(Self.stored(1).key).files.isEmpty && index.find(Self.stored(3).key).files.count == 1)
    #expect(index.find(Self.stored(2).key).stored.count == 1, "the newer one is in memory")
    var emptied = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 1 << 20)
    emptied.removeAll()
    #expect(emptied.found(files(1, 2)).count == 2 && emptied.isEmpty)
  }

  @Test("A response that was overtaken is not stored") func overtakenResponse() {
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 0)
    let new = CacheFixture.response(body: "new", at: CacheFixture.start + 5)
    _ = index.put(new, askedAfter: 0)
    _ = index.put(CacheFixture.response(body: "old"), askedAfter: 0)
    #expect(index.find(new.key).stored.first === new)
    // After the clock was set back by more than threads can overtake each other, the order is unknown.
    let later = CacheFixture.response(body: "later", at: CacheFixture.start - 990)
    _ = index.put(later, askedAfter: 0, now: CacheFixture.start - 990)
    #expect(index.find(new.key).stored.first === later)
  }

  @Test("A response that is only in a file overtakes earlier ones") func overtakenByFile() throws {
    var index = CacheIndex(memoryCapacity: 40_000, diskCapacity: 1 << 20)
    let body = String(repeating: "x", count: 20_000)
    let new = CacheFixture.response(body: body, at: CacheFixture.start + 5)
    let (key, id) = (new.key, EntryID(new))
    let serial = try #require(index.put(new, askedAfter: 0).write)
    #expect(!index.wrote(id, serial, size: 20_500).isObsolete)
    #expect(index.find(key).files == [id])
    let old = CacheFixture.response(body: body)
    #expect(index.put(old, askedAfter: 0).write == nil && index.find(key).files == [id])
    _ = index.put(CacheFixture.response(body: "old"), askedAfter: 0)
    #expect(index.find(key).files == [id], "a small one does not replace it either")
    let newest = CacheFixture.response(body: "newest", at: CacheFixture.start + 6)
    #expect(index.put(newest, askedAfter: 0).write != nil && index.find(key).stored.first === newest)
  }

  @Test("A file that was read overtakes earlier responses, also after its eviction")
  func overtakenByReadFile() {
    var index = CacheIndex(memoryCapacity: 40_000, diskCapacity: 1 << 20)
    let new = CacheFixture.response(body: "new", at: CacheFixture.start + 5)
    let (key, id) = (new.key, EntryID(new))
    _ = index.found([EntryFile(name: id.name, size: 100, used: 1)])
    _ = index.read(id, new, foundAt: 0)
    #expect(index.find(key).stored.first === new)
    #expect(index.setCapacities(memory: 0).isEmpty)
    _ = index.put(CacheFixture.response(body: "old"), askedAfter: 0)
    #expect(index.find(key).files == [id])
  }

  @Test("A file that was replaced or removed while it was read is not taken") func replacedWhileRead() throws
  {
    var index = CacheIndex(memoryCapacity: 40_000, diskCapacity: 1 << 20)
    let old = Self.stored(1)
    let (key, id) = (old.key, EntryID(old))
    // Too large for the memory, so that it is only in its file once that is written.
    let large = Self.stored(1, size: 20_000)
    _ = index.found([EntryFile(name: id.name, size: 100, used: 1)])
    #expect(index.find(key).files == [id])
    let before = index.lastSerial
    let first = try #require(index.put(large).write)
    #expect(!index.wrote(id, first, size: 20_500).isObsolete)
    #expect(index.read(id, old, foundAt: before).isEmpty)
    #expect(index.find(key).files == [id], "the file has the newer response")
    #expect(index.read(id, nil, foundAt: before).isEmpty)
    #expect(index.find(key).files == [id], "the file was missing only before it was written")
    let between = index.lastSerial
    _ = index.remove(key)
    let second = try #require(index.put(large).write)
    #expect(!index.wrote(id, second, size: 20_500).isObsolete)
    #expect(index.read(id, nil, foundAt: between).isEmpty && index.read(id, old, foundAt: between).isEmpty)
    #expect(index.find(key).files == [id])
    let after = index.lastSerial
    #expect(index.read(id, nil, foundAt: after) == [id] && index.isEmpty)
  }

  @Test("Variants are stored separately and their number is limited") func variants() {
    var index = CacheIndex(memoryCapacity: 1 << 20, diskCapacity: 0)
    for number in 0..<40 { _ = index.put(Self.stored(1, variant: "\(number)")) }
    let key = Self.stored(1).key
    #expect(index.find(key).stored.count == CacheIndex.variantLimit && index.count == CacheIndex.variantLimit)
    let chosen = CacheDecision.choice(of: index.find(key).stored, for: CacheFixture.digests([("v", "39")]))
    #expect(chosen != nil)
    _ = index.remove(key)
    #expect(index.isEmpty && index.memoryUsage == 0)
  }

  @Test("A response that is too large is not stored") func tooLarge() {
    var index = CacheIndex(memoryCapacity: 10_000, diskCapacity: 100_000)
    let large = Self.stored(1, size: 5_000)
    #expect(index.put(large).write != nil && index.memoryUsage == 0)
    #expect(index.put(Self.stored(2, size: 50_000)).write == nil)
    #expect(index.find(Self.stored(2).key).stored.isEmpty)
  }

  @Test("Files of an earlier process are found") func earlierFiles() {
    var index = CacheIndex(memoryCapacity: 0, diskCapacity: 8192)
    let ids = (1...3).map { EntryID(hash: UInt64($0), variant: 0) }
    let gone = index.found([
      EntryFile(name: ids[0].name, size: 100, used: 3), EntryFile(name: ids[1].name, size: 100, used: 1),
      EntryFile(name: "stranger", size: 5, used: 9), EntryFile(name: ids[2].name, size: 100, used: 2),
    ])
    #expect(gone == [ids[1]] && index.mayHold(1) && !index.mayHold(2) && index.mayHold(3))
    #expect(index.read(ids[0], nil, foundAt: 0) == [ids[0]] && !index.mayHold(1))
  }

  @Test("Files of any size are counted, or removed", arguments: [8192, Int.max])
  func extremeSizes(capacity: Int) {
    var index = CacheIndex(memoryCapacity: 0, diskCapacity: capacity)
    let sizes = [Int.max, .max - 4095, .max - 4096, 100]
    let ids = sizes.indices.map { EntryID(hash: UInt64($0), variant: 0) }
    // The last file was used last.
    let gone = index.found(
      sizes.indices.map { EntryFile(name: ids[$0].name, size: sizes[$0], used: Int64($0)) })
    #expect(gone == ids.dropLast() && index.mayHold(3) && index.diskUsage == 4096)
  }

  /// Checks that the usage equals the size of the stored responses, and that removed responses are not found.
  @Test("The invariants hold for random operations", .steps) func randomOperations() throws {
    var generator = SeededGenerator(seed: 11)
    var index = CacheIndex(memoryCapacity: 6_000, diskCapacity: 40_960)
    var writes: [(EntryID, UInt64)] = []
    var files: Set<EntryID> = []
    for number in 0..<20_000 {
      step("operation \(number)")
      let stored = Self.stored(
        Int.random(in: 0..<30, using: &generator), size: Int.random(in: 0..<2_000, using: &generator))
      switch Int.random(in: 0..<6, using: &generator) {
      case 0, 1:
        let (serial, gone) = index.put(stored)
        if let serial { writes.append((EntryID(stored), serial)) }
        files.subtract(gone.filter { !index.hasFile($0) })
      case 2, 3:
        guard !writes.isEmpty else { continue }
        let (id, serial) = writes.removeFirst()
        guard index.toWrite(id, serial) != nil else { continue }
        let fails = Int.random(in: 0..<8, using: &generator) == 0
        if !fails { files.insert(id) }
        let (isObsolete, gone) = index.wrote(id, serial, size: fails ? nil : 1_000)
        if isObsolete { files.remove(id) }
        files.subtract(gone.filter { !index.hasFile($0) })
      case 4: files.subtract(index.remove(stored.key).filter { !index.hasFile($0) })
      default:
        for id in index.find(stored.key).files {
          #expect(files.contains(id))
          _ = index.read(id, stored, foundAt: index.lastSerial)
        }
      }
      #expect(index.memoryUsage <= 6_000 && index.diskUsage <= 40_960 && index.memoryUsage >= 0)
      #expect(files.allSatisfy { index.hasFile($0) })
    }
    step("removal of all")
    for number in 0..<30 { _ = index.remove(Self.stored(number).key) }
    #expect(index.isEmpty && index.memoryUsage == 0 && index.diskUsage == 0)
  }
}
