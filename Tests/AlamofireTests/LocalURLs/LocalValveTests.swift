import Alamofire
import HTTPWire
import Testing

@Suite struct LocalValveTests {
  @Test func anOpenValveLetsPass() async throws {
    try await LocalValve().pass()
  }

  @Test func aClosedValveWaitsForItsOpening() async throws {
    let valve = LocalValve()
    valve.close()
    async let passed: Void = valve.pass()
    valve.open()
    try await passed
    #expect(valve.openings == 1)
  }

  @Test func aDecisionThatWasMadeBeforeIsNotUndone() async throws {
    let valve = LocalValve()
    let openings = valve.openings
    valve.open()
    valve.close(unlessOpenedSince: openings)
    try await valve.pass()
  }

  @Test func roomMayComeBeforeTheOfferReturns() async throws {
    let valve = LocalValve()
    valve.expectFullness()
    valve.hasRoom()
    try await valve.pass()
    valve.expectFullness()
    async let passed: Void = valve.pass()
    valve.hasRoom()
    try await passed
  }

  @Test func aCancelledValveThrows() async {
    let valve = LocalValve()
    valve.close()
    valve.cancel()
    await #expect(throws: TransportFailure.self) { try await valve.pass() }
  }
}
