import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Session {
  /// The downloads and uploads of earlier processes that this background session has found and continues, the oldest
  /// first; empty for other sessions. The requests are running, so add handlers to them at once.
  ///
  /// A request has the same `id` as in the first process. Handlers, validators and interceptors of a request do not
  /// survive a process; the session's apply. Neither do its ``Request/transportOptions(_:)``, which may have keys and
  /// passwords: a request that had some is not running. Set them again, and then resume it or add a handler. Until then
  /// neither ``cancelAllRequests(completingOnQueue:completion:)`` nor
  /// ``SessionDelegate/urlSessionDidFinishEvents(forBackgroundURLSession:)`` includes it.
  ///
  /// ```swift
  /// let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
  /// for case let download as DownloadRequest in session.restoredRequests {
  ///   download.responseURL { print($0.result) }
  /// }
  /// ```
  ///
  /// An empty list does not show whether the session's folder can be used; see ``backgroundFolderError``.
  public var restoredRequests: [Request] { core.restoredRequests }

  /// The reason why the folder of this background session cannot be used; `nil` if it can, and for other sessions.
  ///
  /// With an error, ``restoredRequests`` is empty although an earlier process may have left transfers, and every
  /// download and upload fails with the same error. Reasons are a read-only disk, another process or session with the
  /// same identifier, a folder that belongs to another user or is writable for others, and the end of the session.
  ///
  /// ```swift
  /// let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
  /// if let error = session.backgroundFolderError { print("No transfers are continued: \(error)") }
  /// ```
  public var backgroundFolderError: AFError? { core.background?.folderError }
}

extension SessionCore {
  /// Makes the requests of the transfers that an earlier process left, and starts those that had no options of their
  /// own.
  func restoreTransfers(for session: Session) {
    guard let background else { return }
    let destination = (configuration as? BackgroundConfiguration)?.restoredDownloadDestination
    let transfers = background.restore()
    let requests = transfers.map { transfer -> Request in
      let convertible: any URLRequestConvertible = transfer.request ?? DamagedTransfer()
      return transfer.kind == .download
        ? session.download(
          convertible, runsUserCode: false, nil, nil, destination, nil, transfer: transfer)
        : session.upload(
          DamagedTransfer(), with: convertible, runsUserCode: false, nil, nil, .default, transfer: transfer,
          resumer: UploadResumer(transfer))
    }
    keepRestored(requests)
    background.whenRestoredEnded { [weak self] in self?.notifyRestoredEnded() }
    // Without their options, they might be sent past a proxy, or to addresses that the options refuse.
    for (request, transfer) in zip(requests, transfers) where !transfer.lacksOptions { request.resume() }
  }

  private func notifyRestoredEnded() {
    let delegate = delegate
    let facade = facade
    rootQueue.async { delegate.urlSessionDidFinishEvents(forBackgroundURLSession: facade) }
  }

  /// Returns the interceptor of a background transfer, after the caller's.
  func interceptor(
    _ own: (any RequestInterceptor)?, of transfer: BackgroundTransfer?
  ) -> (any RequestInterceptor)? {
    guard let transfer else { return own }
    let retrier = BackgroundRetrier(
      transfer: transfer, lifetime: configuration.timeoutIntervalForResource)
    return own.map { Interceptor(interceptors: [$0, retrier]) } ?? retrier
  }
}

/// The request of a background download, which asks for the rest of the file if a part of it is there.
struct BackgroundDownload: URLRequestConvertible {
  let base: any URLRequestConvertible
  let plan: DownloadPlan

  func asURLRequest() throws -> URLRequest {
    guard let data = plan.source, let transfer = plan.transfer else {
      return plan.continuing(try plan.transfer?.request ?? base.asURLRequest())
    }
    let part = try ResumeData(data)
    let whole = try part.wholeRequest()
    // A complete file has no rest to ask for.
    if part.isUsable, part.received != part.version.length.map({ Int64($0) }) {
      try transfer.adopt(whole, part.version, path: part.path, count: part.received)
    }
    return plan.continuing(transfer.request ?? whole)
  }
}

