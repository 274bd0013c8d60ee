import Alamofire
import Testing

@Suite("The life of a request")
struct RequestLifecycleTests {
  typealias State = Request.State
  static let all: [State] = [.initialized, .resumed, .suspended, .cancelled, .finished]

  @Test("The table of allowed changes", arguments: all, all)
  func table(from: State, to: State) {
    let allowed: [State] =
      switch from {
      case .initialized: Self.all
      case .resumed: [.suspended, .cancelled, .finished]
      case .suspended: [.resumed, .cancelled, .finished]
      case .cancelled, .finished: []
      }
    #expect(from.canBecome(to) == allowed.contains(to))
  }

  @Test func theFirstResumeStartsAndOthersDoNothing() {
    var life = RequestLifecycle()
    #expect(life.resumed() == .start)
    #expect(life.resumed() == .nothing)
    #expect(life.state == .resumed)
    #expect(life.run == .running)
  }

  @Test func suspendingHoldsOnlyWhatRuns() {
    var life = RequestLifecycle()
    #expect(life.suspended() == .nothing)
    #expect(life.suspended() == .nothing)
    #expect(life.resumed() == .start)
    #expect(life.suspended() == .hold)
    #expect(life.suspended() == .nothing)
    #expect(life.resumed() == .proceed)
  }

  @Test func cancellingBeforeTheStartOnlyServesTheHandlers() {
    var life = RequestLifecycle()
    #expect(life.cancelled() == .finish)
    #expect(life.cancelled() == .nothing)
    #expect(life.resumed() == .nothing)
    #expect(life.suspended() == .nothing)
    #expect(life.handlerAdded(resumesAutomatically: true) == .nothing)
    life.ended()
    #expect(life.state == .cancelled)
    #expect(!life.mayAttemptAgain)
  }

  @Test func cancellingWhatRunsCancelsIt() {
    var life = RequestLifecycle()
    _ = life.resumed()
    #expect(life.cancelled() == .cancel)
    life.ended()
    #expect(life.state == .cancelled)
    #expect(life.cancelled() == .nothing)
  }

  @Test func anEagerRequestWaitsForResume() {
    var life = RequestLifecycle()
    #expect(life.setUpEagerly() == .start)
    #expect(life.setUpEagerly() == .nothing)
    #expect(life.readyToSend() == false)
    #expect(life.run == .gated)
    #expect(life.suspended() == .nothing)
    #expect(life.resumed() == .proceed)
    #expect(life.run == .running)
    #expect(life.readyToSend() == true)
  }

  @Test func aGatedRequestCanBeCancelledAndAbandoned() {
    var life = RequestLifecycle()
    _ = life.setUpEagerly()
    _ = life.readyToSend()
    var other = life
    #expect(life.cancelled() == .cancel)
    #expect(other.abandoned() == .cancel)
    #expect(other.isAbandoned)
    #expect(!other.mayAttemptAgain)
  }

  @Test func abandoningIsAFinishBeforeTheStartAndNothingAfterTheEnd() {
    var life = RequestLifecycle()
    #expect(life.abandoned() == .finish)
    life.ended()
    #expect(life.state == .finished)
    #expect(life.abandoned() == .nothing)
  }

  @Test func handlersResumeOnceAndOnlyWhereTheyMay() {
    var life = RequestLifecycle()
    #expect(life.handlerAdded(resumesAutomatically: false) == .nothing)
    #expect(life.state == .initialized)
    #expect(life.handlerAdded(resumesAutomatically: true) == .start)
    #expect(life.handlerAdded(resumesAutomatically: true) == .nothing)
    var suspended = RequestLifecycle()
    _ = suspended.suspended()
    #expect(suspended.handlerAdded(resumesAutomatically: true) == .nothing)
  }

  @Test func aHandlerAfterTheEndRunsAgainWithoutSending() {
    var life = RequestLifecycle()
    _ = life.resumed()
    life.ended()
    #expect(life.state == .finished)
    #expect(life.handlerAdded(resumesAutomatically: false) == .finish)
    #expect(life.state == .resumed)
    life.ended()
    #expect(life.state == .finished)
    #expect(life.resumed() == .nothing)
  }

  @Test func aHandlerOnACancelledRequestLeavesItCancelled() {
    var life = RequestLifecycle()
    _ = life.resumed()
    _ = life.cancelled()
    life.ended()
    #expect(life.handlerAdded(resumesAutomatically: true) == .finish)
    #expect(life.state == .cancelled)
  }

  @Test func aSuspendedRequestWaitsBeforeItsNextAttempt() {
    var life = RequestLifecycle()
    _ = life.resumed()
    _ = life.suspended()
    #expect(life.readyToSend() == false)
    #expect(life.resumed() == .proceed)
  }
}
