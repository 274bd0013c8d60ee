public import AlamofireGenerations
public import Foundation
public import FoundationNetworking

extension Manager {
  /// Is called when something happens to the tasks of a manager, and decides where there is something to decide: by
  /// its closures, or as a subclass, whose methods take precedence over them.
  ///
  /// ```swift
  /// manager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in nil }
  /// ```
  open class SessionDelegate: ClosureSessionDelegate<NSError>, @unchecked Sendable {
    // Unchecked, as its superclass is: it adds nothing.

    /// Makes a delegate without closures.
    public init() {
      super.init(
        ownClass: SessionDelegate.self,
        neededEvents: { $0.taskDidComplete == nil ? $0.events : $0.events.union(.transfers) },
        convertError: generationThreeError)
    }

    /// Called when a task has ended.
    open override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      super.urlSession(session, task: task, didCompleteWithError: error)
      taskDidComplete?(session, task, error.map(generationThreeError))
    }
  }
}
