import Foundation
import FoundationNetworking
import Synchronization

/// The session that delegates, monitors and users see: an object of Foundation's class for the engine of a
/// ``Session``.
///
/// Tasks that are made with its `dataTask(with:)` and similar methods are Foundation's, except for resumed downloads,
/// which Foundation on Linux does not support. Unchecked, as Foundation's class is: its own property is constant.
final class SessionFacade: URLSession, @unchecked Sendable {
  private let core: WeakSessionCore

  init(_ core: SessionCore, delegate: (any URLSessionDelegate)?, queue: OperationQueue) {
    self.core = WeakSessionCore(core)
    super.init(configuration: core.configuration, delegate: delegate, delegateQueue: queue)
  }

  override func invalidateAndCancel() {
    core.value?.invalidate(.sessionInvalidated(error: nil))
    super.invalidateAndCancel()
  }

  override func finishTasksAndInvalidate() {
    core.value?.refuseMore()
    super.finishTasksAndInvalidate()
  }

  override var configuration: URLSessionConfiguration {
    core.value?.configuration.duplicated() ?? super.configuration
  }

  override func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
    core.value?.owner?.downloadTask(resuming: resumeData) ?? super.downloadTask(withResumeData: resumeData)
  }

  override func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
    let core = core.value
    delegateQueue.addOperation { completionHandler(core?.runningTasks ?? []) }
  }

  override func getTasksWithCompletionHandler(
    _ completionHandler:
      @escaping @Sendable (
        [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
      ) -> Void
  ) {
    getAllTasks { tasks in
      let uploads = tasks.compactMap { $0 as? URLSessionUploadTask }
      let downloads = tasks.compactMap { $0 as? URLSessionDownloadTask }
      let datas = tasks.compactMap { $0 is URLSessionUploadTask ? nil : $0 as? URLSessionDataTask }
      completionHandler(datas, uploads, downloads)
    }
  }
}

/// A session's inside, as long as the session lives.
private final class WeakSessionCore: Sendable {
  private let core: Mutex<Weak>

  private struct Weak { weak var core: SessionCore? }

  init(_ core: SessionCore) { self.core = Mutex(Weak(core: core)) }

  var value: SessionCore? { core.withLock { $0.core } }
}

extension Session {
  /// Returns a task that continues a download when it is resumed. Until then the session retains it, as Foundation's
  /// does.
  func downloadTask(resuming data: Data) -> URLSessionDownloadTask? {
    let request = download(
      ResumedRequest(data: data), runsUserCode: false, nil, false, nil, .resumeData(data))
    request.core.state.withLock { state in
      state.observed.tasks.owner = request
      state.observed.tasks.begin()
    }
    let task = request.core.tasks(of: request).first
    request.core.setUp(request, .eager)
    return task as? URLSessionDownloadTask
  }
}
