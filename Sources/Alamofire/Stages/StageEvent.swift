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
