import Alamofire
import Testing

@Suite("Lifecycle of a request")
struct RequestLifecycleTests {
  typealias State = RequestState
  static let all: [State] = [.initialized, .resumed, .suspended, .cancelled, .finished]

  @Test("The table lists the allowed changes of state", arguments: all, all)
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

  /// A call, and its action in each of ``states``.
  private typealias Row = (
    name: String, call: (inout RequestLifecycle) -> RequestLifecycle.Action, actions: String
  )

  /// The changes that lead to a state.
  private static let states: [(name: String, prepare: @Sendable (inout RequestLifecycle) -> Void)] = [
    ("new", { _ in }), ("running", { _ = $0.resumed() }),
    ("suspended before its start", { _ = $0.suspended() }),
    ("eager", { _ = $0.setUpEagerly() }),
    (
      "gated",
      {
        _ = $0.setUpEagerly()
        _ = $0.readyToSend()
      }
    ),
    (
      "suspended",
      {
        _ = $0.resumed()
        _ = $0.suspended()
      }
    ),
    (
      "closing",
      {
        _ = $0.resumed()
        _ = $0.closed()
      }
    ),
    (
      "cancelled",
      {
        _ = $0.cancelled()
        $0.ended()
      }
    ),
    (
      "finished",
      {
        _ = $0.resumed()
        $0.ended()
      }
    ),
    (
      "abandoned",
      {
        _ = $0.resumed()
        _ = $0.abandoned()
        $0.ended()
      }
    ),
    (
      "finished, and serves a late handler",
      {
        _ = $0.resumed()
        $0.ended()
        _ = $0.handlerAdded(resumesAutomatically: true)
      }
    ),
  ]

  @Test("Each call has its action in each state") func actions() {
    let rows: [Row] = [
      ("resumed", { $0.resumed() }, "s-sppp-----"), ("suspended", { $0.suspended() }, "-h-h-------"),
      ("cancelled", { $0.cancelled() }, "fcfcccc---r"), ("closed", { $0.closed() }, "-p-p-p-----"),
      ("set up eagerly", { $0.setUpEagerly() }, "s----------"),
      ("ready", { $0.readyToSend() ? .proceed : .hold }, "hphhhhppppp"),
      ("handler", { $0.handlerAdded(resumesAutomatically: false) }, "-------fff-"),
      ("handler that resumes", { $0.handlerAdded(resumesAutomatically: true) }, "s--pp--fff-"),
      ("abandoned", { $0.abandoned() }, "fcfcccc---r"), ("refused", { $0.refused() }, "f-f--------"),
      ("sent again", { $0.sentAgain() }, "--------s--"),
      ("attempts again", { $0.attemptsAgain() ? .proceed : .hold }, "pppppphhphp"),
    ]
    let letters: [RequestLifecycle.Action: Character] = [
      .nothing: "-", .start: "s", .proceed: "p", .hold: "h", .cancel: "c", .finish: "f", .refuseRetry: "r",
    ]
    for row in rows {
      for (state, expected) in zip(Self.states, row.actions) {
        var life = RequestLifecycle()
        state.prepare(&life)
        let action = row.call(&life)
        #expect(letters[action] == expected, "\(row.name) of a request that is \(state.name)")
      }
    }
  }

  @Test("The end of a closing handshake ends the closing") func closed() {
    var life = RequestLifecycle()
    _ = life.resumed()
    _ = life.closed()
    #expect(life.isClosing)
    life.ended()
    #expect(!life.isClosing && life.state == .cancelled)
  }

  @Test("The first resume starts the request, others have no effect") func resume() {
    var life = RequestLifecycle()
    #expect(life.resumed() == .start)
    #expect(life.resumed() == .nothing)
    #expect(life.state == .resumed)
    #expect(life.run == .running)
  }

  @Test("Suspending holds a running request only") func suspend() {
    var life = RequestLifecycle()
    #expect(life.suspended() == .nothing)
    #expect(life.suspended() == .nothing)
    #expect(life.resumed() == .start)
    #expect(life.suspended() == .hold)
    #expect(life.suspended() == .nothing)
    #expect(life.resumed() == .proceed)
  }

