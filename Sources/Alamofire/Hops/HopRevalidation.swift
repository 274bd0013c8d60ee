import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// A conditional request for stored responses.
struct Revalidation: Sendable {
  enum Candidate: Sendable {
    case response(StoredResponse)
    /// Responses that were stored for other fields (RFC 9111 §4.3.1).
    case variants([StoredResponse])
  }

  let candidate: Candidate
  let conditions: [HTTPHeader]
}

// The server is asked whether a stored response can still be used (RFC 9111 §4.3).
extension HopLoop {
  mutating func revalidate() throws(AFError) -> Outcome<HopLoop> {
    guard let revalidation = caching.revalidation, let store = services.cache.store else {
      return .event(.cache(.send))
    }
    caching.revalidation = nil
    noteRemovals()
    switch revalidation.candidate {
    case .response(let stored): return try validate(stored, revalidation.conditions, in: store)
    case .variants(let variants): return try validate(variants, revalidation.conditions, in: store)
    }
  }

  private mutating func validate(
    _ stored: StoredResponse, _ conditions: [HTTPHeader], in store: any ResponseStore
  ) throws(AFError) -> Outcome<HopLoop> {
    let question = ServingQuestion(stored: stored, fields: outgoing.fields, askedAt: store.now)
    // Observers are shown the body at the end, because only then it is known to be the body for the caller.
    let request = outgoing.collecting(adding: conditions)
    // A server that was not asked conditionally has no reason for a 304, which is delivered unchanged.
    let isConditional = !conditions.isEmpty
    let observer = ValidationObserver(delegate) { head in
      head.status == 304 && isConditional || question.mayServe(insteadOf: head.status)
    }
    return try send(request, observer: observer) { (hops, result) throws(AFError) in
      switch result {
      case .success(let response):
        hops.recordHop(response.metrics, response.head, as: request)
        if response.head.status == 304, isConditional {
          guard Validation.confirms(response.head, stored) else {
            return hops.send(without: stored, in: store)
          }
          return try hops.answerConfirmed(stored, by: response, in: store, orRemove: true)
        }
        guard question.mayServe(insteadOf: response.head.status) else {
          return .event(hops.responded(response, concernsCache: hops.concernsCache(response)))
        }
      case .failure(let failure):
        // The caller may have seen the head of the broken response and gets no other one.
        guard failure.kind.isOutage, !observer.hasShownHead, question.mayServe(at: store.now) else {
          return .event(hops.failed(failure))
        }
        if let metrics = failure.metrics { hops.recordHop(metrics, nil, as: request) }
      }
      return try hops.answer(with: stored, confirmedBy: nil, in: store, orRemove: true)
    }
  }

  /// Sends the request without conditions, because the server confirms another response than the stored one, or the
  /// stored one cannot be used.
  private func send(without stored: StoredResponse, in store: any ResponseStore) -> Outcome<HopLoop> {
    .task {
      store.remove(stored.key)
    } then: { (hops, _) throws(AFError) in
      try hops.sendAfterRevalidation()
    }
  }

  /// Sends the request without conditions. The server has received it with them.
  private mutating func sendAfterRevalidation() throws(AFError) -> Outcome<HopLoop> {
    try renewAuthorization { _ in .event(.cache(.send)) }
  }

  private mutating func validate(
    _ variants: [StoredResponse], _ conditions: [HTTPHeader], in store: any ResponseStore
  ) throws(AFError) -> Outcome<HopLoop> {
    let request = outgoing.collecting(adding: conditions)
    let observer = ValidationObserver(delegate) { $0.status == 304 }
    return try send(request, observer: observer) { (hops, result) throws(AFError) in
      switch result {
      case .success(let response):
        hops.recordHop(response.metrics, response.head, as: request)
        guard response.head.status == 304 else {
          return .event(hops.responded(response, concernsCache: hops.concernsCache(response)))
        }
        return try hops.answer(withOneOf: variants, confirmedBy: response, in: store)
      case .failure(let failure): return .event(hops.failed(failure))
      }
    }
  }

  /// Answers with the variant that a 304 names, whose body may have to be read.
  private mutating func answer(
    withOneOf variants: [StoredResponse], confirmedBy response: WireResponse, in store: any ResponseStore
  ) throws(AFError) -> Outcome<HopLoop> {
    // A 304 that names none of the variants: the request is sent without conditions.
    guard let stored = Validation.variant(of: variants, confirmedBy: response.head) else {
      return try sendAfterRevalidation()
    }
    guard !stored.hasBody else {
      return try answerConfirmed(stored, by: response, in: store, orRemove: false)
    }
    // No variant but those that were offered, because others may be for other credentials.
    let named: @Sendable ([StoredResponse]) -> StoredResponse? = { found in
      let offered = found.filter { one in variants.contains { $0.selection == one.selection } }
      return Validation.variant(of: offered, confirmedBy: response.head)
    }
    return .task {
      named(store.read(stored.key, choosing: named))
    } then: { (hops, whole) throws(AFError) in
      guard let whole, whole.hasBody else { return try hops.sendAfterRevalidation() }
      return try hops.answerConfirmed(whole, by: response, in: store, orRemove: false)
    }
  }

