import HTTPWire
import Testing

@Suite("Ends of streams") struct StreamProgressTests {
  static func progress(sent: Bool = true, frame: Bool = false, head: Bool = false, ended: Bool = false)
    -> StreamProgress
  {
    var progress = StreamProgress()
    progress.wasSent = sent
    progress.hasFrame = frame
    progress.hasHead = head
    progress.hasEnded = ended
    return progress
  }

  static let cases: [(String, StreamProgress, UInt32, StreamProgress.StreamOutcome)] = [
    ("a complete response", progress(frame: true, head: true, ended: true), 0, .complete),
    (
      "a complete response, and the upload refused", progress(frame: true, head: true, ended: true), 8,
      .complete
    ),
    ("GOAWAY before anything was sent", progress(sent: false), 7, .notSent),
    ("an end of the connection before anything was sent", progress(sent: false), 0, .notSent),
    ("REFUSED_STREAM", progress(), 7, .refused(needsHTTP1: false)),
    ("HTTP_1_1_REQUIRED", progress(), 13, .refused(needsHTTP1: true)),
    ("RST_STREAM without an error, and without a response", progress(), 0, .broken(0)),
    ("an internal error", progress(), 2, .broken(2)),
    ("REFUSED_STREAM after an informational head", progress(frame: true), 7, .broken(7)),
    ("HTTP_1_1_REQUIRED after a head", progress(frame: true, head: true), 13, .broken(13)),
    ("a body that was cut off", progress(frame: true, head: true), 0, .broken(0)),
    ("an end without a head", progress(frame: true, ended: true), 0, .broken(0)),
    ("a head alone", progress(head: true), 7, .broken(7)),
  ]

  @Test("The end of a stream decides about its request", arguments: cases)
  func outcomes(name: String, progress: StreamProgress, code: UInt32, outcome: StreamProgress.StreamOutcome) {
    #expect(progress.outcome(closedWith: code) == outcome, "\(name)")
  }

  @Test("Only requests that the server did not process are repeated with certainty") func evidence() {
    let expected: [(StreamProgress.StreamOutcome, RepeatDecision.Evidence)] = [
      (.complete, .unknown), (.broken(0), .unknown), (.notSent, .notSent),
      (.refused(needsHTTP1: true), .refused),
      (.refused(needsHTTP1: false), .refused),
    ]
    for (outcome, evidence) in expected { #expect(outcome.evidence == evidence, "\(outcome)") }
  }
}
