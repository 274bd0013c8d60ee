import FoundationEssentials
import HTTPWire
import Testing

@Suite struct ChunkLogTests {
  private func chunk(_ count: Int, _ byte: UInt8 = 0) -> ChunkLog.Entry {
    .chunk(Data(repeating: byte, count: count))
  }

  @Test("Without readers no chunk is stored") func noReaders() {
    var log = ChunkLog(highMark: 10)
    for _ in 0..<100 {
      let written = log.write(chunk(10))
      #expect(!written.pauses && written.readers.isEmpty)
    }
    #expect(log.heldBytes == 0)
  }

  @Test("Each reader receives all chunks in order") func readers() {
    var log = ChunkLog()
    let first = log.addReader(.called, holdsBack: true)
    _ = log.write(.begin)
    _ = log.write(chunk(1, 1))
    let second = log.addReader(.called, holdsBack: true)
    _ = log.write(chunk(1, 2))
    let all = log.read(first)
    #expect(all.entries == [.begin, chunk(1, 1), chunk(1, 2)])
    let rest = log.read(second)
    #expect(rest.entries == [chunk(1, 2)])
    #expect(log.heldBytes == 0)
  }

  @Test("A reader is woken once until it finds no chunk") func wake() {
    var log = ChunkLog()
    let reader = log.addReader(.called, holdsBack: true)
    let first = log.write(chunk(1))
    #expect(first.readers == [reader])
    let second = log.write(chunk(1))
    #expect(second.readers.isEmpty)
    _ = log.read(reader)
    let third = log.write(chunk(1))
    #expect(third.readers.isEmpty, "it is at work and comes again by itself")
    _ = log.read(reader)
    let empty = log.read(reader)
    #expect(empty.entries.isEmpty)
    let fourth = log.write(chunk(1))
    #expect(fourth.readers == [reader])
  }

  @Test("The slowest reader causes back-pressure") func backPressure() {
    var log = ChunkLog(highMark: 100, lowMark: 20)
    let fast = log.addReader(.called, holdsBack: true)
    let slow = log.addReader(.called, holdsBack: true)
    for number in 1...10 {
      let pauses = log.write(chunk(10)).pauses
      #expect(pauses == (number == 10))
    }
    _ = log.read(fast)
    let done = log.read(fast)
    #expect(!done.wakesWriter)
    #expect(log.heldBytes == 100)
    var wakes: [Bool] = []
    for _ in 0..<11 { wakes.append(log.read(slow, atMost: 1).wakesWriter) }
    // The ninth read releases eight chunks.
    #expect(wakes == [false, false, false, false, false, false, false, false, true, false, false])
    let answer2 = log.write(chunk(10)).pauses
    #expect(!answer2)
  }

  @Test("A chunk above the mark is taken, and pauses the writer until it is processed") func largeChunk() {
    var log = ChunkLog(highMark: 10)
    let reader = log.addReader(.called, holdsBack: true)
    let answer3 = log.write(chunk(1000)).pauses
    #expect(answer3)
    let answer4 = log.write(chunk(1)).pauses
    #expect(answer4, "a writer that does not pause loses nothing")
    #expect(log.heldBytes == 1001)
    _ = log.read(reader)
    let answer5 = log.read(reader).wakesWriter
    #expect(answer5)
  }

  @Test("A tiny chunk counts with its overhead") func tinyChunks() {
    var log = ChunkLog(highMark: 1000, lowMark: 0, overhead: 99)
    let reader = log.addReader(.called, holdsBack: true)
    var count = 1
    while !log.write(chunk(1)).pauses { count += 1 }
    #expect(count == 10)
    _ = log.read(reader)
    let empty = log.read(reader)
    #expect(empty.wakesWriter)
  }