  /// Stores a response that a 304 has confirmed, for the fields of this request, and answers with it.
  private mutating func answerConfirmed(
    _ stored: StoredResponse, by response: WireResponse, in store: any ResponseStore, orRemove removes: Bool
  ) throws(AFError) -> Outcome<HopLoop> {
    let now = store.now
    let fresh = Validation.freshened(
      stored, by: response.head, fields: FieldDigests(of: outgoing.fields),
      requestTime: response.requestTime(now),
      responseTime: now)
    let (count, request, head) = (caching.removalCount, outgoing, response.head)
    guard store.waits else {
      store.putConfirmed(fresh, replacing: stored, by: request, askedAfter: count)
      return try answer(with: fresh, confirmedBy: head, in: store, orRemove: removes)
    }
    return .task {
      store.putConfirmed(fresh, replacing: stored, by: request, askedAfter: count)
    } then: { (hops, _) throws(AFError) in
      try hops.answer(with: fresh, confirmedBy: head, in: store, orRemove: removes)
    }
  }

  /// Answers with a stored response, or sends the request if that is not possible.
  ///
  /// - Parameters:
  ///   - head:    The head of the 304 that has confirmed the response; `nil` without one.
  ///   - removes: Whether the response is removed if it cannot be used for the request.
  private mutating func answer(
    with stored: StoredResponse, confirmedBy head: ResponseHead?, in store: any ResponseStore,
    orRemove removes: Bool
  ) throws(AFError) -> Outcome<HopLoop> {
    guard hasAnswer(stored, isConfirmed: head != nil) else {
      if removes { return send(without: stored, in: store) }
      return try sendAfterRevalidation()
    }
    if let head { caching.source = .confirmed(by: head) }
    return .event(.cache(.replay))
  }
}

/// Whether a stored response may be served instead of an error (RFC 5861 §4).
private struct ServingQuestion: Sendable {
  let stored: StoredResponse
  let fields: [HTTPHeader]
  /// The time at which the server was asked, by the clock of the cache.
  let askedAt: Int64

  func mayServe(insteadOf status: Int) -> Bool {
    CacheDecision.mayServeInstead(stored, of: status, fields: fields, now: askedAt)
  }

  /// Whether it may be served if there is no response at all.
  func mayServe(at now: Int64) -> Bool {
    CacheDecision.mayServeInstead(stored, of: nil, fields: fields, now: now)
  }
}

extension TransportFailure.FailureKind {
  /// Whether the server could not be reached or failed (RFC 5861 §4).
  fileprivate var isOutage: Bool {
    switch self {
    case .timedOut, .cannotFindHost, .cannotFindProxy, .cannotConnectToProxy, .cannotConnectToHost,
      .notConnected, .connectionLost, .badServerResponse:
      true
    default: false
    }
  }
}

extension WireResponse {
  /// Returns the time at which the request was sent, by the clock of the cache, which says `now` at the end of the
  /// response.
  func requestTime(_ now: Int64) -> Int64 {
    let counted = now - metrics.values.latest / 1_000_000
    // A transfer of a part of a second may have begun in the previous one, which matters for a removal in between.
    return Int64(exactly: metrics.values.start.rounded(.down)) == counted - 1 ? counted - 1 : counted
  }
}

/// Observes the replay of a stored response, whose cookies were stored when it was received.
final class StoredAnswerObserver: TransferObserver {
  private let delegate: any HopDelegate

  init(_ delegate: any HopDelegate) { self.delegate = delegate }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    delegate.observer.transferBegan(control)
  }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { delegate.headShown(head) }
  func bytesMoved(_ count: ByteCount) { delegate.bytesReplayed(count) }
  func transferEnded() { delegate.observer.transferEnded() }
}

/// Observes the revalidation of a stored response. A head that only the cache needs is not shown to the caller.
final class ValidationObserver: TransferObserver {
  private let delegate: any HopDelegate
  private let isForCache: @Sendable (ResponseHead) -> Bool
  /// Whether a head was passed on. The loop sets it, and the attempt reads it.
  private let hasShown = Atomic<Bool>(false)

  init(_ delegate: any HopDelegate, isForCache: @escaping @Sendable (ResponseHead) -> Bool) {
    self.delegate = delegate
    self.isForCache = isForCache
  }

  /// Whether a head was shown as the head of the result.
  var hasShownHead: Bool { hasShown.load(ordering: .acquiring) }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    delegate.observer.transferBegan(control)
  }

  func loginHeadReceived(_ head: ResponseHead) { delegate.observer.loginHeadReceived(head) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    guard isForCache(head) else {
      // Also without observers, because a monitor must not change the result.
      hasShown.store(true, ordering: .releasing)
      return delegate.observer.headReceived(head)
    }
    delegate.storeCookies(of: head)
    delegate.setIntermediate(true)
    return .proceed
  }

  func bytesMoved(_ count: ByteCount) { delegate.observer.bytesMoved(count) }

  func transferEnded() {
    // The response that follows is for the caller, and its head is observed only for some requests.
    if !hasShownHead { delegate.setIntermediate(false) }
    delegate.observer.transferEnded()
  }
}
