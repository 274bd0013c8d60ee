import HTTPTestServer
import Testing

/// Plays the same bytes to the engine and to the command `curl`, and compares the kind of the result, status, body, and
/// the number of requests and connections. Each accepted difference is a row of ``AcceptedDifference/all``.
@Suite("The engine beside curl", .serialized, .timeLimit(.minutes(5))) struct DifferentialTests {
  private static let next = WireOutcome.Kind.response(status: 200, body: .init(Array("next".utf8)))

  @Test(
    "The engine and curl agree, apart from the accepted differences", .enabled(if: CurlCommand.isInstalled),
    arguments: WireScript.Form.allCases)
  func agreement(form: WireScript.Form) async throws {
    let scripts = try WireScript.all().filter { form != .singleBytes || !$0.hasExcess }
    let reference = try await CurlCommand().play(scripts, form)
    let outcomes = try await EnginePlayer().play(scripts, form)
    for (script, (outcome, expected)) in zip(scripts, zip(outcomes, reference)) {
      let text = "\(script.name.debugDescription)\n  engine: \(outcome)\n  curl: \(expected)"
      #expect(outcome.next == Self.next, "the next request did not get its own response: \(text)")
      guard outcome != expected else { continue }
      let difference = AcceptedDifference.all.first { $0.covers(script) }
      #expect(difference?.allows(outcome.kind) == true, "\(text)\n  accepted: \(difference?.reason ?? "no")")
    }
  }

  @Test("Each accepted difference is one of a script") func table() throws {
    let scripts = try WireScript.all()
    #expect(scripts.count > 60, "\(scripts.count) scripts")
    for difference in AcceptedDifference.all {
      for part in difference.scripts {
        #expect(scripts.contains { $0.name.contains(part) }, "no script has \(part.debugDescription)")
      }
    }
  }
}
