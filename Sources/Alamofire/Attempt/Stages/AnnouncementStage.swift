import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Observers are notified of the task of an attempt before it is sent, and of its end.
extension RequestRun {
  /// Announces the task of the attempt and waits until the request is resumed. If the body is a stream, the delegate
  /// may provide another one.
  func announceTask() -> Outcome {
    .task { [core, request] in
      await core.tellTask(of: request)
    } then: { _, _ in
      .gate(.resumed) { (run) throws(AFError) in
        try run.core.checkAlive()
        return run.core.body == nil ? .done : try run.askForBodyStream { _ in .done }
      }
    }
  }

  func announceTaskEnd() -> Outcome {
    let error = values.error
    if error != nil { core.makeMissingExchange() }
    let exchange = error == nil ? values.exchange : core.state.withLock { $0.results.exchange }
    return .task { [core, request] in
      if let exchange, error == nil { await core.storeCandidates(exchange, of: request) }
      if let metrics = exchange?.metrics {
        await core.callDelegate(for: request) { delegate, session, task in
          delegate.urlSession(session, task: task, didFinishCollecting: metrics)
        }
      }
      let failure = error?.ofTask
      await core.callDelegate(for: request) { delegate, session, task in
        delegate.urlSession(session, task: task, didCompleteWithError: failure)
      }
    }
  }
}
