import Alamofire
import Randomness
import Testing

/// Random events in random order, from a fixed seed. The invariants must hold after each.
@Suite("Decisions about credentials, with random events") struct RandomAuthenticationFlowTests {
  typealias Flow = AuthenticationFlow<Int, Int, Int>

  /// One sequence of events: the flow, and its expected state.
  private struct Walk {
    static let interval = 10.0
    static let attempts = 3

    var flow = Flow(credential: 0, limit: Flow.Limit(interval: interval, attempts: attempts))
    var time = 0.0
    var numbers = 0
    /// The numbers of the waiting requests, in their order.
    var adaptations: [Int] = []
    var retries: [Int] = []
    var running: (ticket: Int, version: Int)?
    var starts: [Double] = []

    mutating func next() -> Int {
      numbers += 1
      return numbers
    }

    mutating func began(_ refresh: Flow.Refresh) {
      #expect(running == nil, "one refresh at a time")
      #expect(refresh.credential == flow.credential)
      starts.append(time)
      let recent = starts.filter { time - $0 <= Self.interval }
      #expect(recent.count <= Self.attempts)
      running = (refresh.ticket, flow.version)
    }

    mutating func released(_ release: Flow.Release) {
      #expect(release.adaptations == adaptations, "all that waited, in their order")
      #expect(release.retries == retries)
      adaptations = []
      retries = []
      running = nil
    }

    func refused(_ release: Flow.Release) {
      #expect(running == nil)
      let recent = starts.filter { time - $0 <= Self.interval }
      #expect(recent.count >= Self.attempts)
      if case .success = release.outcome { Issue.record("refused with a credential") }
    }

    mutating func adapts(_ finding: Flow.Finding?) {
      let number = next()
      switch flow.adapt(number, knowing: finding, at: time) {
      case .ask(let credential, let version):
        #expect(credential == flow.credential && version == flow.version)
        #expect(finding?.version != flow.version)
      case .hold:
        #expect(running != nil)
        adaptations.append(number)
      case .refresh(let refresh):
        began(refresh)
        adaptations.append(number)
      case .apply(let credential, _):
        #expect(credential == flow.credential)
        #expect(flow.failure == nil)
      case .fail: #expect(flow.credential == nil)
      case .release(let release):
        adaptations.append(number)
        refused(release)
        released(release)
      }
    }

    mutating func retries(version: Int) {
      let number = next()
      switch flow.retry(number, version: version, at: time) {
      case .retry: #expect(version != flow.version || flow.credential == nil)
      case .hold:
        #expect(running != nil)
        retries.append(number)
      case .refresh(let refresh):
        began(refresh)
        retries.append(number)
      case .fail: #expect(flow.failure != nil)
      case .release(let release):
        retries.append(number)
        refused(release)
        released(release)
      }
    }

    mutating func ends(ticket: Int, _ result: Result<Int, any Error>) {
      let before = flow
      guard let release = flow.refreshed(ticket, result) else {
        #expect(running?.ticket != ticket)
        return
      }
      if let running, running.version != before.version {
        #expect(flow.credential == before.credential, "what the user set stays")
      } else if case .success(let credential) = result {
        #expect(flow.credential == credential)
        #expect(flow.version == before.version + 1)
      } else {
        #expect(flow.failure != nil)
      }
      released(release)
    }
  }

  @Test("The invariants hold for two thousand sequences of events") func invariants() {
    for seed in 0..<2000 { walk(seed: seed) }
  }

  private func walk(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var walk = Walk()
    for _ in 0..<60 {
      walk.time += Double.random(in: 0..<4, using: &random)
      let version = walk.flow.version - (Int.random(in: 0..<4, using: &random) == 0 ? 1 : 0)
      switch Int.random(in: 0..<10, using: &random) {
      case 0...3:
        walk.adapts(Flow.Finding(version: version, requiresRefresh: Bool.random(using: &random)))
      case 4: walk.adapts(nil)
      case 5...6: walk.retries(version: version)
      case 7:
        _ = walk.flow.replace(with: Bool.random(using: &random) ? walk.next() : nil)
        #expect(walk.flow.failure == nil)
      case 8:
        let result: Result<Int, any Error> =
          Bool.random(using: &random) ? .success(walk.next()) : .failure(TestError())
        walk.ends(ticket: walk.running?.ticket ?? 1, result)
      default: walk.ends(ticket: Int.random(in: 0..<5, using: &random), .success(walk.next()))
      }
      #expect(walk.flow.isRefreshing == (walk.running != nil))
      #expect(walk.flow.waitingCount == walk.adaptations.count + walk.retries.count)
      if !walk.flow.isRefreshing { #expect(walk.flow.waitingCount == 0, "no request is left waiting") }
    }
    if let ticket = walk.running?.ticket { walk.ends(ticket: ticket, .success(-1)) }
    #expect(walk.flow.waitingCount == 0)
  }
}
