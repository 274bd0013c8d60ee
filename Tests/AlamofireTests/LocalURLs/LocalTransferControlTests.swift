import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

@Suite(.timeLimit(.minutes(5))) struct LocalTransferControlTests {
  @Test("An open control does not block") func open() async throws {
    try await LocalTransferControl().pass()
  }

  @Test("A suspended control waits for resume") func suspended() async throws {
    let control = LocalTransferControl()
    control.suspend()
    async let passed: Void = control.pass()
    control.resume()
    try await passed
    #expect(control.resumptions == 1)
  }

  @Test("An earlier decision is not undone") func earlyDecision() async throws {
    let control = LocalTransferControl()
    let openings = control.resumptions
    control.resume()
    control.suspend(unlessResumedSince: openings)
    try await control.pass()
  }

  @Test("A request that is resumed before its transfer knows that it is suspended is not held")
  func resumedBeforeTheBegin() async throws {
    let control = LocalTransferControl()
    // Between the answer of the observer and its use.
    control.resume()
    control.begin(.hold)
    try await control.pass()
  }

  @Test("Room can be reported before the offer returns") func earlyRoom() async throws {
    let control = LocalTransferControl()
    control.expectFullness()
    control.hasRoom()
    try await control.pass()
    control.expectFullness()
    async let passed: Void = control.pass()
    control.hasRoom()
    try await passed
  }

  @Test("The deadline ends a suspension, and a full sink") func deadline() async {
    let controls = (0..<2).map { _ in LocalTransferControl(deadline: .now) }
    controls[0].suspend()
    controls[1].expectFullness()
    for control in controls {
      let failure = await #expect(throws: TransportFailure.self) { try await control.pass() }
      #expect(failure?.kind == .timedOut)
      #expect(failure?.message.contains("timeoutIntervalForResource") == true)
    }
    let limited = LocalTransferControl(deadline: .now, .init(total: .zero))
    limited.suspend()
    let failure = await #expect(throws: TransportFailure.self) { try await limited.pass() }
    #expect(failure?.message.contains("timeLimits.total") == true)
  }

  @Test("The deadline ends waits only, unless it is checked") func openDeadline() async throws {
    let control = LocalTransferControl(deadline: .now)
    try await control.pass()
    #expect(throws: TransportFailure.self) { try control.checkDeadline() }
    try LocalTransferControl(deadline: .now + .seconds(3600)).checkDeadline()
  }

  /// An observer that holds a transfer, and never continues it.
  private final class HoldingObserver: TransferObserver {
    func transferBegan(_ control: any TransferControl) -> TransferStart { .hold }
    func headReceived(_ head: ResponseHead) -> HeadDisposition { .proceed }
    func bytesMoved(_ count: ByteCount) {}
    func transferEnded() {}
  }

  @Test("Content without a transfer over the network observes the deadline of its request") func transports()
    async throws
  {
    let origin = try #require(Origin(url: "http://a.test/"))
    let request = WireRequest(url: "data:,a", origin: origin, profile: ConnectionProfile()) { parts in
      parts.deadline = .now
      parts.idleTimeout = .milliseconds(10)
    }
    let stored = StoredAnswer(head: ResponseHead(status: 200), body: Data())
    let transports: [(any AsyncTransport, any TransferObserver)] = [
      (LocalTransport(), SilentObserver { _ in }), (LocalTransport(), HoldingObserver()),
      (StoredResponseTransport(head: ResponseHead(status: 200), body: nil), HoldingObserver()),
      // One that is served although the deadline is over waits for as long as a server may be silent.
      (StoredTransport(answer: stored, sink: nil), HoldingObserver()),
    ]
    for (transport, observer) in transports {
      let failure = await #expect(throws: TransportFailure.self) {
        try await transport.response(to: request, observer: observer)
      }
      #expect(failure?.kind == .timedOut, "\(type(of: transport))")
    }
  }

  @Test("A cancelled control throws") func cancelled() async {
    let control = LocalTransferControl()
    control.suspend()
    control.cancel()
    await #expect(throws: TransportFailure.self) { try await control.pass() }
  }
}
