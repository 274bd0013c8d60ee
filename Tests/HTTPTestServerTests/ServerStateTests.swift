@testable import HTTPTestServer
import Testing

@Suite("Waits for a request", .timeLimit(.minutes(5))) struct ServerStateTests {
  @Test(
    "An end that comes before its wait is not lost",
    arguments: [
      [ServerError.cancelled], [.timedOut(after: .zero)], [.timedOut(after: .zero), .cancelled],
    ])
  func earlyEnd(errors: [ServerError]) async throws {
    var state = ServerState()
    let id = state.makeWaiterID()
    for error in errors {
      if state.giveUp(id, error) != nil { Issue.record("nothing waits yet") }
    }
    let result = await withCheckedContinuation { (waiter: ServerState.Waiter) in
      if let (waiter, result) = state.take(for: id, waiter, orElse: nil) {
        waiter.resume(returning: result)
      } else {
        Issue.record("the task waits, although its time is over or it was cancelled")
        waiter.resume(returning: .failure(.stopped))
      }
    }
    let expected = try #require(errors.last)
    #expect(throws: expected) { try result.get() }
    if state.giveUp(id, .cancelled) != nil { Issue.record("the wait is over") }
    #expect(state.coming.isEmpty, "the server keeps the ends of waits that are over")
  }
}
