import Foundation
import FoundationNetworking
import Synchronization

/// The session that delegates, monitors and users see: Foundation's class, before the engine of a ``Session``.
///
/// Its own tasks, made with `dataTask(with:)` and the like, are Foundation's and run by Foundation. Unchecked, as
/// Foundation's class is: what it adds is a constant.
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
