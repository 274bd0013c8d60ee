import HTTPWire
import Randomness
import Testing

@Suite("Flow of a byte stream") struct ByteStreamFlowTests {
  /// Returns the flow of a connected stream.
  private func open() -> ByteStreamFlow {
    var flow = ByteStreamFlow()
    #expect(flow.resume() == [.connect])
    #expect(flow.connected() == [])
    return flow
  }

  @Test("The first operation connects") func connect() {
    var flow = ByteStreamFlow()
    #expect(flow.phase == .idle)
    #expect(flow.read(1, least: 1, most: 8) == [.connect])
    #expect(flow.write(2, count: 3) == [])
    #expect(flow.room == 0 && flow.writing == nil)
    #expect(flow.connected() == [])
    #expect(flow.room == 8 && flow.writing == 2)
  }

  @Test("No bytes are read without a read operation") func noRead() {
    var flow = open()
    #expect(flow.room == 0)
    #expect(flow.read(1, least: 4, most: 10) == [])
    #expect(flow.room == 10)
    #expect(flow.received(3) == [])
    #expect(flow.room == 7)
    #expect(flow.received(2) == [.answer(1, count: 5, isAtEnd: false)])
    #expect(flow.room == 0)
  }

  @Test("Reads and writes are performed in order") func order() {
    var flow = open()
    #expect(flow.read(1, least: 2, most: 2) + flow.read(2, least: 1, most: 4) == [])
    #expect(flow.write(3, count: 2) + flow.write(4, count: 0) + flow.write(5, count: 1) == [])
    #expect(flow.writing == 3)
    #expect(flow.sent(1) == [])
    #expect(flow.sent(1) == [.complete(3), .complete(4)])
    #expect(flow.writing == 5)
    #expect(flow.received(2) == [.answer(1, count: 2, isAtEnd: false)])
    #expect(flow.received(1) == [.answer(2, count: 1, isAtEnd: false)])
  }

  @Test("The end completes every read") func end() {
    var flow = open()
    #expect(flow.read(1, least: 9, most: 9) + flow.read(2, least: 1, most: 1) == [])
    #expect(flow.received(4) == [])
    #expect(flow.ended() == [.answer(1, count: 4, isAtEnd: true), .answer(2, count: 0, isAtEnd: true)])
    #expect(flow.read(3, least: 1, most: 1) == [.answer(3, count: 0, isAtEnd: true)])
    #expect(flow.phase == .open)
    #expect(flow.closeWriting() == [])
    #expect(flow.shutsWriting)
    #expect(flow.writingWasShut() == [.close(.closed)])
    #expect(flow.read(4, least: 1, most: 1) == [.answer(4, count: 0, isAtEnd: true)])
    #expect(flow.write(5, count: 1) == [.fail(5, .closed)])
  }

  @Test("Many operations keep their order while some are withdrawn") func manyOperations() {
    var flow = open()
    let numbers = UInt64(0)..<1_000
    for number in numbers {
      #expect(flow.write(number, count: 1) + flow.read(10_000 + number, least: 1, most: 1) == [])
    }
    for number in numbers where number % 3 == 0 {
      #expect(flow.withdraw(number, .cancelled) == [.fail(number, .cancelled)])
      #expect(flow.withdraw(10_000 + number, .cancelled) == [.fail(10_000 + number, .cancelled)])
    }
    for number in numbers where number % 3 != 0 {
      #expect(flow.sent(1) == [.complete(number)])
      #expect(flow.received(1) == [.answer(10_000 + number, count: 1, isAtEnd: false)])
    }
    #expect(flow.writing == nil && flow.room == 0)
  }

  @Test("Bytes are discarded once the read side is closed") func discarding() {
    var flow = open()
    #expect(flow.read(1, least: 2, most: 2) + flow.closeReading() == [] && !flow.discards)
    #expect(flow.received(2) == [.answer(1, count: 2, isAtEnd: false), .shutReading])
    #expect(flow.discards && flow.room == 0)
    flow.suspend()
    #expect(!flow.discards)
    #expect(flow.resume() == [] && flow.discards)
    #expect(flow.ended() == [] && !flow.discards)
  }

