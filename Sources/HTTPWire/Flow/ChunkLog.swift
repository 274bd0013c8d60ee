package import FoundationEssentials

/// The chunks of a body for several readers, each at its own speed. Chunks that all readers have read are removed, and
/// the writer pauses while a reader is too far behind. Pure: the owner holds its lock, and wakes the readers and the
/// writer.
package struct ChunkLog: Sendable {
  package enum Entry: Equatable, Sendable {
    /// A response begins; earlier entries belong to another one.
    case begin
    case chunk(Data)
    /// Server-sent events that arrived together.
    case events([ServerSentEvent])
    /// The response is complete.
    case end
  }

  /// The effects of a write.
  package struct Written: Equatable, Sendable {
    /// Whether a reader is too far behind, so that the writer waits until it is woken.
    package var pauses = false
    /// Readers that wait for something.
    package var readers: [Int] = []
  }

  /// The result of a read.
  package struct Reading: Equatable, Sendable {
    package var entries: [Entry]
    /// Whether no entry follows these. True once.
    package var isLast: Bool
    /// Whether the writer waits until the reader has processed its earlier entries.
    package var wakesWriter: Bool
    /// Readers that waited for this one, to be woken.
    package var followers: [Int] = []
    /// Whether ``ChunkLog/handedOut(_:)`` has to be called before it reads again.
    package var isOrdered = false
  }

  /// The way in which a reader gets its entries.
  package enum Kind: Sendable {
    /// A reader that reads whenever it is woken.
    case called
    /// A reader that reads when its consumer asks for the next entry.
    case pulling
  }

  private struct Reader {
    let kind: Kind
    /// The number of the entry that it reads next.
    var next: Int
    /// The number of bytes before that entry.
    var taken: Int64
    /// The number of bytes before it at its last read, which it has finished with.
    var done: Int64
    /// Whether the writer waits for it.
    var holdsBack: Bool
    /// Whether the end of the whole waits for it.
    var delaysEnd: Bool
    /// Whether it has found no entry and has to be woken.
    var waits = true
    /// The number of the entry that follows its last one; `nil` until it is known.
    var end: Int?
    /// Whether it receives only the end.
    var isMuted = false
    /// The reader that has each entry before this one.
    var predecessor: Int?
    /// The reader that has each entry after this one, which waits for that one before it takes the next.
    var successor: Int?
    /// The number of the first entry that it has not handed out.
    var handedOut: Int
    /// Whether it has something to read, and waits for the others of its order.
    var isBlocked = false
    /// Whether it has read the last entry, and has to hand it out.
    var isOver = false

    var isFinished: Bool { end != nil }
    var isOrdered: Bool { predecessor != nil || successor != nil }
    /// Whether it receives the entries that are written.
    var isOpen: Bool { !isMuted && !isFinished }
  }

  /// The size of a piece behind which another one is likely to follow at once, such as a full record of TLS.
  private static let cut = 16_384

  /// The number of bytes that a reader may be behind before the writer stops.
  package var highMark: Int
  /// The number of bytes behind which every reader has to be before the writer continues.
  package let lowMark: Int
  private let overhead: Int

  private var entries: [Entry] = []
  /// The index of the oldest entry that a reader has not read.
  private var head = 0
  /// The number of the first of `entries`.
  private var first = 0
  /// The number of bytes written so far.
  private var written: Int64 = 0
  private var readers: [Int: Reader] = [:]
  private var nextID = 0
  /// Whether the writer was sent away, and is to be woken.
  package private(set) var writerWaits = false
  private var endsWithoutPulling = false
  private let memory = ChunkMemory()
  /// The last chunk while it may grow, which is closed before a reader gets it.
  private var open: OpenChunk?

  /// Makes an empty log. If a reader is `highMark` bytes behind, the writer waits until it is at most `lowMark` bytes
  /// behind.
  ///
  /// - Parameter overhead: The size of each chunk in addition to its bytes, which limits the number of small ones.
  package init(highMark: Int = 1 << 20, lowMark: Int = 1 << 18, overhead: Int = 0) {
    self.overhead = overhead
    self.highMark = max(1, highMark)
    self.lowMark = min(max(0, lowMark), self.highMark)
  }

  /// Bytes that some reader has not taken yet.
  package var heldBytes: Int { entries[head...].reduce(open?.count ?? 0) { $0 + $1.count } }

  /// Whether a reader that delays the end has unread or unprocessed entries.
  package var isBusy: Bool { readers.values.contains { $0.delaysEnd && !$0.waits && !$0.isFinished } }

  // MARK: Writing

  /// Copies bytes into the log. A large chunk is joined with the following one, until a reader takes them.
  package mutating func write(_ bytes: UnsafeRawBufferPointer) -> Written {
    guard isWanted else { return Written() }
    if open?.append(bytes) != true { append(bytes) }
    // Nothing is likely to follow at once.
    if bytes.count < Self.cut { close() }
    written += Int64(bytes.count)
    return Written(pauses: holdsWriterBack(), readers: wakeReaders())
  }

  /// Adds the beginning or the end of a response.
  package mutating func write(_ entry: Entry) -> Written {
    if case .chunk(let data) = entry { return data.withUnsafeBytes { write($0) } }
    guard isWanted else { return Written() }
    close()
    entries.append(entry)
    return Written(readers: wakeReaders())
  }

  /// Whether a reader is too far behind. Then the writer waits until it is woken.
  private mutating func holdsWriterBack() -> Bool {
    if isFull { writerWaits = true }
    return isFull
  }

  /// Adds events. They are one entry, unless readers have an order, in which each has an event before the next one has
  /// it.
  package mutating func write(_ events: [ServerSentEvent]) -> Written {
    guard isWanted, !events.isEmpty else { return Written() }
    close()
    let hasOrder = readers.values.contains { $0.isOrdered }
    let added = hasOrder ? events.map { .events([$0]) } : [Entry.events(events)]
    entries += added
    written += added.reduce(0) { $0 + weight(of: $1) }
    return Written(pauses: holdsWriterBack(), readers: wakeReaders())
  }

  private var isWanted: Bool { readers.values.contains { $0.isOpen } }

  private mutating func wakeReaders() -> [Int] {
    var woken: [Int] = []
    for (id, reader) in readers where reader.waits && reader.isOpen {
      woken.append(id)
      readers[id]?.waits = false
    }
    return woken
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    close()
    written += Int64(overhead)
    guard bytes.count >= Self.cut, bytes.count < ChunkMemory.blockSize else {
      entries.append(.chunk(Data(bytes)))
      return
    }
    let chunk = OpenChunk(memory)
    _ = chunk.append(bytes)
    open = chunk
    // Reserves its index until it is closed.
    entries.append(.end)
  }

  /// Makes the growing chunk readable.
  private mutating func close() {
    guard let chunk = open.take() else { return }
    entries[entries.count - 1] = .chunk(chunk.close())
  }

  /// Called when the transfer for which the writer waited is over.
  package mutating func writerLeft() { writerWaits = false }

  /// Returns the number of bytes after which a reader is too far behind. If that is 0, the writer waits until it is
  /// woken.
  package mutating func roomForWriter() -> Int {
    guard !holdsWriterBack() else { return 0 }
    let furthest = readers.values.reduce(Int64(0)) { furthest, reader in
      reader.holdsBack && reader.isOpen ? max(furthest, written - reader.done) : furthest
    }
    return highMark - Int(clamping: furthest)
  }

  private var isFull: Bool { isBehind(by: highMark - 1) }

  /// Whether a reader that holds the writer back is more than `count` bytes behind.
  private func isBehind(by count: Int) -> Bool {
    readers.values.contains { $0.holdsBack && $0.isOpen && written - $0.done > Int64(count) }
  }

  // MARK: Readers

  /// Adds a reader, which gets later entries only.
  ///
  /// - Parameters:
  ///   - kind: The way in which it reads. A pulling one does not delay the end before it has begun.
  ///   - holdsBack: Whether the writer waits for it if it is slow.
  ///   - predecessor: A reader that delivers each entry, and its end, before this one.
  package mutating func addReader(_ kind: Kind, holdsBack: Bool, after predecessor: Int? = nil) -> Int {
    defer { nextID += 1 }
    close()
    let next = first + entries.count
    let predecessor = predecessor.flatMap { readers[$0] == nil ? nil : $0 }
    if let predecessor { readers[predecessor]?.successor = nextID }
    readers[nextID] = Reader(
      kind: kind, next: next, taken: written, done: written, holdsBack: holdsBack, delaysEnd: kind == .called,
      predecessor: predecessor, handedOut: next)
    return nextID
  }

  /// Notes that the consumer of a reader has begun to pull: writer and end wait for this reader from now on.
  package mutating func begin(_ id: Int) {
    readers[id]?.holdsBack = true
    readers[id]?.delaysEnd = !endsWithoutPulling
  }

  /// Stops the end from waiting for readers that pull.
  package mutating func endWithoutPulling() {
    endsWithoutPulling = true
    for (id, reader) in readers where reader.kind == .pulling { readers[id]?.delaysEnd = false }
  }

  /// Ends the entries of a reader with those that are there. Returns whether the reader waits for that.
  package mutating func finish(_ id: Int) -> Bool {
    guard let reader = readers[id], !reader.isFinished else { return false }
    close()
    readers[id]?.end = first + entries.count
    readers[id]?.waits = false
    return reader.waits
  }

  /// Stops delivery to a reader, except for the end. Returns whether the writer waits for this, and the readers that
  /// do.
  package mutating func mute(_ id: Int) -> (wakesWriter: Bool, followers: [Int]) {
    guard readers[id]?.isMuted == false else { return (false, []) }
    readers[id]?.isMuted = true
    if let reader = readers[id], reader.isBlocked, !reader.isFinished {
      readers[id]?.isBlocked = false
      readers[id]?.waits = true
    }
    skip(id)
    return (takeWriter(), unblocked())
  }

  package func isMuted(_ id: Int) -> Bool { readers[id]?.isMuted ?? false }

  /// Removes a reader. Returns whether the writer waits for this, and the readers that do.
  package mutating func removeReader(_ id: Int) -> (wakesWriter: Bool, followers: [Int]) {
    guard remove(id) else { return (false, []) }
    close()
    trim()
    return (takeWriter(), unblocked())
  }

  /// Called when the reader has handed out all that it took. Returns the readers that are to be woken.
  package mutating func handedOut(_ id: Int) -> [Int] {
    guard let reader = readers[id] else { return [] }
    readers[id]?.handedOut = reader.next
    if reader.isOver { _ = remove(id) }
    return unblocked()
  }

  /// Returns the next entries for a reader, which has processed its earlier ones. Without any it waits, and the next
  /// entry wakes it.
  package mutating func read(_ id: Int, atMost limit: Int = 64) -> Reading {
    guard var reader = readers[id], !reader.isOver else {
      return Reading(entries: [], isLast: false, wakesWriter: false)
    }
    close()
    let from = reader.next - first
    // One at a time, so that those of other readers come in between.
    let wanted = reader.isOrdered ? from + 1 : from + max(1, limit)
    let end = (reader.end ?? first + entries.count) - first
    let to = max(from, min(end, wanted, bound(of: reader) - first))
    let taken = Array(entries[from..<to])
    reader.done = reader.taken
    reader.handedOut = reader.next
    reader.taken += taken.reduce(0) { $0 + weight(of: $1) }
    reader.next += taken.count
    let isAtEnd = to == end
    let isLast = reader.isFinished && isAtEnd && reader.predecessor == nil
    reader.isBlocked = taken.isEmpty && !isLast && (!isAtEnd || reader.isFinished)
    reader.waits = taken.isEmpty && !isLast && !reader.isBlocked
    reader.isOver = isLast
    readers[id] = reader
    if isLast, !reader.isOrdered { _ = remove(id) }
    trim()
    return Reading(
      entries: taken, isLast: isLast, wakesWriter: takeWriter(), followers: unblocked(),
      isOrdered: reader.isOrdered)
  }

  // MARK: Order

  /// Returns the number of the first entry that a reader must not have yet. The predecessor of the reader has not
  /// handed the entry out, or a successor has not handed out the one before.
  private func bound(of reader: Reader) -> Int {
    var bound = Int.max
    var predecessor = reader.predecessor.flatMap { readers[$0] }
    while let other = predecessor, other.isMuted { predecessor = other.predecessor.flatMap { readers[$0] } }
    if let predecessor { bound = predecessor.handedOut }
    var successor = reader.successor.flatMap { readers[$0] }
    while let other = successor {
      if !other.isMuted { bound = min(bound, other.handedOut + 1) }
      successor = other.successor.flatMap { readers[$0] }
    }
    return bound
  }

  /// Takes a reader out of the order. Returns false if it was not there.
  private mutating func remove(_ id: Int) -> Bool {
    guard let reader = readers.removeValue(forKey: id) else { return false }
    if let predecessor = reader.predecessor { readers[predecessor]?.successor = reader.successor }
    if let successor = reader.successor { readers[successor]?.predecessor = reader.predecessor }
    return true
  }

  /// Whether a reader is there, or on its way out.
  package func hasReader(_ id: Int) -> Bool { readers[id] != nil }

  /// Takes the readers that waited for others of their order, and need not any more.
  private mutating func unblocked() -> [Int] {
    var woken: [Int] = []
    for (id, reader) in readers where reader.isBlocked {
      let end = reader.end ?? first + entries.count
      let hasEntries = reader.next < min(end, bound(of: reader))
      let mayEnd =
        reader.isFinished && reader.predecessor == nil && reader.next == end
      guard hasEntries || mayEnd else { continue }
      readers[id]?.isBlocked = false
      woken.append(id)
    }
    return woken
  }

  private mutating func skip(_ id: Int) {
    close()
    guard let reader = readers[id] else { return }
    readers[id]?.next = reader.end ?? first + entries.count
    readers[id]?.taken = written
    readers[id]?.done = written
    trim()
  }

  /// Removes entries that all readers have taken.
  private mutating func trim() {
    let oldest = readers.values.reduce(first + entries.count) { min($0, $1.next) }
    while first + head < oldest {
      entries[head] = .end
      head += 1
    }
    guard head == entries.count || head > 64 && head > entries.count / 2 else { return }
    entries.removeFirst(head)
    first += head
    head = 0
  }

  private func weight(of entry: Entry) -> Int64 {
    switch entry {
    case .begin, .end: 0
    case .chunk(let data): Int64(data.count + overhead)
    case .events(let events): Int64(entry.count + overhead * events.count)
    }
  }

  private mutating func takeWriter() -> Bool {
    guard writerWaits, !isBehind(by: lowMark) else { return false }
    writerWaits = false
    return true
  }
}

extension ChunkLog.Entry {
  var count: Int {
    switch self {
    case .begin, .end: 0
    case .chunk(let data): data.count
    case .events(let events):
      events.reduce(0) { $0 + $1.data.utf8.count + $1.type.utf8.count + $1.id.utf8.count }
    }
  }
}