  @Test("Large chunks are joined until they are read") func joinedChunks() {
    var log = ChunkLog()
    let reader = log.addReader(.called, holdsBack: true)
    for byte in 1...3 { _ = log.write(chunk(16_384, UInt8(byte))) }
    _ = log.write(chunk(5, 4))
    _ = log.write(chunk(5, 5))
    #expect(log.heldBytes == 3 * 16_384 + 10)
    let entries = log.read(reader).entries
    #expect(entries.count == 2, "a short piece is the end of what was read")
    guard case .chunk(let joined) = entries.first else { return }
    #expect(joined == Data((1...3).flatMap { [UInt8](repeating: $0, count: 16_384) } + [4, 4, 4, 4, 4]))
    _ = log.write(chunk(16_384, 6))
    let next = log.read(reader).entries
    _ = log.write(chunk(16_384, 7))
    #expect(next == [chunk(16_384, 6)])
    #expect(joined.last == 4, "memory is not used again before it is released")
  }

  @Test("A reader without back-pressure does not count until it reads") func readerWithoutBackPressure() {
    var log = ChunkLog(highMark: 10, lowMark: 0)
    let reader = log.addReader(.pulling, holdsBack: false)
    for _ in 0..<5 {
      let pauses = log.write(chunk(10)).pauses
      #expect(!pauses)
    }
    #expect(!log.isBusy)
    log.begin(reader)
    #expect(log.isBusy)
    let answer6 = log.write(chunk(10)).pauses
    #expect(answer6)
    log.endWithoutPulling()
    #expect(!log.isBusy)
  }

  @Test("A reader that starts after the cancellation does not delay the end") func lateReader() {
    var log = ChunkLog(highMark: 10)
    let reader = log.addReader(.pulling, holdsBack: false)
    log.endWithoutPulling()
    log.begin(reader)
    _ = log.write(chunk(5))
    #expect(!log.isBusy)
  }

  // MARK: Events

  private static func events(_ count: Int, size: Int = 0) -> [ServerSentEvent] {
    (0..<count).map { ServerSentEvent(data: "\($0)" + String(repeating: "x", count: size)) }
  }

  @Test("Events that arrive together are one entry, which wakes a reader once") func batch() {
    var log = ChunkLog()
    let reader = log.addReader(.called, holdsBack: true)
    let written = log.write(Self.events(100))
    #expect(!written.pauses && written.readers == [reader])
    let nothing = log.write(Self.events(0))
    #expect(nothing.readers.isEmpty)
    let reading = log.read(reader)
    #expect(reading.entries == [.events(Self.events(100))])
  }

  @Test("Readers with an order have events one by one") func orderedEvents() {
    var log = ChunkLog()
    let first = log.addReader(.called, holdsBack: true)
    let second = log.addReader(.called, holdsBack: true, after: first)
    _ = log.write(Self.events(2))
    for event in Self.events(2) {
      let (own, early) = (log.read(first).entries, log.read(second).entries)
      #expect(own == [.events([event])] && early.isEmpty)
      _ = log.handedOut(first)
      let later = log.read(second).entries
      #expect(later == [.events([event])])
      _ = log.handedOut(second)
    }
  }

  @Test("The writer waits while a reader is behind by the size of events, and is woken") func fullOfEvents() {
    var log = ChunkLog(highMark: 1000, lowMark: 100, overhead: 64)
    let reader = log.addReader(.called, holdsBack: true)
    // Each has 7 bytes of a type, 1 of data and the overhead.
    var isFull: [Bool] = []
    for count in [0, 10, 3, 1] { isFull.append(log.write(Self.events(count)).pauses) }
    #expect(isFull == [false, false, false, true] && log.writerWaits)
    #expect(log.heldBytes == 14 * 8)
    let (first, second) = (log.read(reader), log.read(reader))
    #expect(!first.wakesWriter && second.wakesWriter && !log.writerWaits)
  }

  @Test("Removed and muted readers cause no back-pressure") func removedReaders() {
    for isMuted in [false, true] {
      var log = ChunkLog(highMark: 10)
      let reader = log.addReader(.called, holdsBack: true)
      let answer7 = log.write(chunk(10)).pauses
      #expect(answer7)
      let wakes = (isMuted ? log.mute(reader) : log.removeReader(reader)).wakesWriter
      #expect(wakes)
      #expect(log.isMuted(reader) == isMuted)
      #expect(log.heldBytes == 0)
      for _ in 0..<10 {
        let pauses = log.write(chunk(10)).pauses
        #expect(!pauses)
      }
      #expect(log.heldBytes == 0)
    }
  }

