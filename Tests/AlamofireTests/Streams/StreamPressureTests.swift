import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// A slow consumer makes the server wait, and memory stays small.
@Suite("Back-pressure of streams", .timeLimit(.minutes(5)))
struct StreamPressureTests {
  /// More than the buffers of the sockets hold.
  private static let size = 40_000_000
  /// The mark, and the piece that goes over it.
  private static let most = 1 << 20 + 1 << 17

  private let server: HTTPTestServer
  /// Where the server comes when it has sent everything.
  private let sent = Gate()
  private let request: DataStreamRequest

  init() throws {
    server = try HTTPTestServer()
    sent.open()
    server.enqueue(.parts(.pattern(Self.size), .gate(sent)))
    // Resumed when all readers of a test are added, because a later reader gets only the rest.
    request = Session.real().streamRequest(server.url("/"), shouldAutomaticallyResume: false)
  }

  /// Waits until the server has to wait, and checks that it does not get rid of its bytes meanwhile.
  private func expectServerWaits() async {
    #expect(await eventually { request.flow.isFull })
    #expect(request.flow.heldBytes <= Self.most)
    #expect(sent.reachedCount == 0)
  }

  @Test func aHandlerThatBlocks() async {
    let gate = DispatchSemaphore(value: 0)
    let check = PatternCheck()
    let journal = DataJournal { stream in
      if let data = stream.value, check.add(data) { gate.wait() }
    }
    request.responseStream(on: DispatchQueue(label: "test.slow"), stream: journal.note).resume()
    await journal.results.wait(for: 1)
    await expectServerWaits()
    gate.signal()
    #expect(await journal.end().error == nil)
    #expect(check.isRight(Self.size))
  }

  @Test func theSlowestOfSeveralHandlersCounts() async {
    let gate = DispatchSemaphore(value: 0)
    let slow = PatternCheck()
    let slowJournal = DataJournal { stream in
      if let data = stream.value, slow.add(data) { gate.wait() }
    }
    let fast = PatternCheck()
    let fastJournal = DataJournal { stream in if let data = stream.value { _ = fast.add(data) } }
    request.responseStream(on: DispatchQueue(label: "test.fast"), stream: fastJournal.note)
      .responseStream(on: DispatchQueue(label: "test.slow"), stream: slowJournal.note).resume()
    await slowJournal.results.wait(for: 1)
    await expectServerWaits()
    gate.signal()
    _ = await (slowJournal.end(), fastJournal.end())
    #expect(slow.isRight(Self.size) && fast.isRight(Self.size))
  }

  @Test func aLoopThatTakesItsTime() async {
    let check = PatternCheck()
    var iterator = request.streamTask().streamingData().makeAsyncIterator()
    request.resume()
    if let data = await iterator.next()?.value { _ = check.add(data) }
    await expectServerWaits()
    var completion: DataStreamRequest.Completion?
    while let stream = await iterator.next() {
      if let data = stream.value { _ = check.add(data) }
      completion = stream.completion
    }
    #expect(completion?.response?.statusCode == 200 && completion?.error == nil)
    #expect(check.isRight(Self.size))
  }

  @Test func anInputStreamThatIsNotRead() async throws {
    let stream = try #require(request.asInputStream())
    request.resume()
    await expectServerWaits()
    let check = PatternCheck()
    stream.open()
    await onAThread(stream) { stream in
      while let data = stream.bytes(100_000) { _ = check.add(data) }
    }
    #expect(check.isRight(Self.size))
  }

  @Test func aStreamThatNobodyHasBegunToReadHoldsNobodyBack() async {
    let unread = request.streamTask().streamingData()
    let read = request.streamTask().streamingData()
    request.resume()
    let check = PatternCheck()
    for await stream in read {
      if let data = stream.value { _ = check.add(data) }
    }
    #expect(check.isRight(Self.size))
    let late = PatternCheck()
    for await stream in unread { if let data = stream.value { _ = late.add(data) } }
    #expect(late.isRight(Self.size))
    #expect(request.flow.heldBytes == 0)
  }

  @Test func cancellingEndsTheWaiting() async {
    let gate = DispatchSemaphore(value: 0)
    let journal = DataJournal { stream in if stream.value != nil { gate.wait() } }
    request.responseStream(on: DispatchQueue(label: "test.slow"), stream: journal.note).resume()
    await expectServerWaits()
    request.cancel()
    for _ in 0..<1000 { gate.signal() }
    #expect(await journal.end().error?.isExplicitlyCancelledError == true)
    #expect(request.flow.heldBytes == 0)
  }

  @Test func aSuspendedStreamGoesOn() async {
    let gate = DispatchSemaphore(value: 0)
    let check = PatternCheck()
    let journal = DataJournal { stream in
      if let data = stream.value, check.add(data) { gate.wait() }
    }
    request.responseStream(on: DispatchQueue(label: "test.slow"), stream: journal.note).resume()
    await expectServerWaits()
    request.suspend()
    gate.signal()
    #expect(await eventually { request.flow.heldBytes == 0 })
    #expect(journal.completions.count == 0)
    request.resume()
    #expect(await journal.end().error == nil)
    #expect(check.isRight(Self.size))
  }

  @Test func withoutAHandlerNothingIsHeld() async {
    request.resume()
    await request.finished()
    #expect(request.isFinished)
    #expect(request.flow.heldBytes == 0)
    #expect(sent.reachedCount == 1)
    let journal = DataJournal()
    request.responseStream(on: .global(), stream: journal.note)
    #expect(await journal.end().response?.statusCode == 200)
    #expect(journal.values.isEmpty)
  }

  @Test func smallChunksAreManyEvents() async throws {
    let parts = (0..<1000).map { Reply.Part.bytes(Array("\($0)\n".utf8)) }
    server.enqueue(Reply(body: .parts(parts)))
    // The first reply is another test's.
    _ = Session.real().streamRequest(server.url("/")).resume()
    _ = try await server.takeRequest()
    let journal = DataJournal()
    Session.real().streamRequest(server.url("/")).responseStream(on: .global(), stream: journal.note)
    #expect(await journal.end().error == nil)
    #expect(journal.text == (0..<1000).map { "\($0)\n" }.joined())
  }
}
