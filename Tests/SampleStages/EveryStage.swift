import ChildProcesses
package import Testing

/// Plays a test once for each stage: before the test server, then before a real httpbin where there is one.
package struct EveryStage: SuiteTrait, TestTrait, TestScoping {
  package init() {}

  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing play: @Sendable () async throws -> Void
  ) async throws {
    try await Stage.$current.withValue(.testServer) { try await play() }
    guard HTTPBinServer.isAtHand else { return }
    let stage = Stage.httpbin(port: try await HTTPBinServer.shared.port)
    let naming = IssueHandlingTrait.compactMapIssues { issue in
      var issue = issue
      issue.comments.append("httpbin.org was a real httpbin.")
      return issue
    }
    do {
      try await Stage.$current.withValue(stage) {
        try await naming.provideScope(for: test, testCase: testCase, performing: play)
      }
    } catch let error as ExpectationFailedError {
      throw error
    } catch {
      throw Failure(error: error)
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
