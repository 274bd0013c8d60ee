package import Testing

/// The step that a test has reached. A failure names it, because its line can belong to a loop or to a helper.
final class Scenario: Sendable {
  @TaskLocal static var current: Scenario?

  private let reached = Mutex<String?>(nil)

  /// The name of the last step that began.
  var step: String? {
    get { reached.withLock { $0 } }
    set { reached.withLock { $0 = newValue } }
  }
}

/// Begins a step of a test with the trait `steps`, in the task of the test or in a child task.
package func step(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) {
  guard let scenario = Scenario.current else {
    Issue.record(
      "Give the test the trait .steps, so that failures name \"\(name)\".", sourceLocation: sourceLocation)
    return
  }
  scenario.step = name
}

/// Adds the step that the test has reached to each failure.
package struct StepsTrait: SuiteTrait, TestTrait, TestScoping {
  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test, testCase: Test.Case?, performing run: @Sendable () async throws -> Void
  ) async throws {
    let scenario = Scenario()
    let naming = IssueHandlingTrait.compactMapIssues { issue in
      guard let step = scenario.step else { return issue }
      var issue = issue
      issue.comments.append("The step was: \(step).")
      return issue
    }
    try await Scenario.$current.withValue(scenario) {
      try await naming.provideScope(for: test, testCase: testCase, performing: run)
    }
  }
}

extension Trait where Self == StepsTrait {
  /// Lets a test name its steps by ``step(_:sourceLocation:)``.
  package static var steps: Self { StepsTrait() }
}
