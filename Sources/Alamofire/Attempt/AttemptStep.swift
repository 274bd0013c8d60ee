/// The steps of one attempt. ``RequestAttempt`` knows their order, ``AttemptDriver`` performs them.
enum AttemptStep: UInt8, Sendable, CaseIterable {
  /// Nothing has been done yet.
  case begin
  // The request
  case convert, adapt, prepareBody, waitForResume, announceTask, makeRequest
  // One hop: a request that goes over the wire, and its response
  case chooseHandler, addCredentials, provideBodyStream, applyCachePolicy, addCookies, beginHop
  case lookUpCache, send, replay, revalidate
  // Recovery from a failed transfer
  case askForWholeBody, evaluateTrust, chooseIdentity, waitForConnectivity, recordTransferFailure
  // The response of a hop
  case updateCache, judgeCredentials, answerChallenge, followRedirect
  // The result
  case storeResult, announceTaskEnd, waitForCookies, moveDownload, completeStream, waitForHeadDecision
  case validate, recordSuccess
  // Failure and retry
  case recordFailure, askRetriers, prepareRetry
  // The end of the request
  case prepareLateHandlers, settle, serialize, finished
}

/// The outcome of a step. Events carry facts alone; the values that the facts are about belong to ``AttemptValues``, so
/// that events cost nothing to pass on.
enum AttemptEvent: Sendable, Equatable {
  /// The attempt begins.
  case begun
  /// Handlers were added to a request that has ended or was never sent. They receive the outcome that is there.
  case begunForLateHandlers
  case done
  /// ``AttemptValues/error`` has the reason.
  case failed
  /// The task of the attempt has observers, which are told of it before it is sent.
  case observed
  case responded(ResponseFacts)
  case transferFailed(TransferFailureFacts)
  case cache(CacheVerdict)
  case challenge(isAnswered: Bool)
  case redirect(RedirectVerdict)
  case retry(isWanted: Bool)
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
  /// There is no network, and the session waits for one.
  case offline
  case other
}

/// The part that the cache takes in a hop.
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
  /// The response is a redirect that is not followed. Its body is dropped.
  case declined
}

enum SerializationVerdict: Sendable, Equatable {
  /// Every handler has its response, and all were delivered.
  case all
  /// A serializer failed, and a retrier may ask for another attempt.
  case failed
}
