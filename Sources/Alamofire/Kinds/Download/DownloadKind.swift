import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// A download. Its file goes to its destination, or stays as resume data.
final class DownloadKind: RequestKind {
  let plan: DownloadPlan

  init(plan: DownloadPlan) { self.plan = plan }

  var traits: KindTraits {
    plan.transfer == nil ? [.passesBodyOn, .hasFile] : [.passesBodyOn, .hasFile, .isScheduled]
  }
  private var transfer: BackgroundTransfer? { plan.transfer }

  func convert(_ request: URLRequest, for core: RequestCore) throws -> URLRequest {
    plan.noteInitialRequest(request)
    transfer?.noteInitialRequest(request)
    return plan.continuingCheckpoint(request)
  }

  func schedule(_ attempt: Attempt) -> Outcome<Attempt> {
    guard let transfer else { return .done }
    return attempt.schedule(transfer, isSentAtOnce: true) { (request) throws(AFError) in
      try transfer.describe(request, kind: .download)
    }
  }

  // MARK: The hops

  func handler(of request: WireRequest, in services: Services) throws(AFError) -> HopHandler? {
    transfer?.storedResponse.map { .journal($0) }
  }

  func content(for request: URLRequest, of core: RequestCore) throws(AFError) -> RequestBody? {
    // The request is not sent if the outcome is in the journal.
    transfer?.completed == nil ? nil : RequestBody.none
  }

  func sink(method: String, fields: [HTTPHeader], profile: ConnectionProfile) throws(AFError)
    -> (any BodySink)?
  {
    try plan.sink(method: method, fields: fields, profile: profile)
  }

  func count(_ count: ByteCount, after last: ByteCount) -> ByteCount {
    var count = count
    let offset = plan.offset
    guard offset > 0 else { return count }
    count.received += offset
    if count.expectedToReceive >= 0 { count.expectedToReceive += offset }
    return count
  }

  var storedLocation: URL? { transfer?.location }

  func redirectFollowed() { transfer?.noteRedirected() }

  // If the download was cancelled, `cancel(byProducingResumeData:)` returns the data.
  func resumeData(after failure: TransportFailure, of core: RequestCore) -> Data? {
    // The file of a background transfer stays with its journal until the request ends.
    guard failure.kind != .cancelled, transfer == nil else { return nil }
    return plan.resumeDataAfterFailure()
  }

  // MARK: The file

  func moveFile(of attempt: Attempt) -> Outcome<Attempt> {
    guard let exchange = attempt.hops.exchange, let source = plan.takeFile() else { return .done }
    let (core, request) = (attempt.core, attempt.request)
    guard core.observers.contains(.task) else { return move(source, exchange, of: attempt) }
    return .task {
      await request.announceFile(source)
    } then: { attempt, _ in
      self.move(source, exchange, of: attempt)
    }
  }

  private func move(_ source: URL, _ exchange: Exchange, of attempt: Attempt) -> Outcome<Attempt> {
    let (core, request) = (attempt.core, attempt.request)
    if let transfer { return move(source, of: transfer, exchange, of: attempt) }
    guard let destination = plan.destination, let response = exchange.responseForDestination else {
      // Before the event, because monitors may look for the file.
      plan.fileURL = source
      if core.notifiesMonitors { request.notify(.destination(source)) }
      return fileMoved(.success(source), of: attempt)
    }
    return .task { () -> Result<URL, AFError> in
      let (target, options) = core.isCancelled ? (source, []) : destination(source, response)
      guard !core.isCancelled else {
        try? FileManager.default.removeItem(at: source)
        return .failure(.explicitlyCancelled)
      }
      if core.notifiesMonitors { request.notify(.destination(target)) }
      return DownloadPlan.move(source, to: target, options)
    } then: { attempt, result in
      attempt.moveFailure = result.failure
      return self.fileMoved(result, of: attempt)
    }
  }

