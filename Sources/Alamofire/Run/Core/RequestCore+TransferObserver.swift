import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The transport calls these methods, the engine on the loop's thread.
extension RequestCore: TransferObserver {
  package func transferBegan(_ control: any TransferControl) -> TransferStart {
    let (start, hasOtherPriority) = beginTransfer(control)
    if hasOtherPriority { alignPriority() }
    return start
  }

  private func beginTransfer(_ control: any TransferControl) -> (TransferStart, hasOtherPriority: Bool) {
    state.withLock { state in
      state.run.control = control
      // The request was cancelled, or its session has ended, since the attempt last looked.
      // A WebSocket request that is closed still sends its messages.
      let isCancelled = state.lifecycle.state == .cancelled && !state.lifecycle.isClosing
      if isCancelled || state.results.error != nil { return (.refuse, false) }
      // The priority may have changed since the request was created.
      let hasOtherPriority =
        state.options.isChanged && state.options.value.priority != state.run.hop?.request.priority
      return (state.lifecycle.state == .suspended ? .hold : .go, hasOtherPriority)
    }
  }

  package func transferEnded() {
    state.withLock { $0.run.control = nil }
  }

  /// Handles the bytes of a stored response. The count of what the request has sent does not change.
  func bytesReplayed(_ count: ByteCount) {
    guard has(.progress) || observers.contains(.task) else { return }
    var count = count
    let last = state.withLock { $0.observed.added.value.progress.count }
    (count.sent, count.expectedToSend) = (last.sent, last.expectedToSend)
    bytesMoved(count)
  }

  package func bytesMoved(_ count: ByteCount) {
    let isObserved = observers.contains(.task)
    guard has(.progress) || isObserved else { return }
    // Outside the lock, because a kind may take another one. Only this transfer counts.
    let count = kind.count(count, after: state.withLock { $0.observed.added.value.progress.count })
    let (notices, before, counted) = state.withLock { state in
      let before = state.observed.added.value.progress.count
      let listeners = state.observed.added.value.listeners
      return (state.observed.added.value.progress.moved(count, listeners), before, count)
    }
    notices.deliver()
    if isObserved { notify(.bytes(from: before, to: counted)) }
  }

  package func informationalHeadReceived(_ head: ResponseHead) {
    if let hop = state.withLock({ $0.run.hop }) { kind.informational(head, at: hop.request.url) }
  }

  package func loginHeadReceived(_ head: ResponseHead) { storeCookies(of: head) }

  package func headReceived(_ head: ResponseHead) -> HeadDisposition {
    storeCookies(of: head)
    return headShown(head)
  }

  /// Whether anyone but the run receives the heads of responses, or what follows them.
  private var hasHeadObservers: Bool {
    has([.head, .progress]) || hasBodySink || observers.contains(.task)
  }

  /// Handles a head without storing its cookies. It belongs to a stored response, and its cookies were stored when that
  /// was received.
  func headShown(_ head: ResponseHead) -> HeadDisposition {
    if head.mayLeadOn || traits.contains(.takesSteps) || hasHeadObservers { return headArrived(head) }
    if head.role.isOfHTTP { state.withLock { $0.results.beginResponse(head) } }
    return .proceed
  }
}

extension ResponseHead {
  /// Whether another request may follow the response because of its status.
  fileprivate var mayLeadOn: Bool { status == 401 || status / 100 == 3 }
}

// MARK: Cookies

extension RequestCore {
  /// Stores the cookies of a response as soon as its head is there, even if its body fails.
  func storeCookies(of head: ResponseHead) {
    guard let cookies = session.cookies, head.role.isHop, head.block.marks.contains(.setCookie) else {
      return
    }
    let (hop, request) = state.withLock { ($0.run.hop, $0.results.request) }
    guard let hop, let request, request.httpShouldHandleCookies else { return }
    storesCookies.store(true, ordering: .releasing)
    cookies.store(head.block.rawValues(of: "Set-Cookie"), of: hop.request, for: request)
  }

  /// Whether cookies of the last response may still have to be stored.
  var hasPendingCookies: Bool {
    storesCookies.load(ordering: .acquiring) && session.cookies?.areBeingStored == true
  }

  /// Calls `proceed` once the cookies of the response are in the storage. Returns false, and never calls `proceed`, if
  /// they are.
  func awaitCookies(_ proceed: @escaping @Sendable () -> Void) -> Bool {
    storesCookies.store(false, ordering: .releasing)
    return session.cookies?.stored(proceed) ?? false
  }
}

/// The decision of a handler about a head, as `Request.ResponseDisposition` says it.
enum HeadDecision: Sendable {
  case allow, cancel
}

/// The handler that receives the head of a response before its body is read.
struct HeadHandler: Sendable {
  let queue: DispatchQueue
  let closure: @Sendable (HTTPURLResponse, @escaping @Sendable (HeadDecision) -> Void) -> Void
}

extension RequestCore {
  func setHeadHandler(_ handler: HeadHandler) {
    _ = state.withLock { replace(&$0.observed.added.value.headHandler, with: handler) }
    add(.head)
  }

