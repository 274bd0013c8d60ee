import Alamofire
import HTTPWire
import Testing

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

  @Test("A cancelled control throws") func cancelled() async {
    let control = LocalTransferControl()
    control.suspend()
    control.cancel()
    await #expect(throws: TransportFailure.self) { try await control.pass() }
  }
}
