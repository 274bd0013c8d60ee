import Foundation
import FoundationNetworking
import Synchronization

/// The session that delegates, monitors and users see: an object of Foundation's class for the engine of a
/// ``Session``.
///
/// Tasks that are created with its `dataTask(with:)` and similar methods are Foundation's, except for resumed
/// downloads, which Foundation on Linux does not support. Unchecked, as Foundation's class is: its own properties are
/// constants.
final class SessionFacade: URLSession, @unchecked Sendable {
  private let core = WeakSessionCore()
  /// The plan of a session that has not been created yet.
  private let plan: Mutex<SessionPlan?>

  init(_ plan: SessionPlan, delegate: (any URLSessionDelegate)?) {
    self.plan = Mutex(plan)
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    super.init(configuration: plan.configuration, delegate: delegate, delegateQueue: queue)
  }

  /// Returns the plan, once.
  func takePlan() -> SessionPlan? { plan.withLock { $0.take() } }

  /// Makes this the facade of `core`.
  func serve(_ core: SessionCore) {
    self.core.set(core)
    delegateQueue.underlyingQueue = core.rootQueue
    delegateQueue.name = "\(core.rootQueue.label).sessionDelegate"
  }

  // Foundation's own session has no tasks, and would report its end to the delegate a second time.
  override func invalidateAndCancel() { core.value?.invalidate(.sessionInvalidated(error: nil)) }

  override func finishTasksAndInvalidate() { core.value?.refuseMore() }

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

/// The values of a session that its designated initialiser has no parameters for. A facade carries them there.
struct SessionPlan: Sendable {
  let configuration: URLSessionConfiguration
  var transportOptions = TransportOptions()
  var engine = Engine.standard()
  /// The delegate, the handlers and the monitors, instead of the ones passed to the initialiser.
  var observers: SessionObservers?
  /// The caller's session, which is shown instead of the facade.
  var shown: URLSession?
}

/// A session's inside, as long as the session lives.
private final class WeakSessionCore: Sendable {
  private struct Weak { weak var core: SessionCore? }

  /// The weak reference, for any thread.
  private let core = Mutex(Weak())

  var value: SessionCore? { core.withLock { $0.core } }

  func set(_ new: SessionCore) { core.withLock { $0.core = new } }
}

extension Session {
  /// Returns a task that continues a download when it is resumed. Until then the session retains it, as Foundation's
  /// does.
  func downloadTask(resuming data: Data) -> URLSessionDownloadTask? {
    let request = download(
      ResumedRequest(data: data), runsUserCode: false, nil, false, nil, .resumeData(data))
    _ = request.core.state.withLock { state in
      state.observed.tasks.owner = request
      return state.observed.tasks.begin()
    }
    let task = request.core.tasks(of: request).first
    request.core.setUp(request, isEager: true)
    return task as? URLSessionDownloadTask
  }
}
