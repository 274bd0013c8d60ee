import Alamofire
import Randomness
import Testing

/// Random events in random order, from a fixed seed. The invariants must hold after each.
@Suite("Lifecycle of a request, with random events")
struct RandomLifecycleTests {
  @Test("The invariants hold for two thousand sequences of events") func invariants() {
    for seed in 0..<2000 { walk(seed: seed) }
  }

  private func walk(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var life = RequestLifecycle()
    var starts = 0
    var wasCancelled = false
    for _ in 0..<40 {
      let before = life
      let event = Int.random(in: 0..<9, using: &random)
      let action = perform(event, on: &life, coin: Bool.random(using: &random))
      if action == .start {
        starts += 1
        #expect(before.run == .notStarted)
        #expect(!wasCancelled)
      }
      if action == .finish { #expect(before.run == .notStarted || before.run == .ended) }
      if action == .cancel { #expect(before.run == .gated || before.run == .running) }
      if action == .hold { #expect(life.state == .suspended) }
      if action == .refuseRetry { #expect(before.run == .running && life.state == before.state) }
      if action == .proceed { #expect(life.state == .resumed) }
      if action == .nothing, event < 4 { #expect(life.run == before.run) }
      if wasCancelled { #expect(life.state == .cancelled) }
      if before.state == .finished, life.state != .finished {
        #expect(event == 3 && life.state == .resumed, "only a handler leads out of the end")
      }
      if before.isAbandoned { #expect(life.isAbandoned) }
      wasCancelled = life.state == .cancelled
    }
    #expect(starts <= 1)
  }

  private func perform(_ event: Int, on life: inout RequestLifecycle, coin: Bool) -> RequestLifecycle.Action {
    switch event {
    case 0: return life.resumed()
    case 1: return life.suspended()
    case 2: return coin ? life.cancelled() : .nothing
    case 3: return life.handlerAdded(resumesAutomatically: coin)
    case 4: return life.setUpEagerly()
    case 5: return coin ? life.abandoned() : .nothing
    case 6: return coin ? life.refused() : .nothing
    case 7:
      if life.run == .running { _ = life.readyToSend() }
      return .nothing
    default:
      if life.run == .running || life.run == .gated { life.ended() }
      return .nothing
    }
  }
}