/// The request of a background upload. After its first attempt, the request in the journal.
struct BackgroundUpload: URLRequestConvertible {
  let base: any URLRequestConvertible
  let transfer: BackgroundTransfer

  func asURLRequest() throws -> URLRequest { try transfer.request ?? base.asURLRequest() }
}

/// A transfer in a journal that cannot be recreated.
struct DamagedTransfer: URLRequestConvertible, UploadableConvertible {
  func asURLRequest() throws -> URLRequest { throw AFError.invalidURL(url: "") }
  func createUploadable() throws -> UploadRequest.Uploadable {
    throw AFError.sessionTaskFailed(
      error: URLError(
        .cannotOpenFile, "The journal of the upload names no file with its body. Send the upload again.",
        url: nil))
  }
}

/// The last interceptor of a background transfer. Failures of the network do not end a transfer that may be sent again,
/// before its `timeoutIntervalForResource`.
struct BackgroundRetrier: RequestInterceptor {
  let transfer: BackgroundTransfer
  let lifetime: TimeInterval
  /// Delays of 1 to 60 seconds.
  private static let backoff = Backoff(base: 2, scale: 1, isJittered: false)
  private static let longestDelay: TimeInterval = 60

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard let code = temporaryCode(of: error), transfer.mayRepeat || isUnsent(request, code, error),
      transfer.age < lifetime
    else {
      return completion(.doNotRetry)
    }
    let delay = Self.backoff.delay(retryCount: min(request.retryCount, 6), random: 0)
    completion(.retryWithDelay(min(delay, Self.longestDelay)))
  }

  /// Returns the code of a failure that may pass; `nil` for any other.
  private func temporaryCode(of error: any Error) -> URLError.Code? {
    guard let code = (error.asAFError?.underlyingError as? URLError)?.code else { return nil }
    switch code {
    case .networkConnectionLost, .notConnectedToInternet, .timedOut, .cannotConnectToHost, .dnsLookupFailed:
      return code
    // The name of a host that has answered before is right.
    case .cannotFindHost: return transfer.hasHadResponse ? code : nil
    default: return nil
    }
  }

  /// Whether nothing of the request was sent, although the journal notes a download and an empty upload as sent before
  /// their connections exist. The error of a validator or a serializer is about another request, and so may the error
  /// of a `URLProtocol` class be.
  private func isUnsent(_ request: Request, _ code: URLError.Code, _ error: any Error) -> Bool {
    guard case .sessionTaskFailed = error.asAFError, request.response == nil,
      request.session.settings.protocolClasses.isEmpty
    else { return false }
    return UploadRetrier.unsentCodes.contains(code) && transfer.isUnsentWithoutConnection
  }
}

extension Request {
  /// The journal of a request of a background session.
  var backgroundTransfer: BackgroundTransfer? {
    switch self {
    case let upload as UploadRequest: upload.body.transfer
    case let download as DownloadRequest: download.plan.transfer
    default: nil
    }
  }

  /// The request of a download or an upload of a background session before its adaptation. `nil` until it is in the
  /// journal, and for other requests. Restored requests have it at once.
  public var originalRequest: URLRequest? { backgroundTransfer?.request }

  /// Whether an earlier process ended while it called the response handlers of this request of a background session.
  /// The handlers receive the same outcome once more, and have to recognize what they have already done.
  public var mayHaveBeenDelivered: Bool { backgroundTransfer?.mayHaveBeenDelivered ?? false }

  /// Sets the date before which nothing is sent. It has an effect for downloads and uploads of background sessions, and
  /// survives the end of the process. If the clock of the machine is set back, the wait does not become longer. If the
  /// machine restarts during the wait, a request that must not be repeated, such as a POST, fails with
  /// `URLError.backgroundSessionWasDisconnected`.
  ///
  /// Call it before the request is resumed; later calls do nothing.
  @discardableResult
  public func earliestBeginDate(_ date: Date) -> Self {
    backgroundTransfer?.earliestBegin = date
    return self
  }
}
