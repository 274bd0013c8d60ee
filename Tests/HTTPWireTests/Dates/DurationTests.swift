import HTTPWire
import Testing

@Suite("Whole numbers of durations") struct DurationTests {
  @Test("Durations beyond all clocks and negative ones are clamped")
  func clamped() {
    for (duration, nanoseconds, milliseconds) in [
      (.zero, 0, 0), (.nanoseconds(1), 1, 0), (.milliseconds(1500), 1_500_000_000, 1500),
      (.seconds(-1), 0, 0),
      (.seconds(15_000_000_000), 15_000_000_000_000_000_000, 15_000_000_000_000),
      (.seconds(16_000_000_000), .max, 16_000_000_000_000),
      (.seconds(Int64.max), .max, .max), (.seconds(Int64.min), 0, 0), (.seconds(1.6e20), .max, .max),
    ] as [(Duration, UInt64, Int64)] {
      #expect(duration.wholeNanoseconds == nanoseconds, "\(duration)")
      #expect(duration.wholeMilliseconds == milliseconds, "\(duration)")
    }
    #expect(Duration.seconds(Int64.max).shownSeconds == "9.223372036854776e+15 seconds")
    #expect(Duration.milliseconds(2500).shownSeconds == "2.5 seconds")
  }

  @Test("Limits beyond all clocks are none") func limits() {
    for limit in [Duration.seconds(Int64.max), .seconds(1.6e20), .seconds(1_000_000_000)] {
      #expect(PhaseLimits(.init(connect: limit)) == nil, "\(limit)")
    }
    #expect(PhaseLimits(.init(connect: .seconds(Int64.min)))?.connect == 0)
  }
}
