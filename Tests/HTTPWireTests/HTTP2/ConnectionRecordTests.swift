import HTTPWire
import Testing

@Suite("Record of an HTTP/2 connection") struct ConnectionRecordTests {
  typealias Frame = FrameScanner.Frame

  let record = ConnectionRecord { true }

  private func open(_ number: UInt32) -> StreamRecord {
    let stream = record.add()
    record.sent(Frame(kind: Frame.headers, flags: 5, stream: number))
    return stream
  }

  @Test("Streams are numbered in the order of their requests")
  func numbers() {
    let first = record.add()
    let second = record.add()
    #expect(record.isUnsent(first) && record.isCutOff(first) == nil)
    record.sent(Frame(kind: Frame.headers, flags: 4, stream: 1))
    record.sent(Frame(kind: Frame.headers, flags: 5, stream: 3))
    // The trailers of an upload.
    record.sent(Frame(kind: Frame.headers, flags: 5, stream: 1))
    #expect(first.number == 1 && second.number == 3)
    #expect(!record.isUnsent(first))
  }

  @Test(
    "END_STREAM is effective at the end of its frame and field block",
    arguments: [
      ([(0, 0)], false), ([(0, 1)], true), ([(1, 5)], true), ([(1, 4)], false), ([(1, 1)], false),
      ([(1, 1), (9, 0)], false), ([(1, 1), (9, 4)], true), ([(1, 0), (9, 4)], false), ([(9, 5)], false),
    ] as [([(UInt8, UInt8)], Bool)])
  func ends(frames: [(UInt8, UInt8)], isEnd: Bool) {
    let stream = open(1)
    for (kind, flags) in frames { record.received(Frame(kind: kind, flags: flags, stream: 1)) }
    #expect(record.isCutOff(stream) == !isEnd)
  }

  @Test("A complete stream is truncated if the client rejected it or the connection")
  func rejections() {
    let stream = open(1)
    let other = open(3)
    record.received(Frame(kind: Frame.data, flags: 1, stream: 1))
    record.received(Frame(kind: Frame.data, flags: 1, stream: 3))
    record.sent(Frame(kind: Frame.reset, stream: 1, code: ConnectionRecord.Code.streamClosed))
    #expect(record.isCutOff(stream) == false)
    record.sent(Frame(kind: Frame.reset, stream: 1, code: 1))
    #expect(record.isCutOff(stream) == true && record.isCutOff(other) == false)
    record.sent(Frame(kind: Frame.goAway, code: 0))
    #expect(record.isCutOff(other) == false && !record.hasFailed)
    record.sent(Frame(kind: Frame.goAway, code: 1))
    #expect(record.isCutOff(other) == true && record.hasFailed)
  }

  @Test("Refused streams are those above GOAWAY or reset with two codes, without a response")
  func refusals() {
    let streams = [1, 3, 5, 7, 9].map { open($0) }
    record.received(Frame(kind: Frame.goAway, lastStream: 0x7FFF_FFFF))
    #expect(streams.allSatisfy { !record.isRefused($0) })
    record.received(Frame(kind: Frame.goAway, lastStream: 7))
    record.received(Frame(kind: Frame.reset, stream: 1, code: 7))
    record.received(Frame(kind: Frame.reset, stream: 3, code: 13))
    record.received(Frame(kind: Frame.reset, stream: 5, code: 8))
    record.received(Frame(kind: Frame.headers, flags: 4, stream: 7))
    record.received(Frame(kind: Frame.reset, stream: 7, code: 7))
    #expect(streams.map { record.isRefused($0) } == [true, true, false, false, true])
    #expect(streams.allSatisfy { record.isBroken($0) })
    #expect(record.breakCount == 6)
  }

  @Test("RST_STREAM and GOAWAY count if all earlier bytes are authentic")
  func authenticity() {
    var isAuthentic = false
    let record = ConnectionRecord { isAuthentic }
    let streams = [UInt32(1), 3].map { number in
      let stream = record.add()
      record.sent(Frame(kind: Frame.headers, flags: 5, stream: number))
      return stream
    }
    record.received(Frame(kind: Frame.reset, stream: 1, code: 7))
    record.received(Frame(kind: Frame.goAway, lastStream: 1))
    #expect(record.breakCount == 2)
    #expect(streams.allSatisfy { !record.isRefused($0) && !record.isBroken($0) })
    isAuthentic = true
    record.confirm()
    isAuthentic = false
    #expect(streams.allSatisfy { record.isRefused($0) && record.isBroken($0) })
  }

  @Test("A request that ends before its head is sent leaves later streams without a number")
  func confusion() {
    let earlier = open(1)
    let gone = record.add()
    record.remove(gone)
    let later = open(3)
    #expect(later.number == 0 && record.isCutOff(later) == nil && !record.isUnsent(later))
    #expect(record.isCutOff(earlier) == true)
  }

  @Test("Without understood frames, no facts are known")
  func losses() {
    let stream = open(1)
    record.lose()
    #expect(record.isCutOff(stream) == nil)
    #expect(!record.isUnsent(record.add()))
    // After garbage, frames of the server are unknown, and those of the client show that.
    record.sent(Frame(kind: Frame.goAway, code: 6))
    #expect(record.isCutOff(stream) == true)
  }
}