  @Test("The last read is reported once") func lastRead() {
    var log = ChunkLog()
    let reader = log.addReader(.called, holdsBack: true)
    _ = log.write(chunk(1))
    let isWoken = log.finish(reader)
    #expect(!isWoken, "it has been woken for the chunk")
    let first = log.read(reader)
    #expect(first.isLast && first.entries.count == 1)
    let second = log.read(reader)
    #expect(!second.isLast && second.entries.isEmpty)
    let late = log.addReader(.called, holdsBack: true)
    let isWaiting = log.finish(late)
    #expect(isWaiting)
    let again = log.finish(late)
    #expect(!again)
    let only = log.read(late)
    #expect(only.isLast && only.entries.isEmpty)
  }

  @Test("A muted reader receives the end") func mutedReader() {
    var log = ChunkLog()
    let reader = log.addReader(.called, holdsBack: true)
    _ = log.write(chunk(1))
    _ = log.mute(reader)
    #expect(log.isBusy, "it was woken")
    let reading = log.read(reader)
    #expect(reading.entries.isEmpty && !log.isBusy)
    let isWoken = log.finish(reader)
    #expect(isWoken)
    let answer8 = log.read(reader).isLast
    #expect(answer8)
  }

  @Test(
    "For random operations, readers receive all chunks in order and the memory is bounded", arguments: 0..<100
  )
  func walk(seed: UInt64) {
    var random = Splits(seed: seed)
    var log = ChunkLog(highMark: 50, lowMark: 10)
    let readers = (0..<3).map { _ in log.addReader(.called, holdsBack: true) }
    var seen: [Int: [UInt8]] = [:]
    var sent: [UInt8] = []
    var isPaused = false
    for number in 0..<1000 {
      if random.number(below: 2) == 0, !isPaused {
        let byte = UInt8(truncatingIfNeeded: number)
        isPaused = log.write(chunk(1 + random.number(below: 10), byte)).pauses
        sent.append(byte)
      } else {
        let reader = readers[random.number(below: 3)]
        let reading = log.read(reader, atMost: 1 + random.number(below: 4))
        if reading.wakesWriter { isPaused = false }
        #expect(log.writerWaits == isPaused)
        for case .chunk(let data) in reading.entries {
          seen[reader, default: []].append(data[data.startIndex])
        }
      }
      #expect(log.heldBytes < 60)
    }
    for reader in readers {
      while case let entries = log.read(reader).entries, !entries.isEmpty {
        for case .chunk(let data) in entries { seen[reader, default: []].append(data[data.startIndex]) }
      }
      #expect(seen[reader] == sent)
    }
    #expect(log.heldBytes == 0)
  }

  @Test("A finished reader reads up to its end, and later chunks do not concern it")
  func finishedReader() {
    var log = ChunkLog(highMark: 10)
    let old = log.addReader(.pulling, holdsBack: true)
    _ = log.write(.begin)
    _ = log.write(chunk(5, 1))
    let waits = log.finish(old)
    #expect(!waits)
    let unread = log.write(chunk(100, 2))
    #expect(!unread.pauses && unread.readers.isEmpty, "no reader is left for it")
    let new = log.addReader(.called, holdsBack: true)
    let begin = log.write(.begin)
    #expect(begin.readers == [new])
    let second = log.write(chunk(9, 3)).pauses
    #expect(!second, "the old reader does not hold the writer back")
    let first = log.read(old)
    #expect(first.entries == [.begin, chunk(5, 1)] && first.isLast)
    let later = log.read(new)
    #expect(later.entries == [.begin, chunk(9, 3)])
    #expect(log.heldBytes == 0)
  }

  @Test("A finished reader that is muted receives its end only")
  func mutedAfterTheEnd() {
    var log = ChunkLog()
    let old = log.addReader(.pulling, holdsBack: true)
    _ = log.write(chunk(5, 1))
    _ = log.finish(old)
    let new = log.addReader(.called, holdsBack: true)
    _ = log.write(chunk(5, 2))
    _ = log.mute(old)
    let end = log.read(old)
    #expect(end.entries.isEmpty && end.isLast)
    let later = log.read(new)
    #expect(later.entries == [chunk(5, 2)])
  }
}