  @Test("The write side closes after the writes") func closeWrite() {
    var flow = open()
    #expect(flow.write(1, count: 1) + flow.closeWriting() == [])
    #expect(flow.write(2, count: 1) == [.fail(2, .closed)])
    #expect(!flow.shutsWriting)
    #expect(flow.sent(1) == [.complete(1)])
    #expect(flow.shutsWriting)
    #expect(flow.writingWasShut() == [])
    #expect(flow.read(3, least: 1, most: 1) == [])
    #expect(flow.received(1) == [.answer(3, count: 1, isAtEnd: false)])
    #expect(flow.closeReading() == [.shutReading, .close(.closed)])
  }

  @Test("Closing cancels reads and performs writes") func close() {
    var flow = open()
    #expect(flow.read(1, least: 1, most: 1) + flow.write(2, count: 1) == [])
    #expect(flow.close() == [.fail(1, .closed), .shutReading])
    #expect(flow.close() == [])
    #expect(flow.sent(1) == [.complete(2)])
    #expect(flow.writingWasShut() == [.close(.closed)])
  }

  @Test("Closing ends a stream whose sides were closed before, and only waited for a read")
  func closeClosedSides() {
    var flow = open()
    #expect(flow.read(1, least: 1, most: 1) + flow.closeWriting() == [])
    #expect(flow.writingWasShut() + flow.closeReading() == [])
    #expect(flow.close() == [.fail(1, .closed), .shutReading, .close(.closed)])
  }

  @Test("A stream that has not connected ends when both sides are closed", arguments: [false, true])
  func closeUnconnected(isSecure: Bool) {
    let handshake: [ByteStreamFlow.Effect] = isSecure ? [.fail(0, .closed)] : []
    var flow = ByteStreamFlow(secure: isSecure ? 0 : nil)
    #expect(flow.closeReading() == [])
    #expect(flow.closeWriting() == handshake + [.close(.closed)])
    var other = ByteStreamFlow(secure: isSecure ? 0 : nil)
    #expect(other.closeWriting() == [])
    #expect(other.closeReading() == handshake + [.close(.closed)])
  }

  @Test("An unused stream closes at once") func unused() {
    var flow = ByteStreamFlow()
    #expect(flow.close() == [.close(.closed)])
    var other = ByteStreamFlow()
    #expect(other.resume() == [.connect])
    #expect(other.close() == [.close(.closed)])
    #expect(other.connected() == [])
  }

  @Test("startTLS waits for both sides and delays later operations") func startTLS() {
    var flow = open()
    #expect(flow.read(1, least: 1, most: 1) + flow.write(2, count: 1) + flow.secure(3) == [])
    #expect(flow.read(4, least: 1, most: 1) + flow.write(5, count: 1) == [])
    #expect(flow.received(1) == [.answer(1, count: 1, isAtEnd: false)])
    #expect(flow.room == 0 && !flow.isSecuring)
    #expect(flow.sent(1) == [.complete(2), .secure])
    #expect(flow.isSecuring && flow.room == 0 && flow.writing == nil)
    #expect(flow.secure(6) == [.fail(6, .alreadySecure)])
    #expect(flow.secured() == [.complete(3)])
    #expect(flow.isSecure && flow.room == 1 && flow.writing == 5)
    #expect(flow.secure(7) == [.fail(7, .alreadySecure)])
  }

  @Test("TLS from the start precedes all operations") func tlsFromStart() {
    var flow = ByteStreamFlow(secure: 0)
    #expect(flow.write(1, count: 1) == [.connect])
    #expect(flow.connected() == [.secure])
    #expect(flow.failed() == [.fail(0, .failure), .fail(1, .failure), .close(.failure)])
  }

