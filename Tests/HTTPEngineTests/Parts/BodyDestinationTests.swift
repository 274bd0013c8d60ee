import HTTPEngine
import HTTPWire
import Testing

@Suite struct BodyDestinationTests {
  @Test("A body without a sink is stored in memory", arguments: [HeadDisposition.proceed, .hold])
  func noSink(disposition: HeadDisposition) {
    guard case .memory = BodyDestination(sink: nil, disposition) else {
      Issue.record("the body is not collected in memory")
      return
    }
  }

  @Test("A sink receives the body unless it is discarded") func sink() {
    let sink = CountingSink(room: 1)
    for disposition in [HeadDisposition.proceed, .hold] {
      guard case .sink(let chosen) = BodyDestination(sink: sink, disposition) else {
        Issue.record("the sink does not get the body")
        continue
      }
      #expect(chosen === sink)
    }
    #expect(BodyDestination(sink: sink, .discard).isDiscarded)
    #expect(BodyDestination(sink: nil, .discard).isDiscarded)
  }
}
