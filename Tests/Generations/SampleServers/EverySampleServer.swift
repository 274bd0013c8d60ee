import ChildProcesses
package import Testing

/// Runs a test once for each sample server: the test server, then a real httpbin if it is installed. The tests of a
/// suite with this trait run one after the other, and share the proxy of httpbin.
package struct EverySampleServer: SuiteTrait, TestTrait, TestScoping {
  private let proxy = HTTPBinProxy()

  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing run: @Sendable () async throws -> Void
  ) async throws {
    try await SampleServer.$current.withValue(.testServer) { try await run() }
    guard HTTPBinServer.isInstalled else { return }
    proxy.forward(to: try await HTTPBinServer.shared.port)
    _ = await proxy.takeDifferences()  // Drops the differences of an earlier run that failed.
    let naming = IssueHandlingTrait.compactMapIssues { issue in
      var issue = issue
      issue.comments.append("httpbin.org was a real httpbin.")
      return issue
    }
    try await SampleServer.$current.withValue(.httpbin(proxy)) {
      try await naming.provideScope(for: test, testCase: testCase) {
        do {
          try await run()
        } catch let error as ExpectationFailedError {
          throw error
        } catch {
          throw Failure(error: error)
        }
        for difference in await proxy.takeDifferences() { Issue.record("\(difference)") }
      }
    }
  }

  private struct Failure: Error, CustomStringConvertible {
    let error: any Error
    var description: String { "httpbin.org was a real httpbin: \(error)" }
  }
}

extension Trait where Self == EverySampleServer {
  /// Runs each test twice: with the test server, and with a real httpbin.
  package static var onEverySampleServer: Self { EverySampleServer() }
}

extension Trait where Self == ConditionTrait {
  /// Reports that the samples ran with the test server only.
  package static var needsHTTPBin: Self {
    .enabled(if: HTTPBinServer.isInstalled, "httpbin is missing; run Scripts/install httpbin")
  }
}
