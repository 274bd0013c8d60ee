/// The answer of a stage of `Owner`: an event, or what the run has to wait for. This is the only form of a stage.
enum Outcome<Owner: StageOwner>: Sendable, ~Copyable {
  case event(StageEvent)
  case wait(Wait<Owner.Entry>)

  static var done: Outcome { .event(.done) }

  /// Performs the steps of the owner inside: an attempt, or its hops.
  static var inner: Outcome { .wait(.inner) }

  /// Awaits `work` in a task on the pool, where the caller's code may run, and files may be read. The work does not
  /// have the owner: `then` writes what the work has found. The stage fails with the error of the work.
  static func task<Value: Sendable>(
    _ work: @escaping @Sendable () async throws(AFError) -> Value,
    then: @escaping @Sendable (inout Owner, Value) throws(AFError) -> Outcome
  ) -> Outcome {
    .wait(
      .task {
        do throws(AFError) {
          let value = try await work()
          return Owner.entry { (owner) throws(AFError) in try then(&owner, value) }
        } catch {
          return Owner.entry { (_) throws(AFError) in throw error }
        }
      })
  }

  /// Awaits `work`, which has nothing to write.
  static func task(_ work: @escaping @Sendable () async throws(AFError) -> Void) -> Outcome {
    task(work) { _, _ in .done }
  }

  /// Waits at a gate.
  static func gate(_ gate: Gate, then: @escaping Continuation<Owner>) -> Outcome {
    .wait(.gate(gate, then: Owner.entry(then)))
  }
}

/// The rest of a stage, after what it has waited for.
typealias Continuation<Owner: StageOwner> =
  @Sendable (inout Owner) throws(AFError) -> Outcome<Owner>

/// The wait of a run. A stage names it and registers nothing: the run passes itself on once it has left the stage, so
/// that it cannot be continued before.
enum Wait<Entry: Sendable>: Sendable, ~Copyable {
  /// The steps of the owner inside.
  case inner
  /// The caller's code, or anything else that is awaited, in a task on the pool.
  case task(@Sendable () async -> Entry)
  /// The request has the run until the gate opens.
  case gate(Gate, then: Entry)
  /// The transport has the run until the transfer of the owner ends.
  case transfer
}

/// A part of a run with its own state, the order of its steps, and its stages.
protocol StageOwner: Sendable {
  associatedtype Order: StepOrder
  /// The point where the run continues with the rest of a stage.
  associatedtype Entry: Sendable
  var order: Order { get set }
  /// Performs the stage of `step`.
  mutating func perform(_ step: Order.Step) throws(AFError) -> Outcome<Self>
  /// Keeps the error of a stage.
  mutating func fail(with error: AFError)
  static func entry(_ continuation: @escaping Continuation<Self>) -> Entry
}

/// The state of an owner that performs no further steps for now.
enum Pause<Entry: Sendable>: ~Copyable {
  case over(StageEvent)
  case wait(Wait<Entry>)
}

extension StageOwner {
  /// Performs stages until one has to wait, or the steps are over. This is the only loop over steps.
  mutating func turn(after first: consuming Outcome<Self>) -> Pause<Entry> {
    var outcome = first
    while true {
      switch consume outcome {
      case .wait(let wait): return .wait(wait)
      case .event(let event):
        guard let step = order.next(after: event) else { return .over(order.result) }
        outcome = self.outcome { (owner) throws(AFError) in try owner.perform(step) }
      }
    }
  }

  /// Returns the outcome of a stage, or of the rest of one. Every error of a stage is caught here.
  mutating func outcome(of stage: (inout Self) throws(AFError) -> Outcome<Self>) -> Outcome<Self> {
    do throws(AFError) {
      return try stage(&self)
    } catch {
      fail(with: error)
      return .event(.failed)
    }
  }
}

/// The external decisions for which a run waits. A gate needs no task.
enum Gate: Sendable, CaseIterable {
  /// The request is resumed.
  case resumed
  /// A handler has decided about the head of the response.
  case headDecision
  /// The cookies of a response are in the storage.
  case cookies
  /// The readers of a stream have had everything.
  case readers
  /// Monitors have been notified of all changes of the state.
  case notifications
}

/// The order of the steps of one owner: a value without I/O, clock, lock or reference. Asked for the next step after an
/// event, it answers only from the facts of the event.
protocol StepOrder: Sendable, Equatable {
  associatedtype Step: Sendable, Equatable
  /// Returns the step after the outcome of the last one; `nil` if the steps are over.
  mutating func next(after event: StageEvent) -> Step?
  /// The event for the order around this one, once the steps are over.
  var result: StageEvent { get }
}

/// The outcome of a stage, as far as an order depends on it. Events carry only facts; the values that the facts are
/// about belong to the owners, so that events cost nothing to pass on.
enum StageEvent: Sendable, Equatable {
  /// The first event of an order.
  case begun
  /// Handlers were added to a request that has ended or was never sent. These handlers receive the existing outcome.
  case begunForLateHandlers
  case done
  /// The owner has the error.
  case failed
  /// The task of the attempt has observers, which are notified of it before it is sent.
  case observed
  case responded(ResponseFacts)
  case transferFailed(TransferFailureFacts)
  case cache(CacheVerdict)
  case challenge(isAnswered: Bool)
  case redirect(RedirectVerdict)
  /// Another attempt follows without a retry: the next request of a resumable upload.
  case continued
  case retry(isRequested: Bool)
  case serialized(SerializationVerdict)
}

/// The facts about a response that decide what follows.
struct ResponseFacts: Sendable, Equatable {
  var status: UInt16 = 0
  /// Whether the response came over HTTP and may be a challenge or a redirect.
  var isHTTP = false
  /// Whether the cache stores the response or invalidates stored ones because of it.
  var concernsCache = false
  /// Whether the attempt has answered challenges or sent credentials preemptively.
  var hasAuthentication = false

  /// Whether the response may be other than the last.
  var mayContinue: Bool { isHTTP && (hasAuthentication || !(200..<300).contains(status)) }
}

/// The kinds of failed transfers that differ in their remedy.
enum TransferFailureFacts: Sendable, Equatable {
  /// The response does not continue the part of a download that is there.
  case rangeMismatch
  /// The certificates of the server have to be evaluated outside the handshake.
  case trust
  /// The delegate may choose a client certificate.
  case identity
  /// The machine has no network, and the session waits for one.
  case offline
  case other
}

/// The role of the cache in a hop.
enum CacheVerdict: Sendable, Equatable {
  /// The cache is not asked.
  case none
  /// The cache has to be asked.
  case lookUp
  /// A stored response is the response of the hop.
  case replay
  /// A stored response can be used if the server confirms it.
  case revalidate
  /// The request is sent.
  case send
}

enum RedirectVerdict: Sendable, Equatable {
  /// The response leads nowhere else.
  case none
  case followed
  /// The response is a redirect that is not followed. The body of the redirect is dropped.
  case declined
}

enum SerializationVerdict: Sendable, Equatable {
  /// Every handler has its response, and all were delivered.
  case all
  /// A serializer failed, and a retrier may ask for another attempt.
  case failed
}
