import Glibc
package import Testing

/// The seed of the random decisions of a test run.
package enum Seed {
  /// The number in `ALAMOFIRE_TEST_SEED`, or a random one. The same for the whole process.
  package static let current = given ?? UInt64.random(in: 0...UInt64.max)

  private static var given: UInt64? {
    getenv("ALAMOFIRE_TEST_SEED").flatMap { UInt64(String(cString: $0)) }
  }

  /// Returns a generator with numbers that depend on the seed of the run and on `index`, the number of a walk.
  package static func generator(_ index: Int = 0) -> SeededGenerator {
    SeededGenerator(seed: current &+ UInt64(truncatingIfNeeded: index) &* 0xD134_2543_DE82_EF95)
  }
}

extension Trait where Self == IssueHandlingTrait {
  /// Adds the seed of the run to each failure, so that the run can be repeated with the same decisions.
  package static var seeded: Self {
    .compactMapIssues { issue in
      var issue = issue
      issue.comments.append("Repeat it with ALAMOFIRE_TEST_SEED=\(Seed.current).")
      return issue
    }
  }
}