  /// Passes the head of a response to handlers and observers. Redirects that will be followed and challenges that will
  /// be answered are not shown, and their bodies do not count as progress.
  func headArrived(_ head: ResponseHead) -> HeadDisposition {
    let hop = state.withLock { $0.run.hop }
    let meaning = meaning(of: head, hop)
    let isObserved = observers.contains(.task)
    if has(.progress) || isObserved {
      state.withLock { $0.observed.added.value.progress.isIntermediate = meaning != .last }
    }
    switch meaning {
    case .last: return show(head)
    case .redirect, .answeredChallenge: return .discard
    // If a delegate may decline a challenge, the body of the challenge is stored until the decision.
    case .undecidedChallenge: return .proceed
    // A problem document may say what is wrong with the upload.
    case .uploadStep: return hasBodySink ? .discard : .proceed
    }
  }

  /// Shows a redirect that is not followed after all.
  func redirectDeclined(_ head: ResponseHead) {
    guard has(.head) || observers.contains(.task) else { return }
    // If a handler is to decide, the attempt waits for it later.
    _ = show(head)
  }

  private func show(_ head: ResponseHead) -> HeadDisposition {
    guard head.role.isOfHTTP else { return .proceed }
    let (handler, listeners) = state.withLock { state in
      state.results.beginResponse(head)
      return state.observed.added.read { ($0.headHandler, $0.listeners?.responses) } ?? (nil, nil)
    }
    let isObserved = observers.contains(.task)
    guard handler != nil || listeners?.isEmpty == false || isObserved, let response else { return .proceed }
    if isObserved { notify(.head(response)) }
    for continuation in listeners ?? [] { continuation.yield(response) }
    guard let handler else { return .proceed }
    let opened = state.withLock { state -> Int? in
      // The wait for a decision that is opened after a cancellation would not be ended any more.
      guard state.lifecycle.mayAttemptAgain || state.lifecycle.isClosing else { return nil }
      state.run.openHeadDecision()
      return state.results.retryCount
    }
    guard let attempt = opened else { return .proceed }
    // A completion that is released without a call cannot hang the request.
    let answer = GuardedCompletion(whenForgotten: HeadDecision.allow) { [self] disposition in
      decided(disposition, attempt: attempt)
    }
    handler.queue.async { handler.closure(response) { answer($0) } }
    return .hold
  }

  /// Notifies the observers of the tasks of the request, if it has any that are still there.
  func notify(_ notice: RunNotice) {
    state.withLock { $0.observed.tasks.owner }?.notify(notice)
  }

  /// Whether the body that follows a head is the body for the caller, as far as the head shows.
  func isShown(_ head: ResponseHead) -> Bool {
    meaning(of: head, state.withLock { $0.run.hop }) == .last
  }

  /// The meaning of a response for its request, as far as its head shows.
  private enum HeadMeaning {
    case last
    /// A redirect, followed or refused. A handler that declines it gets no body either, as on Foundation.
    case redirect
    /// A challenge for which there is a credential.
    case answeredChallenge
    /// A challenge about which a delegate decides.
    case undecidedChallenge
    /// A step of a resumable upload.
    case uploadStep
  }

  private func meaning(of head: ResponseHead, _ hop: CurrentHop?) -> HeadMeaning {
    guard head.role.isHop, let hop else { return .last }
    if kind.isIntermediate(head, at: hop.request.url) { return .uploadStep }
    switch head.status {
    case 300..<400:
      return redirect(by: head, of: hop.request, after: hop.redirectCount) == .notARedirect
        ? .last : .redirect
    case 401:
      switch hop.challenge {
      case .byDefault:
        return session.authentication.answer(head, challengeContext(hop)) == nil ? .last : .answeredChallenge
      case .byDelegate: return isUndecided(head, hop) ? .undecidedChallenge : .last
      case .declined: return .last
      }
    default: return .last
    }
  }

  /// Whether the caller's delegate will be asked about the challenge of a response.
  func isUndecided(_ head: ResponseHead) -> Bool { isUndecided(head, state.withLock { $0.run.hop }) }

  private func isUndecided(_ head: ResponseHead, _ hop: CurrentHop?) -> Bool {
    guard head.status == 401, head.role.isHop, let hop, hop.challenge == .byDelegate else { return false }
    return !session.authentication.offers(head, challengeContext(hop)).isEmpty
  }

  private func challengeContext(_ hop: CurrentHop) -> ChallengeContext {
    ChallengeContext(
      request: hop.request, initialOrigin: hop.initialOrigin, credential: passwordCredential,
      authentication: hop.authentication, isOfWebSocket: traits.contains(.needsEngine))
  }

  /// Applies the decision of a handler. A decision about the head of an earlier attempt has no effect.
  private func decided(_ disposition: HeadDecision, attempt: Int) {
    let (action, waiter) = state.withLock { state in
      guard state.results.retryCount == attempt else {
        return (RequestLifecycle.Action.nothing, nil as (@Sendable () -> Void)?)
      }
      let action = disposition == .cancel ? state.cancel(because: .explicitlyCancelled) : .nothing
      return (action, state.run.closeHeadDecision())
    }
    if action == .cancel { cancelRun() }
    waiter?()
    if disposition == .allow { alignControl() }
  }

  /// Whether a decision about the head may be open.
  var mayAwaitHeadDecision: Bool { has(.head) }
}
