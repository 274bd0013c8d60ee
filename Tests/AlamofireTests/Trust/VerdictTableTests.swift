import Alamofire
import HTTPTestServer
import Testing

/// Every evaluator against every kind of certificate.
@Suite("Table of verdicts", .timeLimit(.minutes(5))) struct VerdictTableTests {
  private static let specimens = Laboratory.allSpecimens

  @Test(arguments: VerdictTable.entries)
  func everyVerdictIsTheExpectedOne(entry: VerdictTable.Entry) throws {
    let laboratory = try Laboratory.shared.get()
    let specimen = try #require(try Self.specimens.get()[entry.specimen])
    let evaluator = try laboratory.evaluator(entry.evaluator, own: specimen.identity)
    var caught: (any Error)?
    do { try evaluator.evaluate(specimen.trust(), forHost: specimen.host) } catch { caught = error }
    #expect(
      VerdictTable.word(for: caught) == entry.verdict, "\(caught.map { $0.localizedDescription } ?? "")")
  }

  @Test func theTableHasEverySpecimenAndEveryColumn() throws {
    let named = Set(VerdictTable.entries.map(\.specimen))
    #expect(named == Set(try Self.specimens.get().keys))
    #expect(VerdictTable.entries.count == named.count * 11)
  }

  @Test func failuresSayWhatIsWrongAndWithWhom() throws {
    for entry in VerdictTable.entries where entry.verdict != "ok" {
      let specimen = try #require(try Self.specimens.get()[entry.specimen])
      let evaluator = try Laboratory.shared.get().evaluator(entry.evaluator, own: specimen.identity)
      let error = #expect(throws: AFError.self) {
        try evaluator.evaluate(specimen.trust(), forHost: specimen.host)
      }
      let message = try #require(error?.localizedDescription)
      #expect(error?.isServerTrustEvaluationError == true)
      #expect(message.hasSuffix(".") || message.hasSuffix(")"), "\(message)")
      #expect(message.contains(specimen.host) || entry.specimen == "unreadable-list", "\(message)")
    }
  }
}
