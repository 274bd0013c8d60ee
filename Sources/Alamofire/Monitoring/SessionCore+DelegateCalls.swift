import Foundation
import FoundationNetworking

// Calls of code that belongs to the caller.
extension SessionCore {
  /// Asks the delegate on the root queue. A task that is cancelled does not wait for the answer, nor does one whose
  /// deadline is over.
  ///
  /// - Parameters:
  ///   - whenForgotten: The answer of a completion that is released without a call.
  ///   - whenCancelled: The answer after a cancellation or the deadline.
  ///   - ask: Calls the delegate with the session that it sees.
  func delegateAnswer<Answer: Sendable>(
    whenForgotten: Answer, whenCancelled: Answer, deadline: ContinuousClock.Instant? = nil,
    _ ask: @escaping @Sendable (SessionDelegate, URLSession, SingleCompletion<Answer>) -> Void
  ) async -> Answer {
    await SingleCompletion.answer(
      whenForgotten: whenForgotten, whenCancelled: whenCancelled, deadline: deadline
    ) { completion in
      let delegate = delegate
      let facade = facade
      rootQueue.async { ask(delegate, facade, completion) }
    }
  }
}
