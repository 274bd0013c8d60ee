import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Transfers of background sessions: each is written to its journal before it begins, and removed from there when its
// response handlers have returned.
extension Attempt {
  /// Writes the transfer to its journal, and waits until it may begin.
  func schedule() -> Outcome<Attempt> {
    guard let transfer = core.transfer else { return .done }
    return .task { [core, urlRequest = urlRequest] () throws(AFError) in
      try await core.schedule(transfer, urlRequest)
    }
  }

  /// Writes the response of an upload to the journal.
  func keepAnswer() -> Outcome<Attempt> {
    guard let transfer = core.transfer, transfer.completed == nil, let exchange = hops.exchange,
      let head = exchange.head
    else { return .done }
    let body = core.state.withLock { $0.results.data }
    let hasOtherURL = hops.isRedirected || core.resumer?.isActive == true
    let url = hasOtherURL ? exchange.url : nil
    return .task { transfer.noteAnswer(head, body, from: url) }
  }

  /// Moves the file of a complete background download. Without a destination it is moved to the temporary folder,
  /// because the folder of the session is not the caller's.
  func move(
    _ source: URL, of transfer: BackgroundTransfer, _ plan: DownloadPlan, _ exchange: Exchange
  ) -> Outcome<Attempt> {
    let url = hops.isRedirected ? exchange.url : nil
    return .task { [core, request] () -> Result<URL, AFError> in
      if let url { transfer.noteLocation(url) }
      do throws(AFError) { try transfer.noteCompleted() } catch { return .failure(error) }
      return core.moved(source, of: transfer, plan, exchange, for: request)
    } then: { (attempt, result) throws(AFError) in
      try attempt.fileMoved(result)
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

  fileprivate func moved(
    _ source: URL, of transfer: BackgroundTransfer, _ plan: DownloadPlan, _ exchange: Exchange,
    for request: Request
  ) -> Result<URL, AFError> {
    if case .moved(let path) = transfer.completed?.phase { return .success(URL(fileURLWithPath: path)) }
    // A cancelled request ends without a file; that of a released session stays for the next one.
    guard !isCancelled, !isAbandoned else { return .failure(error ?? .explicitlyCancelled) }
    let target: URL
    let options: DownloadRequest.Options
    if case .moving(let path, let bits) = transfer.completed?.phase {
      (target, options) = (URL(fileURLWithPath: path), DownloadRequest.Options(rawValue: bits))
      if transfer.isAtDestination(path) {
        transfer.noteMoved()
        return .success(target)
      }
    } else {
      let place = exchange.responseForDestination.flatMap { plan.destination?(source, $0) }
      (target, options) = place ?? (plan.temporaryTarget, [])
    }
    if notifiesMonitors { tellDestination(target, of: request) }
    // A delegate may have moved the file.
    if plan.destination == nil, !FileManager.default.fileExists(atPath: source.path) {
      return .success(source)
    }
    let result = transfer.move(to: target.path, options: options.rawValue) {
      // Other users may read the temporary folder.
      DownloadPlan.move(source, to: target, options, isShared: plan.destination != nil)
    }
    return result ?? .failure(error ?? .sessionDeinitialized)
  }
}

extension RequestCore {
  /// Uses the identifier of the transfer for the request, so that it is the same in every process.
  func useIdentifierOfTransfer() {
    if let transfer { state.withLock { $0.extras.id = transfer.id } }
  }

  /// The response of a background transfer that an earlier process completed.
  var storedResponse: StoredResponseTransport? {
    guard let transfer, let completed = transfer.completed else { return nil }
    return StoredResponseTransport(head: completed.head, body: transfer.answerBody)
  }

  /// Whether the session was released, so that the next one with its identifier continues the transfer.
  var isSuspendedInBackground: Bool { isAbandoned && session.reasonOfEnd.isSessionDeinitializedError }

  /// Wraps a body so that its background transfer is notified before the last bytes are sent.
  func journalled(_ source: any BodySource) -> any BodySource {
    transfer.map { JournalledBody(source, $0) } ?? source
  }
}
