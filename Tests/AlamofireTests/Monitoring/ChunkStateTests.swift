import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// The body that chunk readers receive, without a transfer.
@Suite("State of chunk readers") struct ChunkStateTests {
  private let chunks = ResponseChunks(executor: nil)

  private func add(handlesRestart: Bool) {
    let onRestart: (@Sendable () -> Void)? = handlesRestart ? { @Sendable () -> Void in } : nil
    _ = chunks.add(on: .global(), onRestart: onRestart) { _ in }
  }

  private func receive(_ text: String) {
    _ = Data(text.utf8).withUnsafeBytes { chunks.receive($0) }
  }

  @Test(
    "Another response may follow a part only if each reader handles that",
    arguments: [[true], [false], [true, false]])
  func anotherResponse(handles: [Bool]) {
    for handles in handles { add(handlesRestart: handles) }
    let maySeeAnother = handles.allSatisfy { $0 }
    #expect(chunks.begin() == nil && chunks.mayBeginAgain && chunks.passedCount == 0)
    receive("one")
    receive("two")
    #expect(chunks.passedCount == 6 && chunks.mayBeginAgain == maySeeAnother)
    #expect((chunks.begin() == nil) == maySeeAnother)
    #expect(chunks.passedCount == (maySeeAnother ? 0 : 6), "the bytes of another response are counted anew")
    receive("x")
    #expect(chunks.passedCount == (maySeeAnother ? 1 : 7))
  }

  @Test("A stored body is begun once for all readers, and counts as a part", arguments: [false, true])
  func collected(handles: Bool) {
    add(handlesRestart: handles)
    #expect(chunks.beginCollected() == nil && chunks.beginCollected() == nil)
    #expect(chunks.mayBeginAgain == handles && chunks.passedCount == 0)
    #expect((chunks.begin() == nil) == handles)
  }

  @Test("A stored body cannot follow a part of another one", arguments: [false, true])
  func collectedAfterPart(handles: Bool) {
    add(handlesRestart: handles)
    receive("part")
    #expect((chunks.beginCollected() == nil) == handles)
  }

  @Test(
    "A request that is sent in the call of the factory shows each chunk to observers that are added later")
  func immediate() async {
    let (gate, reached) = (Latch(), Latch())
    let reply = FakeReply(chunks: ["one", "two"].map { Data($0.utf8) }).held(by: gate, reached: reached)
    var options = TransportOptions()
    options.makesRequestsAtOnce = true
    let session = Session.retained(
      fake: FakeTransport(reply), options: options, observers: SessionObservers(eventMonitors: []))
    let (response, chunks) = await monitoredLate(session, gate, reached)
    #expect(response.data == Data("onetwo".utf8))
    #expect(chunks == ["one", "two"])
  }

  /// Sends a request whose response is held by a gate, and adds a monitor before the gate is opened. Returns the
  /// response, and the chunks that the monitor received.
  private func monitoredLate(
    _ session: Session, _ gate: Latch, _ reached: Latch
  ) async -> (AFDataResponse<Data?>, [String]) {
    let request = session.request("http://a.test/")
    async let response = request.end()
    await reached.wait()
    let (seen, queue) = (Recorder<String>(), DispatchQueue(label: "test.chunks"))
    let monitor = ClosureEventMonitor(queue: queue)
    monitor.dataTaskDidReceiveData = { _, _, data in seen.add(String(decoding: data, as: UTF8.self)) }
    request.transferMonitor(monitor)
    gate.open()
    let ended = await response
    queue.sync {}
    return (ended, seen.values)
  }

  @Test("A monitor that is added late receives the part of a body that breaks off") func brokenBody() async {
    let (gate, reached) = (Latch(), Latch())
    let broken = FakeReply(
      chunks: [Data("half".utf8)], failure: TransportFailure(.connectionLost, "lost"))
    let session = Session.retained(
      fake: FakeTransport(broken.held(by: gate, reached: reached)),
      observers: SessionObservers(eventMonitors: []))
    let (response, chunks) = await monitoredLate(session, gate, reached)
    #expect(response.error != nil)
    #expect(chunks == ["half"])
  }
}
