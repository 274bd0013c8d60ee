import Alamofire
import HTTPTestServer
import Testing

/// Every evaluator with every kind of certificate.
@Suite("Table of evaluations", .timeLimit(.minutes(5))) struct EvaluationTableTests {
  private static let fixtures = TrustFixtures.allFixtures

  @Test("The evaluator returns the result of the table", arguments: EvaluationTable.entries)
  func results(entry: EvaluationTable.Entry) throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let fixture = try #require(try Self.fixtures.get()[entry.fixture])
    let evaluator = try trustFixtures.evaluator(entry.evaluator, own: fixture.identity)
    var caught: (any Error)?
    do { try evaluator.evaluate(fixture.trust(), forHost: fixture.host) } catch { caught = error }
    #expect(
      EvaluationTable.word(for: caught) == entry.verdict, "\(caught.map { $0.localizedDescription } ?? "")")
  }

  @Test("The table has every server and every evaluator") func completeness() throws {
    let named = Set(EvaluationTable.entries.map(\.fixture))
    #expect(named == Set(try Self.fixtures.get().keys))
    #expect(EvaluationTable.entries.count == named.count * 11)
  }

  @Test("Failures name the reason and the server") func failures() throws {
    for entry in EvaluationTable.entries where entry.verdict != "ok" {
      let fixture = try #require(try Self.fixtures.get()[entry.fixture])
      let evaluator = try TrustFixtures.shared.get().evaluator(entry.evaluator, own: fixture.identity)
      let error = #expect(throws: AFError.self) {
        try evaluator.evaluate(fixture.trust(), forHost: fixture.host)
      }
      let message = try #require(error?.localizedDescription)
      #expect(error?.isServerTrustEvaluationError == true)
      #expect(message.hasSuffix(".") || message.hasSuffix(")"), "\(message)")
      #expect(message.contains(fixture.host) || entry.fixture == "unreadable-list", "\(message)")
    }
  }
}
