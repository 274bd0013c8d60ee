package import FoundationEssentials

/// The chunks of a body that several readers read, each at its own pace: a log of which nothing is kept that all
/// have read, and to which nothing is added while a reader is too far behind. Pure; the owner holds its lock, and
/// wakes whom it is told to.
package struct ChunkLog: Sendable {
  package enum Entry: Equatable, Sendable {
    /// A response begins; what came before belongs to another one.
    case begin
    case chunk(Data)
    /// All of the response has come.
    case end
  }

  /// What became of something that was to be written.
  package struct Written: Equatable, Sendable {
    /// False when a reader is too far behind; then the writer waits until it is woken.
    package var isTaken: Bool
    /// Readers that wait for something.
    package var readers: [Int] = []
  }

  /// What a reader takes out.
  package struct Reading: Equatable, Sendable {
    package var entries: [Entry]
    /// Whether nothing will follow these. Told once.
    package var isLast: Bool
    /// Whether the writer waits for what the reader has done with what it took before.
    package var wakesWriter: Bool
  }

  /// How a reader comes by its entries.
  package enum Kind: Sendable {
    /// It reads whenever it is woken.
    case called
    /// It reads when somebody wants something of it.
    case pulling
  }

  private struct Reader {
    let kind: Kind
    /// The number of the entry that it reads next.
    var next: Int
    /// How many bytes lie before that.
    var taken: Int64
    /// How many lay before it when it last came: it has done with those.
    var done: Int64
    /// Whether the writer waits for it.
    var holdsBack: Bool
    /// Whether the end of the whole waits for it.
    var delaysEnd: Bool
    /// Whether it has found nothing, and is to be woken.
    var waits = true
    var isFinished = false
    /// Whether it wants nothing more but to know that it is over.
    var isMuted = false
  }

  /// The size of the pieces into which libcurl cuts what it has read.
  private static let cut = 16_384

  /// The writer stops when a reader is so many bytes behind.
  package var highMark: Int
  /// It goes on when none is further behind than this.
  package let lowMark: Int
  private let overhead: Int

  private var entries: [Entry] = []
  /// The place of the oldest that somebody has still to read.
  private var head = 0
  /// The number of the first of `entries`.
  private var first = 0
  /// How many bytes have been written, all in all.
  private var written: Int64 = 0
  private var readers: [Int: Reader] = [:]
  private var nextID = 0
  /// Whether the writer was sent away, and is to be woken.
  package private(set) var writerWaits = false
  private var endsWithoutPulling = false
  private let memory = ChunkMemory()
  /// The last chunk, while it may grow. Closed before anybody reads.
  private var open: OpenChunk?

  /// - Parameter overhead: What each chunk counts for beside its bytes, so that many tiny ones are not held.
  package init(highMark: Int = 1 << 20, lowMark: Int = 1 << 18, overhead: Int = 0) {
    self.overhead = overhead
    self.highMark = max(1, highMark)
    self.lowMark = min(max(0, lowMark), self.highMark)
  }

  /// Bytes that some reader has not taken yet.
  package var heldBytes: Int { entries[head...].reduce(open?.count ?? 0) { $0 + $1.count } }

  /// Whether a reader that delays the end has something to read, or is at work on what it took.
  package var isBusy: Bool { readers.values.contains { $0.delaysEnd && !$0.waits } }

  // MARK: Writing

  /// Adds bytes, copied, unless a reader is too far behind. A piece as large as libcurl cuts them is joined with what
  /// follows, as long as nobody has taken it: it is a part of what has been read at once.
  package mutating func write(_ bytes: UnsafeRawBufferPointer) -> Written {
    guard !isFull else {
      writerWaits = true
      return Written(isTaken: false)
    }
    guard isWanted else { return Written(isTaken: true) }
    if open?.append(bytes) != true { append(bytes) }
    // The last piece of what has been read at once.
    if bytes.count < Self.cut { close() }
    written += Int64(bytes.count)
    return Written(isTaken: true, readers: wakeReaders())
  }

  /// Adds the beginning or the end of a response.
  package mutating func write(_ entry: Entry) -> Written {
    if case .chunk(let data) = entry { return data.withUnsafeBytes { write($0) } }
    guard isWanted else { return Written(isTaken: true) }
    close()
    entries.append(entry)
    return Written(isTaken: true, readers: wakeReaders())
  }

  private var isWanted: Bool { readers.values.contains { !$0.isMuted } }

  private mutating func wakeReaders() -> [Int] {
    var woken: [Int] = []
    for (id, reader) in readers where reader.waits && !reader.isMuted {
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
    // Its place, until it is closed.
    entries.append(.end)
  }

  /// The chunk that could grow becomes one that can be read.
  private mutating func close() {
    guard let chunk = open.take() else { return }
    entries[entries.count - 1] = .chunk(chunk.close())
  }

  /// The transfer for which the writer waited is over.
  package mutating func writerLeft() { writerWaits = false }

  private var isFull: Bool { isBehind(by: highMark - 1) }

  /// Whether a reader that holds the writer back is more than so many bytes behind.
  private func isBehind(by count: Int) -> Bool {
    readers.values.contains { $0.holdsBack && !$0.isMuted && written - $0.done > Int64(count) }
  }

  // MARK: Readers

  /// Another reader, which gets what is written from now on.
  ///
  /// - Parameters:
  ///   - kind: How it comes by its entries. One that is pulling does not delay the end, until it has begun.
  ///   - holdsBack: Whether the writer waits for it when it is slow.
  package mutating func addReader(_ kind: Kind, holdsBack: Bool) -> Int {
    defer { nextID += 1 }
    close()
    readers[nextID] = Reader(
      kind: kind, next: first + entries.count, taken: written, done: written, holdsBack: holdsBack,
      delaysEnd: kind == .called)
    return nextID
  }

  /// Somebody has begun to pull: writer and end wait for this reader from now on.
  package mutating func begin(_ id: Int) {
    readers[id]?.holdsBack = true
    readers[id]?.delaysEnd = !endsWithoutPulling
  }

  /// The end waits for nobody who pulls any more.
  package mutating func endWithoutPulling() {
    endsWithoutPulling = true
    for (id, reader) in readers where reader.kind == .pulling { readers[id]?.delaysEnd = false }
  }

  /// Nothing more will be written for it. Returns whether it waits for that.
  package mutating func finish(_ id: Int) -> Bool {
    guard let reader = readers[id], !reader.isFinished else { return false }
    readers[id]?.isFinished = true
    readers[id]?.waits = false
    return reader.waits
  }

  /// It wants nothing more but to know that it is over. Returns whether the writer waits for this.
  package mutating func mute(_ id: Int) -> Bool {
    guard readers[id]?.isMuted == false else { return false }
    readers[id]?.isMuted = true
    skip(id)
    return takeWriter()
  }

  package func isMuted(_ id: Int) -> Bool { readers[id]?.isMuted ?? true }

  /// It is gone. Returns whether the writer waits for this.
  package mutating func removeReader(_ id: Int) -> Bool {
    guard readers.removeValue(forKey: id) != nil else { return false }
    close()
    trim()
    return takeWriter()
  }

  /// The next entries for a reader, which has done with those that it took before. Without any it waits, and is
  /// woken by the next one.
  package mutating func read(_ id: Int, atMost limit: Int = 64) -> Reading {
    guard var reader = readers[id] else { return Reading(entries: [], isLast: false, wakesWriter: false) }
    close()
    let from = reader.next - first
    let to = min(entries.count, from + max(1, limit))
    let taken = Array(entries[from..<to])
    reader.done = reader.taken
    reader.taken += taken.reduce(0) { $0 + weight(of: $1) }
    reader.next += taken.count
    let isLast = reader.isFinished && to == entries.count
    reader.waits = taken.isEmpty && !isLast
    readers[id] = isLast ? nil : reader
    trim()
    return Reading(entries: taken, isLast: isLast, wakesWriter: takeWriter())
  }

  private mutating func skip(_ id: Int) {
    close()
    readers[id]?.next = first + entries.count
    readers[id]?.taken = written
    readers[id]?.done = written
    trim()
  }

  /// Forgets what all have taken.
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
    guard case .chunk(let data) = entry else { return 0 }
    return Int64(data.count + overhead)
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
    }
  }
}
