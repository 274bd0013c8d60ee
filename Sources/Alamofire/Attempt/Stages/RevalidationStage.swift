import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A conditional request for stored responses.
struct Revalidation {
  enum Candidate {
    case response(StoredResponse)
    /// Responses that were stored for other fields (RFC 9111 §4.3.1).
    case variants([StoredResponse])
  }

  let candidate: Candidate
  let conditions: [HTTPHeader]
}

// The server is asked whether a stored response can still be used (RFC 9111 §4.3).
extension AttemptDriver {
  @inline(never)
  nonisolated(nonsending) func revalidate() async -> AttemptEvent {
    guard let revalidation = values.revalidation, let store = core.session.cache.store else {
      return .cache(.send)
    }
    values.revalidation = nil
    noteRemovals()
    switch revalidation.candidate {
    case .response(let stored):
      let event = await validate(stored, revalidation.conditions, in: store)
      // The server confirms another response.
      if event == .cache(.send) { await core.session.offLoop { store.remove(stored.key) } }
      return event
    case .variants(let variants):
      return await validate(variants, revalidation.conditions, in: store)
    }
  }

  nonisolated(nonsending) private func validate(
    _ stored: StoredResponse, _ conditions: [HTTPHeader], in store: any ResponseStore
  ) async -> AttemptEvent {
    let fields = values.outgoing.fields
    let before = store.now
    // Observers are shown the body at the end, because only then it is known to be the body for the caller.
    let request = values.outgoing.collecting(adding: conditions)
    // A server that was not asked conditionally has no reason for a 304, which is delivered as it is.
    let isConditional = !conditions.isEmpty
    let observer = ValidationObserver(core) { head in
      head.status == 304 && isConditional
        || CacheDecision.mayServeInstead(stored, of: head.status, fields: fields, now: before)
    }
    do throws(TransportFailure) {
      let response = try await transport.send(request, observer: observer)
      recordHop(response.metrics, response.head, as: request)
      if response.head.status == 304, isConditional {
        guard Validation.confirms(response.head, stored) else { return .cache(.send) }
        return await answerConfirmed(stored, by: response, in: store)
      }
      if CacheDecision.mayServeInstead(stored, of: response.head.status, fields: fields, now: before) {
        return answer(with: stored, isConfirmed: false)
      }
      return responded(response, concernsCache: concernsCache(response))
    } catch {
      // The caller may have seen the head of the broken response and gets no other one.
      guard error.kind.isOutage, !observer.hasShownHead,
        CacheDecision.mayServeInstead(stored, of: nil, fields: fields, now: store.now)
      else { return failed(error) }
      if let metrics = error.metrics { recordHop(metrics, nil, as: request) }
      return answer(with: stored, isConfirmed: false)
    }
  }

  nonisolated(nonsending) private func validate(
    _ variants: [StoredResponse], _ conditions: [HTTPHeader], in store: any ResponseStore
  ) async -> AttemptEvent {
    let request = values.outgoing.collecting(adding: conditions)
    let observer = ValidationObserver(core) { $0.status == 304 }
    do throws(TransportFailure) {
      let response = try await transport.send(request, observer: observer)
      recordHop(response.metrics, response.head, as: request)
      guard response.head.status == 304 else {
        return responded(response, concernsCache: concernsCache(response))
      }
      // A 304 that names none of the variants: the request is sent without conditions.
      guard let stored = Validation.variant(of: variants, confirmedBy: response.head) else {
        return .cache(.send)
      }
      return await answerConfirmed(stored, by: response, in: store)
    } catch {
      return failed(error)
    }
  }

  /// Stores a response that a 304 has confirmed, for the fields of this request, and answers with it.
  nonisolated(nonsending) private func answerConfirmed(
    _ stored: StoredResponse, by response: WireResponse, in store: any ResponseStore
  ) async -> AttemptEvent {
    let now = store.now
    let fresh = Validation.freshened(
      stored, by: response.head, fields: FieldDigests(of: values.outgoing.fields),
      requestTime: response.requestTime(now),
      responseTime: now)
    let count = values.removalCount
    if store.waits {
      await core.session.offLoop { store.putConfirmed(fresh, askedAfter: count) }
    } else {
      store.putConfirmed(fresh, askedAfter: count)
    }
    return answer(with: fresh, isConfirmed: true)
  }

  private func answer(with stored: StoredResponse, isConfirmed: Bool) -> AttemptEvent {
    guard hasAnswer(stored, isConfirmed: isConfirmed) else { return .cache(.send) }
    core.state.withLock { $0.extras.progress.isIntermediate = false }
    return .cache(.replay)
  }
}

extension TransportFailure.Kind {
  /// Whether the server could not be reached or failed (RFC 5861 §4).
  fileprivate var isOutage: Bool {
    switch self {
    case .timedOut, .cannotFindHost, .cannotFindProxy, .cannotConnectToHost, .notConnected, .connectionLost,
      .badServerResponse:
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
