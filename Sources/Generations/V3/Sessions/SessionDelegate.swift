public import Foundation
public import FoundationNetworking

extension Manager {
  /// The delegate of a manager: it is called for events of tasks, and decides about some of them. Set its closures,
  /// or override methods in a subclass, which take precedence.
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
