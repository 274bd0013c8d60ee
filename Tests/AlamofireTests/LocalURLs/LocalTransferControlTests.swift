import Alamofire
import HTTPWire
import Testing

@Suite struct LocalTransferControlTests {
  @Test func anOpenTransferControlLetsPass() async throws {
    try await LocalTransferControl().pass()
  }

  @Test func aClosedTransferControlWaitsForItsOpening() async throws {
    let control = LocalTransferControl()
    control.suspend()
    async let passed: Void = control.pass()
    control.resume()
    try await passed
    #expect(control.resumptions == 1)
  }

  @Test func aDecisionThatWasMadeBeforeIsNotUndone() async throws {
    let control = LocalTransferControl()
    let openings = control.resumptions
    control.resume()
    control.suspend(unlessResumedSince: openings)
    try await control.pass()
  }

  @Test func roomMayComeBeforeTheOfferReturns() async throws {
    let control = LocalTransferControl()
    control.expectFullness()
    control.hasRoom()
    try await control.pass()
    control.expectFullness()
    async let passed: Void = control.pass()
    control.hasRoom()
    try await passed
  }

  @Test func aCancelledTransferControlThrows() async {
    let control = LocalTransferControl()
    control.suspend()
    control.cancel()
    await #expect(throws: TransportFailure.self) { try await control.pass() }
  }
}