  /// Moves the file of a complete background download. Without a destination it is moved to the temporary folder,
  /// because the folder of the session is not the caller's.
  private func move(
    _ source: URL, of transfer: BackgroundTransfer, _ exchange: Exchange, of attempt: Attempt
  ) -> Outcome<Attempt> {
    let (core, request) = (attempt.core, attempt.request)
    let url = attempt.hops.isRedirected ? exchange.url : nil
    return .task { [plan] () -> Result<URL, AFError> in
      if source.path == transfer.pagePath {
        return core.movedPage(source, of: transfer, plan, exchange, for: request)
      }
      if let url { transfer.noteLocation(url) }
      do throws(AFError) { try transfer.noteCompleted() } catch { return .failure(error) }
      return core.moved(source, of: transfer, plan, exchange, for: request)
    } then: { attempt, result in
      attempt.moveFailure = result.failure
      return self.fileMoved(result, of: attempt)
    }
  }

  /// Stores the location of the file.
  private func fileMoved(_ result: Result<URL, AFError>, of attempt: Attempt) -> Outcome<Attempt> {
    if case .success(let url) = result { plan.fileURL = url }
    if attempt.core.notifiesMonitors { attempt.request.notify(.stored(result)) }
    return .done
  }

  func acceptResult(of attempt: Attempt) throws(AFError) -> Outcome<Attempt> {
    if let failure = attempt.moveFailure { throw failure }
    return .done
  }

  // MARK: The end

  /// Keeps the rest of a broken download as resume data, or removes it.
  func settle(_ core: RequestCore, isLate: Bool) {
    guard !isLate else { return settleLate(core) }
    forgetFileOfCancelled(core)
    // The next session continues the transfer with this file.
    if let transfer, core.leavesToNextSession(transfer) { return plan.close() }
    let (isCancelled, hasSinks) = core.state.withLock {
      ($0.lifecycle.state == .cancelled, $0.handlers.hasSinks)
    }
    let hasHandlers = hasSinks || core.isObservedByDelegate
    // Read after the state: a cancellation asks for resume data before it cancels.
    if isCancelled, !plan.producesResumeData { return plan.forget() }
    // The file stays with its journal, until a handler takes the outcome or another session continues the transfer.
    if transfer != nil, !isCancelled, !hasHandlers { return plan.finishFile() }
    if let data = plan.takeResumeData() { plan.resumeData = data }
  }

  /// Makes the resume data of a background transfer that has failed without a handler.
  private func settleLate(_ core: RequestCore) {
    guard let transfer, !core.leavesToNextSession(transfer) else { return }
    plan.makeResumeDataForHandler()
  }

  /// Forgets the complete file of a cancelled download, because no response names it. A temporary file is removed; a
  /// file at a destination stays.
  private func forgetFileOfCancelled(_ core: RequestCore) {
    guard core.isCancelled, let file = plan.takeFileURL() else { return }
    if plan.destination == nil { plan.removeLater { try? FileManager.default.removeItem(at: file) } }
  }

  var leftovers: (@Sendable () -> Void)? {
    guard plan.hasForgotten else { return nil }
    return { [plan] in plan.removeForgotten() }
  }

  /// Calls the handlers of `cancel(byProducingResumeData:)`, once.
  func ended(_ core: RequestCore) {
    plan.noteDelivered()
    let (handlers, data) = plan.takeResumeDataHandlers()
    guard !handlers.isEmpty else { return }
    core.session.rootQueue.async { for handler in handlers { handler(data) } }
  }

  func resumed() { transfer?.noteResumed() }

  func held() { transfer?.endTurn() }

  func forgetTransfer() { transfer?.remove() }

  func beginAgain(because cause: RequestCore.RetryCause) {
    let file = plan.forgetResults()
    // First, because the file may have lost bytes, which the transfer forgets.
    plan.forget(keepsCheckpoint: true)
    switch cause {
    case .retrier:
      // A file at a destination belongs to the user. No response names a temporary file that was not handed out.
      if let file, plan.destination == nil { try? FileManager.default.removeItem(at: file) }
      transfer?.noteRetry()
    case .demand: transfer?.beginAgain(continuing: nil)
    case .continuation: break
    }
    // A retry begins on the pool, or on the thread of its caller.
    plan.removeForgotten()
  }