  @Test("Unread plain bytes before TLS end the stream") func unreadPlainBytes() {
    var flow = open()
    #expect(flow.read(1, least: 9, most: 9) == [])
    #expect(flow.received(4) == [])
    #expect(flow.withdraw(1, .timedOut) == [.fail(1, .timedOut)])
    #expect(flow.secure(2) == [.fail(2, .cleartextLeft), .close(.cleartextLeft)])
  }

  @Test("Withdrawing startTLS ends the stream, so that nothing after it is sent in the clear")
  func withdrawnTLS() {
    var unconnected = ByteStreamFlow()
    #expect(unconnected.secure(1) == [.connect])
    #expect(unconnected.write(2, count: 6) == [])
    let end = unconnected.withdraw(1, .cancelled)
    #expect(end == [.fail(1, .cancelled), .fail(2, .cutOff), .close(.cutOff)])
    #expect(unconnected.connected() == [] && unconnected.writing == nil)
    var waiting = open()
    #expect(waiting.write(1, count: 1) + waiting.secure(2) + waiting.read(3, least: 1, most: 1) == [])
    #expect(
      waiting.withdraw(2, .cancelled)
        == [.fail(2, .cancelled), .fail(3, .cutOff), .fail(1, .cutOff), .close(.cutOff)])
    var suspended = open()
    suspended.suspend()
    #expect(suspended.secure(1) == [])
    #expect(suspended.withdraw(1, .cancelled) == [.fail(1, .cancelled), .close(.cutOff)])
    #expect(
      suspended.write(2, count: 6) == [.fail(2, .cutOff)], "a write that was about to follow it fails, too")
  }

  @Test("startTLS ends a stream that a closed side keeps from being secured") func unsecurable() {
    var flow = open()
    #expect(flow.read(1, least: 4, most: 4) + flow.received(3) == [])
    #expect(flow.ended() == [.answer(1, count: 3, isAtEnd: true)])
    #expect(flow.secure(2) == [.fail(2, .halfClosed), .close(.halfClosed)])
    #expect(flow.write(3, count: 1) == [.fail(3, .halfClosed)])
    var pending = open()
    #expect(pending.write(1, count: 1) + pending.ended() + pending.secure(2) == [])
    #expect(pending.write(3, count: 1) == [])
    let rest: [ByteStreamFlow.Effect] = [.fail(2, .halfClosed), .fail(3, .halfClosed), .close(.halfClosed)]
    #expect(pending.sent(1) == [.complete(1)] + rest)
    for isConnected in [true, false] {
      var closed = isConnected ? open() : ByteStreamFlow()
      let shut: [ByteStreamFlow.Effect] = isConnected ? [.shutReading] : []
      #expect(closed.closeReading() == shut)
      #expect(closed.secure(1) == [.fail(1, .halfClosed), .close(.halfClosed)])
      #expect(closed.write(2, count: 1) == [.fail(2, .halfClosed)])
    }
    for isConnected in [true, false] {
      var unwritable = isConnected ? open() : ByteStreamFlow()
      #expect(unwritable.closeWriting() == [])
      #expect(unwritable.secure(1) == [.fail(1, .halfClosed), .close(.halfClosed)])
      #expect(unwritable.read(2, least: 1, most: 1) == [.fail(2, .halfClosed)], "it would not be secure")
    }
    var closing = open()
    #expect(closing.write(1, count: 1) + closing.close() == [.shutReading])
    #expect(closing.secure(2) == [.fail(2, .closed)], "no later operation is possible")
    #expect(closing.sent(1) == [.complete(1)] && closing.shutsWriting, "the write goes out")
  }

  @Test(
    "startTLS ends a stream of which a write has failed, so that no later read returns bytes in the clear")
  func failedWriteBeforeSecuring() {
    var flow = open()
    #expect(flow.write(1, count: 4) + flow.writingFailed() == [.fail(1, .failure)])
    #expect(flow.received(9) == [], "it is read ahead")
    #expect(flow.secure(2) == [.fail(2, .failure), .close(.failure)])
    #expect(flow.read(3, least: 8, most: 8) == [.fail(3, .failure)])
    var other = open()
    #expect(other.write(1, count: 4) + other.read(2, least: 1, most: 1) == [])
    #expect(other.writingFailed() == [.fail(1, .failure)])
    #expect(other.secure(3) == [.fail(3, .failure), .fail(2, .failure), .close(.failure)])
  }

  @Test(
    "After a failed write and its TLS no read that is requested later returns bytes that came in the clear")
  func laterReadOfFailedTLS() {
    var flow = open()
    #expect(flow.write(1, count: 4) + flow.secure(2) == [])
    let end: [ByteStreamFlow.Effect] = [.shutReading, .close(.failure)]
    #expect(flow.writingFailed() == [.fail(1, .failure), .fail(2, .failure)] + end)
    #expect(flow.read(3, least: 1, most: 1) == [.fail(3, .failure)])
    var other = open()
    #expect(other.read(1, least: 2, most: 9) + other.write(2, count: 4) + other.secure(3) == [])
    #expect(other.writingFailed() == [.fail(2, .failure), .fail(3, .failure)])
    #expect(other.read(4, least: 1, most: 1) == [.fail(4, .closed)])
    #expect(other.received(2) == [.answer(1, count: 2, isAtEnd: false)] + end, "it was requested before TLS")
  }

  @Test("A read that times out loses no bytes") func readTimeout() {
    var flow = open()
    #expect(flow.read(1, least: 9, most: 9) + flow.received(4) == [])
    #expect(flow.withdraw(1, .timedOut) == [.fail(1, .timedOut)])
    #expect(flow.withdraw(1, .timedOut) == [])
    #expect(flow.read(2, least: 1, most: 3) == [.answer(2, count: 3, isAtEnd: false)])
    #expect(flow.buffered == 1)
  }

  @Test("A write that times out halfway ends the stream") func writeTimeout() {
    var flow = open()
    #expect(flow.write(1, count: 4) + flow.write(2, count: 4) + flow.write(3, count: 4) == [])
    #expect(flow.withdraw(2, .cancelled) == [.fail(2, .cancelled)])
    #expect(flow.sent(1) == [])
    #expect(flow.withdraw(1, .timedOut) == [.fail(1, .timedOut), .fail(3, .cutOff), .close(.cutOff)])
    #expect(flow.write(4, count: 1) == [.fail(4, .cutOff)])
  }

  @Test("After a failed write the bytes of the peer are read up to the end") func failedWrite() {
    var flow = open()
    #expect(flow.read(1, least: 2, most: 2) + flow.write(2, count: 4) + flow.write(3, count: 4) == [])
    #expect(flow.writingFailed() == [.fail(2, .failure), .fail(3, .failure)])
    #expect(flow.writingFailed() == [])
    #expect(flow.write(5, count: 1) == [.fail(5, .failure)])
    #expect(flow.closeWriting() == [] && !flow.shutsWriting)
    #expect(flow.received(2) == [.answer(1, count: 2, isAtEnd: false)])
    #expect(flow.read(7, least: 9, most: 9) + flow.received(3) == [] && flow.room == 6)
    #expect(flow.ended() == [.answer(7, count: 3, isAtEnd: true), .close(.failure)])
    #expect(flow.read(8, least: 1, most: 1) == [.fail(8, .failure)])
  }

  @Test("After a failed write no read that waits for TLS returns bytes that came in the clear")
  func failedWriteBeforeTLS() {
    var flow = open()
    #expect(flow.read(1, least: 1, most: 1) + flow.write(2, count: 4) + flow.secure(3) == [])
    #expect(flow.read(4, least: 1, most: 9) + flow.read(5, least: 1, most: 9) + flow.closeReading() == [])
    let failed = flow.writingFailed()
    #expect(failed.prefix(2) == [.fail(2, .failure), .fail(3, .failure)])
    #expect(failed.dropFirst(2) == [.fail(4, .failure), .fail(5, .failure)], "the reads fail with TLS")
    #expect(flow.received(1) == [.answer(1, count: 1, isAtEnd: false), .shutReading, .close(.failure)])
  }

  @Test("After a failed write the end is found without a read, and the last bytes are not lost")
  func readAhead() {
    for isWhole in [true, false] {
      var flow = open()
      #expect(flow.write(1, count: 1) == [] && flow.room == 0)
      #expect(flow.writingFailed() == [.fail(1, .failure)])
      #expect(flow.room == 65_536)
      #expect(flow.received(65_530) == [] && flow.room == 6)
      #expect((isWhole ? flow.ended() : flow.readingFailed()) == [] && flow.room == 0)
      #expect(flow.read(2, least: 1, most: 65_000) == [.answer(2, count: 65_000, isAtEnd: false)])
      let rest = flow.read(3, least: 1, most: 65_000)
      #expect(rest == [.answer(3, count: 530, isAtEnd: isWhole), .close(.failure)])
    }
    var flow = open()
    #expect(flow.write(1, count: 1) + flow.writingFailed() == [.fail(1, .failure)])
    #expect(flow.ended() == [.close(.failure)])
  }

  @Test("A failed read ends a stream, also after a failed write") func failedRead() {
    var flow = open()
    #expect(flow.read(1, least: 1, most: 1) == [])
    #expect(flow.readingFailed() == [.fail(1, .failure), .close(.failure)])
    var other = open()
    #expect(other.write(1, count: 1) + other.writingFailed() == [.fail(1, .failure)])
    #expect(other.received(2) + other.readingFailed() == [])
    #expect(other.read(2, least: 3, most: 3) == [.fail(2, .failure), .close(.failure)])
  }

  @Test("A failed write ends a stream whose read side is closed, and closing ends the others")
  func failedWriteOfClosedSides() {
    var flow = open()
    #expect(flow.write(1, count: 1) + flow.closeReading() == [.shutReading])
    #expect(flow.writingFailed() == [.fail(1, .failure), .close(.failure)])
    var other = open()
    #expect(other.write(1, count: 1) + other.writingFailed() == [.fail(1, .failure)])
    #expect(other.read(2, least: 1, most: 1) == [])
    #expect(other.close() == [.fail(2, .closed), .shutReading, .close(.failure)])
  }

  @Test("A suspended stream performs no operation") func suspend() {
    var flow = open()
    #expect(flow.read(1, least: 1, most: 1) + flow.write(2, count: 1) == [])
    flow.suspend()
    #expect(flow.room == 0 && flow.writing == nil)
    #expect(flow.resume() == [])
    #expect(flow.room == 1 && flow.writing == 2)
  }

  @Test("After the end operations have no effect") func afterEnd() {
    var flow = open()
    #expect(flow.read(1, least: 1, most: 1) == [])
    #expect(flow.cancel() == [.fail(1, .cancelled), .close(.cancelled)])
    let late =
      flow.connected() + flow.secured() + flow.received(1) + flow.ended() + flow.sent(1)
      + flow.writingWasShut() + flow.failed() + flow.cancel() + flow.close() + flow.closeReading()
      + flow.closeWriting() + flow.withdraw(1, .timedOut) + flow.resume()
    #expect(late == [])
    #expect(flow.read(2, least: 1, most: 1) == [.fail(2, .cancelled)])
  }

  /// Checks that every operation is completed once, that the end comes once and last, that only received bytes are
  /// delivered, and that no write or read after TLS is performed in the clear.
  @Test("The invariants hold for random events", arguments: 0..<40 as Range<UInt64>) func randomEvents(
    seed: UInt64
  ) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<50 {
      var walk = Walk(isSecure: random.next() % 3 == 0)
      for _ in 0..<60 { walk.step(&random) }
      if random.next() % 2 == 0 { walk.close() } else { walk.take(walk.flow.cancel()) }
      #expect(walk.reported.sorted() == walk.requested.sorted())
      #expect(walk.ends == 1)
    }
  }

  private struct Walk {
    var flow: ByteStreamFlow
    var requested: [UInt64] = []
    var reported: [UInt64] = []
    var ends = 0
    var come = 0
    var given = 0
    /// Whether TLS was requested, and the writes that were requested after that.
    var wantsTLS: Bool
    var secrets: Set<UInt64> = []
    /// The reads that were requested after TLS, whether it was pending or had failed.
    var secureReads: Set<UInt64> = []
    var pendingTLS: UInt64?

    init(isSecure: Bool) {
      flow = ByteStreamFlow(secure: isSecure ? 0 : nil)
      wantsTLS = isSecure
      pendingTLS = isSecure ? 0 : nil
      if isSecure { requested = [0] }
    }

    mutating func step(_ random: inout SeededGenerator) {
      let number = UInt64(requested.count + 1)
      switch random.next() % 16 {
      case 0, 1, 2:
        requested.append(number)
        if pendingTLS != nil { secureReads.insert(number) }
        let least = Int(random.next() % 4)
        take(flow.read(number, least: least, most: Int(random.next() % 8)))
      case 3, 4, 5:
        requested.append(number)
        if wantsTLS { secrets.insert(number) }
        take(flow.write(number, count: Int(random.next() % 4)))
      case 6 where random.next() % 4 == 0:
        requested.append(number)
        wantsTLS = true
        if pendingTLS == nil { pendingTLS = number }
        take(flow.secure(number))
      case 7: take(flow.connected())
      case 8: take(flow.secured())
      case 9 where flow.room > 0:
        let count = Int(random.next() % UInt64(flow.room)) + 1
        come += count
        take(flow.received(count))
      case 10 where flow.writing != nil:
        if random.next() % 16 == 0 { take(flow.writingFailed()) } else { take(flow.sent(1)) }
      case 11 where flow.shutsWriting: take(flow.writingWasShut())
      case 12: take(flow.withdraw(random.next() % number, random.next() % 2 == 0 ? .timedOut : .cancelled))
      case 13: if random.next() % 2 == 0 { flow.suspend() } else { take(flow.resume()) }
      case 14 where random.next() % 6 == 0:
        switch random.next() % 4 {
        case 0: take(flow.closeReading())
        case 1: take(flow.closeWriting())
        case 2: take(flow.close())
        default: take(flow.ended())
        }
      default: break
      }
    }

    /// Closes the stream, and performs what it still asks for.
    mutating func close() {
      take(flow.close())
      for _ in 0..<500 where ends == 0 {
        if flow.phase == .connecting { take(flow.connected()) }
        if flow.isSecuring { take(flow.secured()) }
        if flow.writing != nil { take(flow.sent(1)) }
        if flow.shutsWriting { take(flow.writingWasShut()) }
      }
    }

    mutating func take(_ effects: [ByteStreamFlow.Effect]) {
      let isExposed = !flow.isSecure && flow.writing.map { secrets.contains($0) } == true
      #expect(!isExposed, "a write after TLS is sent in the clear")
      for effect in effects {
        #expect(ends == 0 || !effect.isMovement)
        if case .complete(let number) = effect, number == pendingTLS { pendingTLS = nil }
        switch effect {
        case .answer(let number, let count, _):
          reported.append(number)
          given += count
          #expect(given <= come)
          let isInjected = !flow.isSecure && count > 0 && secureReads.contains(number)
          #expect(!isInjected, "the read \(number) got bytes in the clear")
        case .complete(let number):
          reported.append(number)
          let isExposed = !flow.isSecure && secrets.contains(number)
          #expect(!isExposed, "the write \(number) was sent in the clear")
        case .fail(let number, _): reported.append(number)
        case .close: ends += 1
        case .connect, .secure, .shutReading: break
        }
      }
    }
  }
}

extension ByteStreamFlow.Effect {
  fileprivate var isMovement: Bool {
    switch self {
    case .connect, .secure, .shutReading, .close, .complete: true
    case .answer, .fail: false
    }
  }
}
