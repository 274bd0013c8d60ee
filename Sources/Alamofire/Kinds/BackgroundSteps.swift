import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Transfers of background sessions: each is written to its journal before it begins, and removed from there when its
// response handlers have returned.
extension Attempt {
  /// Writes the transfer to its journal, and waits until it may begin.
  func schedule(_ transfer: BackgroundTransfer?) -> Outcome<Attempt> {
    guard let transfer else { return .done }
    return .task { [core, urlRequest = urlRequest] () throws(AFError) in
      try await core.schedule(transfer, urlRequest)
    }
  }
}

extension RequestCore {
  fileprivate func schedule(
    _ transfer: BackgroundTransfer, _ urlRequest: URLRequest
  ) async throws(AFError) {
    try describe(transfer, urlRequest)
    if transfer.completed != nil { return }
    guard !transfer.isLost else { throw Self.lost(urlRequest) }
    try await begin(transfer)
    // The source of an upload tells of its last bytes; other requests are small.
    if download != nil || resumer?.endsWithoutContent == true { try transfer.noteSent() }
  }

  /// Waits until the transfer may begin. If the request is suspended then, its turn is the next one's.
  private func begin(_ transfer: BackgroundTransfer) async throws(AFError) {
    while true {
      await transfer.begin()
      try checkAlive()
      guard isSuspended else { return }
      transfer.endTurn()
      await passed(.resumed)
      try checkAlive()
    }
  }

  private func describe(_ transfer: BackgroundTransfer, _ urlRequest: URLRequest) throws(AFError) {
    guard !transfer.isDescribed else { return }
    let initial = state.withLock { $0.hasExtras ? $0.extras.initialRequest : nil } ?? urlRequest
    guard let resumer else {
      return try transfer.describe(initial, kind: download == nil ? .upload : .download)
    }
    let (policy, upload) = resumer.description
    try transfer.describe(initial, kind: .upload, resumption: policy, continuing: upload)
  }

  private static func lost(_ request: URLRequest) -> AFError {
    .sessionTaskFailed(
      error: URLError.made(
        .backgroundSessionWasDisconnected,
        "The process ended after the server may have received the request, and before the response came. "
          + "\(request.httpMethod ?? "The request") is not sent again, because the server might perform it twice.",
        url: request.url?.absoluteString))
  }
}

extension RequestCore {
  /// Keeps the request of a background transfer before its adaptation, for the journal.
  func noteInitialRequest(_ request: URLRequest) {
    if transfer?.isDescribed == false { state.withLock { $0.extras.initialRequest = request } }
  }

  /// Uses the identifier of the transfer for the request, so that it is the same in every process.
  func useIdentifierOfTransfer() {
    if let transfer { state.withLock { $0.extras.id = transfer.id } }
  }

  /// Whether the session was released, so that the next one with its identifier continues the transfer.
  var isSuspendedInBackground: Bool { isAbandoned && session.reasonOfEnd.isSessionDeinitializedError }

  /// Delivers the responses of a background transfer, which is removed when every handler has returned. Without a
  /// handler the outcome waits for one, in this process or another.
  func deliver(_ served: ShortList<any ResponseSink>, of transfer: BackgroundTransfer?) {
    guard let transfer else {
      for sink in served { sink.deliver() }
      return
    }
    transfer.endTurn()
    if isSuspendedInBackground {
      transfer.suspend()
      for sink in served { sink.deliver() }
      return
    }
    let isCancelled = state.withLock { $0.lifecycle.state == .cancelled }
    guard !served.isEmpty else {
      let isObserved = session.hasOwnDelegate && observers.contains(.task)
      if isCancelled || isObserved { transfer.remove() } else { transfer.endUnobserved() }
      return
    }
    if !isCancelled { transfer.noteDelivering() }
    // A handler may send the request again.
    let run = transfer.run
    let countdown = Countdown(served.count) { transfer.remove(after: run) }
    for sink in served { sink.deliver { countdown.step() } }
  }
}

/// Calls a closure at the last of several steps.
private final class Countdown: Sendable {
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
