import ChildProcesses
package import Testing

/// Plays a test once for each stage: before the test server, then before a real httpbin where there is one. The tests of
/// the suite that has this trait play one after the other, and share the front of httpbin.
package struct EveryStage: SuiteTrait, TestTrait, TestScoping {
  private let front = HTTPBinFront()

  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing play: @Sendable () async throws -> Void
  ) async throws {
    try await Stage.$current.withValue(.testServer) { try await play() }
    guard HTTPBinServer.isAtHand else { return }
    front.lead(to: try await HTTPBinServer.shared.port)
    _ = await front.verdict()  // Of a play that has failed before.
    let naming = IssueHandlingTrait.compactMapIssues { issue in
      var issue = issue
      issue.comments.append("httpbin.org was a real httpbin.")
      return issue
    }
    try await Stage.$current.withValue(.httpbin(front)) {
      try await naming.provideScope(for: test, testCase: testCase) {
        do {
          try await play()
        } catch let error as ExpectationFailedError {
          throw error
        } catch {
          throw Failure(error: error)
        }
        for difference in await front.verdict() { Issue.record("\(difference)") }
      }
    }
  }

  private struct Failure: Error, CustomStringConvertible {
    let error: any Error
    var description: String { "httpbin.org was a real httpbin: \(error)" }
  }
}

extension Trait where Self == EveryStage {
  /// Plays each test twice: before the test server, and before a real httpbin.
  package static var onEveryStage: Self { EveryStage() }
}

extension Trait where Self == ConditionTrait {
  /// Says that samples have been played before the test server alone.
  package static var needsHTTPBin: Self {
    .enabled(if: HTTPBinServer.isAtHand, "httpbin is missing; run Scripts/install httpbin")
  }
}
