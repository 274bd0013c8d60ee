import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Transfers of background sessions: each is written to its journal before it begins, and removed from there when its
// response handlers have returned.
extension Attempt {
  /// Writes the transfer to its journal, and waits until it may begin.
  ///
  /// - Parameters:
  ///   - isSentAtOnce: Whether the request is sent as soon as it begins. The source of an upload reports its last
  ///     bytes; other requests are small.
  ///   - describe: Writes the first record of the journal.
  func schedule(
    _ transfer: BackgroundTransfer, isSentAtOnce: Bool,
    _ describe: @escaping @Sendable (URLRequest) throws(AFError) -> Void
  ) -> Outcome<Attempt> {
    .task { [core, urlRequest = urlRequest] () throws(AFError) in
      if !transfer.isDescribed { try describe(transfer.initialRequest ?? urlRequest) }
      if transfer.completed != nil { return }
      guard !transfer.isLost else { throw RequestCore.lost(urlRequest) }
      try await core.begin(transfer)
      if isSentAtOnce { try transfer.noteSent() }
    }
  }
}

extension RequestCore {
  /// Waits until the transfer may begin. If the request is suspended then, its turn is the next one's.
  fileprivate func begin(_ transfer: BackgroundTransfer) async throws(AFError) {
    while true {
      await transfer.begin()
      try checkAlive()
      guard isSuspended else { return }
      transfer.endTurn()
      await passed(.resumed)
      try checkAlive()
    }
  }

  fileprivate static func lost(_ request: URLRequest) -> AFError {
    .sessionTaskFailed(
      error: URLError(
        .backgroundSessionWasDisconnected,
        "The process ended after the server may have received the request, and before the response came. "
          + "\(request.httpMethod ?? "The request") is not sent again, because the server might perform it twice.",
        url: request.url?.absoluteString))
  }
}

extension RequestCore {
  /// Uses the identifier of the transfer for the request, so that it is the same in every process.
  func useIdentifier(of transfer: BackgroundTransfer?) {
    if let transfer { state.withLock { $0.options.value.id = transfer.id } }
  }

  /// Returns whether the next session with the identifier continues the transfer: this one was released, or the request
  /// waited for its options, without which it could not come to its end. It does not if the caller cancels the request
  /// that waits, although its session has ended.
  func leavesToNextSession(_ transfer: BackgroundTransfer) -> Bool {
    guard isAbandoned else { return false }
    return session.reasonOfEnd.isSessionDeinitializedError || transfer.awaitsOptions && !isCancelled
  }

  /// Delivers the responses of a background transfer, which is removed when every handler has returned. Without a
  /// handler the outcome waits for one, in this process or another.
  ///
  /// If the next session continues the transfer, it delivers the outcome, and the handlers of this one receive its end.
  ///
  /// - Parameters:
  ///   - run: The run that has ended. The caller may have sent the request again since.
  ///   - announce: Notifies the monitors.
  func deliver(
    _ served: ShortList<any ResponseSink>, of transfer: BackgroundTransfer?, after run: Int,
    _ announce: () -> Void
  ) {
    guard let transfer else {
      announce()
      for sink in served { sink.deliver() }
      return
    }
    transfer.endTurn(after: run)
    if leavesToNextSession(transfer) { transfer.suspend() }
    let isCancelled = state.withLock { $0.lifecycle.state == .cancelled }
    guard !served.isEmpty else {
      announce()
      if isCancelled || isObservedByDelegate { transfer.remove(after: run) } else { transfer.endUnobserved() }
      return
    }
    // If the process ends while the handlers run, the next one must not send a cancelled request.
    let isDiscarded = isCancelled && transfer.discard(after: run)
    guard isCancelled || transfer.noteDelivering(after: run) else {
      let error = session.reasonOfEnd
      for sink in served { sink.replaceFailure(with: error, parsed: nil) }
      announce()
      for sink in served { sink.deliver() }
      return
    }
    announce()
    let count = CompletionCount(served.count) {
      if isDiscarded { transfer.noteReturned(after: run) } else { transfer.remove(after: run) }
    }
    for sink in served { sink.deliver { count.step() } }
  }
}

extension RequestCore {
  /// Whether a subclass of `SessionDelegate` gets the outcome, which then counts as a handler.
  var isObservedByDelegate: Bool { session.hasOwnDelegate && observers.contains(.task) }
}

/// Calls a closure at the last of several steps.
private final class CompletionCount: Sendable {
  /// The number of handlers that have not returned.
  private let rest: Atomic<Int>
  private let body: @Sendable () -> Void

  init(_ count: Int, _ body: @escaping @Sendable () -> Void) {
    rest = Atomic(count)
    self.body = body
  }

  func step() {
    if rest.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { body() }
  }
}

extension BackgroundTransfer {
  /// The response of a transfer that an earlier process completed.
  var storedResponse: StoredResponseTransport? {
    guard let completed else { return nil }
    return StoredResponseTransport(head: completed.head, body: answerBody)
  }
}
