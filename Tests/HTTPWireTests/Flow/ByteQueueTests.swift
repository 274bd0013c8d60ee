import FoundationEssentials
import HTTPWire
import Randomness
import Testing

@Suite struct ByteQueueTests {
  private func read(_ queue: inout ByteQueue, _ room: Int) -> (bytes: [UInt8], reading: BodyReading, Bool) {
    var buffer = [UInt8](repeating: 0, count: room)
    let (reading, wakesWriter) = buffer.withUnsafeMutableBytes { queue.read(into: $0) }
    guard case .bytes(let count) = reading else { return ([], reading, wakesWriter) }
    return (Array(buffer[..<count]), reading, wakesWriter)
  }

  @Test("Bytes are read in the order of the writes") func order() {
    var queue = ByteQueue()
    _ = queue.write(Data([1, 2, 3]))
    _ = queue.write(Data([4, 5]))
    #expect(queue.count == 5)
    #expect(read(&queue, 4).bytes == [1, 2, 3, 4])
    #expect(read(&queue, 4).bytes == [5])
    #expect(queue.count == 0)
  }

  @Test("A reader that finds no bytes is woken once") func wake() {
    var queue = ByteQueue()
    guard case .wait = read(&queue, 4).reading else {
      Issue.record("an empty queue has to wait")
      return
    }
    let written1031 = queue.write(Data([1]))
    #expect(written1031 == .init(wakesReader: true, mayGoOn: true))
    let written1112 = queue.write(Data([2]))
    #expect(written1112 == .init(wakesReader: false, mayGoOn: true))
  }

  @Test("A waiting reader is woken for the end") func wakeForEnd() {
    var queue = ByteQueue()
    _ = read(&queue, 4)
    let isFirst = queue.finish()
    let isSecond = queue.finish()
    #expect(isFirst)
    #expect(!isSecond, "the first end counts")
    guard case .end = read(&queue, 4).reading else {
      Issue.record("the end has to come")
      return
    }
  }

  @Test("A failure follows the bytes before it") func failure() {
    var queue = ByteQueue()
    _ = queue.write(Data([9]))
    _ = queue.finish(TransportFailure(.cannotReadBody, "broken"))
    let written1698 = queue.write(Data([1]))
    #expect(written1698 == .init(wakesReader: false, mayGoOn: false))
    #expect(read(&queue, 4).bytes == [9])
    guard case .failure(let failure) = read(&queue, 4).reading else {
      Issue.record("the failure has to come")
      return
    }
    #expect(failure.message == "broken")
  }

  @Test(
    "Bytes behind a limit are read once the body is complete, and a failure takes their place",
    arguments: [true, false])
  func limit(isComplete: Bool) {
    var queue = ByteQueue()
    _ = queue.write(Data([1, 2, 3]))
    var room = [UInt8](repeating: 0, count: 4)
    func read(atMost limit: Int) -> BodyReading {
      room.withUnsafeMutableBytes { queue.read(into: $0, atMost: limit).0 }
    }
    guard case .bytes(2) = read(atMost: 2), case .wait = read(atMost: 0) else {
      Issue.record("the last byte has to wait")
      return
    }
    let isAwaited = queue.finish(isComplete ? nil : TransportFailure(.cannotReadBody, "longer"))
    #expect(isAwaited)
    switch read(atMost: 0) {
    case .bytes(1): #expect(isComplete && room[0] == 3)
    case .failure: #expect(!isComplete)
    case .bytes, .wait, .end: Issue.record("neither the last byte nor the failure")
    }
  }

  @Test("The writer stops at the high mark and continues at the low mark") func marks() {
    var queue = ByteQueue(highMark: 10, lowMark: 4)
    let below = queue.write(Data(count: 9))
    let above = queue.write(Data(count: 1))
    #expect(below.mayGoOn)
    #expect(!above.mayGoOn)
    #expect(read(&queue, 5).2 == false, "five are left")
    #expect(read(&queue, 1).2 == true, "four are left")
    #expect(read(&queue, 1).2 == false, "woken once")
  }

  @Test("Small writes share memory") func smallWrites() {
    var queue = ByteQueue()
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for byte in bytes { _ = queue.write(Data([byte])) }
    #expect(queue.count == bytes.count && queue.chunkCount < 100)
    var seen: [UInt8] = []
    while queue.count > 0 { seen += read(&queue, 1000).bytes }
    #expect(seen == bytes && queue.chunkCount == 0)
  }

  @Test("Reading moves each chunk once or not at all, on average") func movedChunks() {
    let total = 2_000
    var queue = ByteQueue()
    for _ in 0..<total { _ = queue.write(Data(count: 4096)) }
    #expect(queue.chunkCount == total)
    var moved = 0
    for left in (0..<total).reversed() {
      let before = queue.chunkCount
      #expect(read(&queue, 4096).bytes.count == 4096)
      if queue.chunkCount < before { moved += queue.chunkCount }
      #expect(queue.chunkCount <= 2 * left + 66, "the chunks that were read are removed")
    }
    #expect(moved <= total)
  }

  @Test("Random operations lose no byte and respect the marks", arguments: [1, 2, 3, 4, 5] as [UInt64])
  func randomOperations(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var queue = ByteQueue(highMark: 100, lowMark: 30)
    var written: [UInt8] = []
    var seen: [UInt8] = []
    var mayWrite = true
    for _ in 0..<5000 {
      if mayWrite, Bool.random(using: &random) {
        let chunk = (0..<Int.random(in: 0...40, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
        written += chunk
        mayWrite = queue.write(Data(chunk)).mayGoOn
        #expect(mayWrite == (queue.count < 100))
      } else {
        let (bytes, _, wakes) = read(&queue, Int.random(in: 1...50, using: &random))
        seen += bytes
        if wakes { #expect(!mayWrite && queue.count <= 30) }
        if wakes { mayWrite = true }
        #expect(mayWrite || queue.count > 30, "a writer that waits would wait for ever")
      }
      #expect(queue.count == written.count - seen.count)
    }
    _ = queue.finish()
    while case .bytes = {
      let next = read(&queue, 64); seen += next.bytes; return next.reading
    }() {}
    #expect(seen == written)
  }
}