  // MARK: The results

  func count(after exchange: Exchange) -> ResultCount {
    ResultCount(offset: plan.offset, received: exchange.transfer?.decodedBodyBytes ?? 0)
  }

  func complete(_ outcome: inout RequestOutcome) {
    // The handler may have been added after the failure, and before the end of the run.
    plan.makeResumeDataForHandler()
    (outcome.fileURL, outcome.resumeData) = plan.fileAndResumeData
  }

  var runNumber: Int { transfer?.run ?? 0 }

  func deliver(
    _ served: ShortList<any ResponseSink>, of core: RequestCore, after run: Int, _ announce: () -> Void
  ) {
    core.deliver(served, of: transfer, after: run, announce)
  }
}

extension RequestCore {
  /// Moves the complete file of a background download, unless an earlier process has moved it.
  fileprivate func moved(
    _ source: URL, of transfer: BackgroundTransfer, _ plan: DownloadPlan, _ exchange: Exchange,
    for request: any RunOwner
  ) -> Result<URL, AFError> {
    if case .moved(let path) = transfer.completed?.phase { return .success(URL(fileURLWithPath: path)) }
    // A cancelled request ends without a file; the file of a released session stays for the next one.
    guard !isCancelled, !isAbandoned else { return .failure(error ?? .explicitlyCancelled) }
    let place: Place
    if case .moving(let path, let bits) = transfer.completed?.phase {
      let url = URL(fileURLWithPath: path)
      place = plan.place(of: source, (url, MoveOptions(rawValue: bits)))
      if place.url == url, transfer.isAtDestination(path) {
        transfer.noteMoved()
        return .success(url)
      }
    } else {
      place = plan.place(
        of: source, exchange.responseForDestination.flatMap { plan.destination?(source, $0) })
    }
    return move(source, to: place, plan, for: request) { body in
      transfer.move(to: place.url.path, options: place.options.rawValue, body)
    }
  }

  /// Moves the page that a server sent instead of the rest of a file. The journal does not record it, so that the part
  /// of the file stays, and another process asks for the rest again.
  fileprivate func movedPage(
    _ source: URL, of transfer: BackgroundTransfer, _ plan: DownloadPlan, _ exchange: Exchange,
    for request: any RunOwner
  ) -> Result<URL, AFError> {
    guard !isCancelled, !isAbandoned else { return .failure(error ?? .explicitlyCancelled) }
    let place = plan.place(
      of: source, exchange.responseForDestination.flatMap { plan.destination?(source, $0) })
    return move(source, to: place, plan, for: request) { body in transfer.movePage(body) }
  }

  private typealias Place = DownloadPlan.Place

  private func move(
    _ source: URL, to place: Place, _ plan: DownloadPlan, for request: any RunOwner,
    _ recorded: (() -> Result<URL, AFError>) -> Result<URL, AFError>?
  ) -> Result<URL, AFError> {
    if notifiesMonitors { request.notify(.destination(place.url)) }
    // A delegate may have moved the file.
    if plan.destination == nil, !FileManager.default.fileExists(atPath: source.path) {
      return .success(source)
    }
    let result = recorded {
      DownloadPlan.move(
        source, to: place.url, place.options, isShared: place.isShared, removesSource: false)
    }
    return result ?? .failure(error ?? .sessionDeinitialized)
  }
}

/// The options of a move, as `DownloadRequest.Options` has them.
struct MoveOptions: OptionSet, Sendable {
  static let createIntermediateDirectories = MoveOptions(rawValue: 1 << 0)
  static let removePreviousFile = MoveOptions(rawValue: 1 << 1)

  let rawValue: Int
}

/// A closure that returns the location of a complete file, as `DownloadRequest.Destination` does.
typealias FileDestination = @Sendable (URL, HTTPURLResponse) -> (URL, MoveOptions)
