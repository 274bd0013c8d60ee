import Foundation
import FoundationNetworking
import HTTPWire

extension Session {
  /// The downloads and uploads of earlier processes that this background session has found and continues, the oldest
  /// first; empty for other sessions. The requests are running, so add handlers to them at once.
  ///
  /// A request has the same `id` as in the first process. Handlers, validators and interceptors of a request do not
  /// survive a process; the session's apply.
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
  /// Makes and starts the requests of the transfers that an earlier process left.
  func restoreTransfers(for session: Session) {
    guard let background else { return }
    let destination = (configuration as? BackgroundConfiguration)?.restoredDownloadDestination
    let requests = background.restore().map { transfer -> Request in
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
    for request in requests { request.resume() }
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
