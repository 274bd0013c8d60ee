import Scenarios
import Testing

@Suite("Steps of tests") struct StepTests {
  private static let taken = Mutex<Set<String>>([])

  /// Takes the issues with exactly these comments. All others are failures.
  private static func taking(_ expected: String...) -> IssueHandlingTrait {
    .compactMapIssues { issue in
      let comments = issue.comments.map(\.rawValue).joined(separator: " ")
      guard expected.contains(comments) else { return issue }
      taken.withLock { _ = $0.insert(comments) }
      return nil
    }
  }

  private func isTaken(_ comments: String) -> Bool { Self.taken.withLock { $0.contains(comments) } }

  @Test(
    "A failure names the last step that began, also in a child task",
    taking("before", "in a child The step was: second hop."), .steps)
  func names() async {
    Issue.record("before")
    step("first")
    step("second hop")
    async let child: Void = { #expect(Bool(false), "in a child") }()
    await child
    #expect(isTaken("before") && isTaken("in a child The step was: second hop."))
  }

  @Test(
    "A step of a test without the trait is a failure",
    taking("Give the test the trait .steps, so that failures name \"alone\"."))
  func missingTrait() {
    step("alone")
    #expect(isTaken("Give the test the trait .steps, so that failures name \"alone\"."))
  }
}
