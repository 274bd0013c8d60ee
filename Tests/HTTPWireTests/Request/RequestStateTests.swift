import HTTPWire
import Testing

@Suite struct RequestStateTests {
  typealias Phase = RequestState.Phase

  static let allowed: [Phase: Set<Phase>] = [
    .initialized: [.initialized, .resumed, .suspended, .cancelled, .finished],
    .resumed: [.suspended, .cancelled, .finished],
    .suspended: [.resumed, .cancelled, .finished],
    .cancelled: [],
    .finished: [],
  ]

  static func state(in phase: Phase) -> RequestState {
    var state = RequestState()
    _ = state.transition(to: phase)
    return state
  }

  @Test(arguments: Phase.allCases, Phase.allCases)
  func exactlyTheStepsOfTheTableAreAllowed(from: Phase, to: Phase) throws {
    var state = Self.state(in: from)
    #expect(state.phase == from)
    let isAllowed = try #require(Self.allowed[from]).contains(to)
    #expect(state.canTransition(to: to) == isAllowed)
    #expect(state.transition(to: to) == isAllowed)
    #expect(state.phase == (isAllowed ? to : from))
  }

  @Test(arguments: Phase.allCases)
  func onlyAFinishedRequestIsReopened(phase: Phase) {
    var state = Self.state(in: phase)
    #expect(state.reopen() == (phase == .finished))
    #expect(state.phase == (phase == .finished ? .resumed : phase))
  }
}