  @Test("Cancelling before the start only runs the handlers") func cancelBeforeStart() {
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

  @Test("Cancelling a running request cancels its transfer") func cancelRunning() {
    var life = RequestLifecycle()
    _ = life.resumed()
    #expect(life.cancelled() == .cancel)
    life.ended()
    #expect(life.state == .cancelled)
    #expect(life.cancelled() == .nothing)
  }

  @Test("Closing a running request continues it, and cancelling then ends it once") func close() {
    var life = RequestLifecycle()
    #expect(life.closed() == .nothing)
    _ = life.resumed()
    _ = life.suspended()
    #expect(life.closed() == .proceed)
    #expect(life.state == .cancelled && life.isClosing && !life.mayAttemptAgain)
    #expect(life.closed() == .nothing)
    #expect(life.cancelled() == .cancel)
    #expect(!life.isClosing)
    #expect(life.cancelled() == .nothing)
    var ended = RequestLifecycle()
    _ = ended.resumed()
    _ = ended.closed()
    ended.ended()
    #expect(ended.state == .cancelled && !ended.isClosing)
    #expect(ended.cancelled() == .nothing)
  }

  @Test("An eager request waits for resume") func eagerRequest() {
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

  @Test("A request that waits for resume can be cancelled and abandoned") func waitingRequest() {
    var life = RequestLifecycle()
    _ = life.setUpEagerly()
    _ = life.readyToSend()
    var other = life
    #expect(life.cancelled() == .cancel)
    #expect(other.abandoned() == .cancel)
    #expect(other.isAbandoned)
    #expect(!other.mayAttemptAgain)
  }

  @Test("Abandoning finishes a request before its start and has no effect after its end") func abandon() {
    var life = RequestLifecycle()
    #expect(life.abandoned() == .finish)
    life.ended()
    #expect(life.state == .finished)
    #expect(life.abandoned() == .nothing)
  }

  @Test("A refusal ends a request before its start only, and others may be retried") func refuse() {
    var life = RequestLifecycle()
    _ = life.suspended()
    var running = life
    #expect(life.refused() == .finish)
    #expect(life.isAbandoned && !life.mayAttemptAgain)
    _ = running.resumed()
    #expect(running.refused() == .nothing)
    #expect(!running.isAbandoned && running.mayAttemptAgain)
    #expect(running.abandoned() == .cancel)
  }

  @Test("A handler resumes the request once, and only if that is allowed") func automaticResume() {
    var life = RequestLifecycle()
    #expect(life.handlerAdded(resumesAutomatically: false) == .nothing)
    #expect(life.state == .initialized)
    #expect(life.handlerAdded(resumesAutomatically: true) == .start)
    #expect(life.handlerAdded(resumesAutomatically: true) == .nothing)
    var suspended = RequestLifecycle()
    _ = suspended.suspended()
    #expect(suspended.handlerAdded(resumesAutomatically: true) == .nothing)
  }

  @Test("A handler after the end runs again without sending") func lateHandler() {
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

  private static func finishedWithLateHandler() -> RequestLifecycle {
    var life = RequestLifecycle()
    _ = life.resumed()
    life.ended()
    _ = life.handlerAdded(resumesAutomatically: true)
    return life
  }

  @Test("A cancellation or the end of the session only refuses the retry for a late handler")
  func lateCancellation() {
    let changes: [(inout RequestLifecycle) -> RequestLifecycle.Action] = [
      { $0.cancelled() }, { $0.abandoned() },
    ]
    for change in changes {
      var life = Self.finishedWithLateHandler()
      #expect(life.suspended() == .nothing)
      #expect(life.closed() == .nothing)
      #expect(life.state == .resumed && life.mayAttemptAgain)
      let action = change(&life)
      #expect(action == .refuseRetry && life.state == .resumed && life.refusesRetry)
      let isRetried = life.attemptsAgain()
      #expect(!isRetried)
      life.ended()
      #expect(life.state == .finished && !life.refusesRetry)
    }
  }

  @Test("A handler that is added before the earlier ones are called waits for them") func waitingHandler() {
    var life = RequestLifecycle()
    _ = life.resumed()
    life.ended()
    life.beginDelivery()
    #expect(life.handlerAdded(resumesAutomatically: true) == .nothing)
    #expect(life.handlerAdded(resumesAutomatically: true) == .nothing)
    #expect(life.state == .finished && life.run == .ended && !life.servesLateHandlers)
    #expect(life.sentAgain() == .nothing, "the handler is to receive the outcome that is there")
    #expect(life.endDelivery() == .finish)
    #expect(life.state == .resumed && life.run == .running && life.servesLateHandlers)
    life.ended()
    life.beginDelivery()
    #expect(life.endDelivery() == .nothing)
    #expect(life.handlerAdded(resumesAutomatically: true) == .finish)
  }

  @Test("A cancellation or the end of the session also refuses the retry for a handler that waits")
  func waitingCancellation() {
    let changes: [(inout RequestLifecycle) -> RequestLifecycle.Action] = [
      { $0.cancelled() }, { $0.abandoned() },
    ]
    for change in changes {
      var life = RequestLifecycle()
      _ = life.resumed()
      life.ended()
      life.beginDelivery()
      _ = life.handlerAdded(resumesAutomatically: true)
      let action = change(&life)
      #expect(action == .refuseRetry && life.state == .finished)
      #expect(life.endDelivery() == .finish)
      #expect(life.refusesRetry)
      let isRetried = life.attemptsAgain()
      #expect(!isRetried)
    }
  }

  @Test("The life of a request takes eight bytes, which every request has") func size() {
    #expect(MemoryLayout<RequestLifecycle>.size == 8)
  }

  @Test("A handler waits for the handlers of two runs that are still to be called") func twoDeliveries() {
    var life = RequestLifecycle()
    _ = life.resumed()
    life.ended()
    life.beginDelivery()
    #expect(life.sentAgain() == .start)
    #expect(life.handlerAdded(resumesAutomatically: true) == .nothing)
    life.ended()
    life.beginDelivery()
    #expect(life.handlerAdded(resumesAutomatically: true) == .nothing)
    #expect(life.endDelivery() == .nothing)
    #expect(life.endDelivery() == .finish)
  }

  @Test("An attempt for a late handler can be suspended and cancelled") func lateAttempt() {
    var life = Self.finishedWithLateHandler()
    let isRetried = life.attemptsAgain()
    #expect(isRetried)
    #expect(life.suspended() == .hold)
    #expect(life.cancelled() == .cancel)
    life.ended()
    #expect(life.state == .cancelled)
  }

  @Test("A handler on a cancelled request does not change its state") func handlerAfterCancel() {
    var life = RequestLifecycle()
    _ = life.resumed()
    _ = life.cancelled()
    life.ended()
    #expect(life.handlerAdded(resumesAutomatically: true) == .finish)
    #expect(life.state == .cancelled)
  }

  @Test("A suspended request waits before its next attempt") func suspendedRetry() {
    var life = RequestLifecycle()
    _ = life.resumed()
    _ = life.suspended()
    #expect(life.readyToSend() == false)
    #expect(life.resumed() == .proceed)
  }

  @Test("A finished request that is sent again can be suspended, resumed and cancelled") func sentAgain() {
    var life = RequestLifecycle()
    _ = life.resumed()
    life.ended()
    #expect(life.sentAgain() == .start)
    #expect(life.state == .resumed && life.run == .running)
    #expect(life.suspended() == .hold)
    #expect(life.resumed() == .proceed)
    #expect(life.cancelled() == .cancel)
    life.ended()
    #expect(life.state == .cancelled)
  }

  @Test("A request that the end of its session has ended is not sent again") func abandonedRequest() {
    var life = RequestLifecycle()
    _ = life.resumed()
    #expect(life.abandoned() == .cancel)
    life.ended()
    #expect(life.state == .finished)
    #expect(life.sentAgain() == .nothing)
    #expect(life.state == .finished && life.run == .ended)
  }
}
