import HTTPWire
import Randomness
import Scenarios
import Testing

@Suite("Token buckets") struct TokenBucketTests {
  private static let second: UInt64 = 1_000_000_000

  @Test("A burst is allowed at once, and then the rate") func burst() {
    var bucket = TokenBucket(rate: 10, burst: 3)
    var now: UInt64 = 5 * Self.second
    for _ in 0..<3 {
      #expect(bucket.readyTime <= now)
      bucket.take(at: now)
    }
    #expect(bucket.readyTime == now + Self.second / 10)
    now = bucket.readyTime
    bucket.take(at: now)
    #expect(bucket.readyTime == now + Self.second / 10)
    #expect(!bucket.isFull(now))
    // After a pause the bucket is full, and not fuller.
    now += 100 * Self.second
    #expect(bucket.isFull(now))
    for _ in 0..<3 { bucket.take(at: now) }
    #expect(bucket.readyTime > now)
  }

  @Test("A token that is returned is one token") func returnedToken() {
    let second: UInt64 = 1_000_000_000
    var bucket = TokenBucket(rate: 1, burst: 1)
    for _ in 0..<3 { bucket.take(at: 10 * second) }
    #expect(bucket.readyTime == 13 * second)
    bucket.giveBack()
    #expect(bucket.readyTime == 12 * second)
    for _ in 0..<20 { bucket.giveBack() }
    #expect(bucket.readyTime == 0)
  }

  @Test("A debt is refilled at the rate") func debt() {
    var bucket = TokenBucket(rate: 1000, burst: 1)
    bucket.take(5000, at: Self.second)
    #expect(bucket.readyTime == 6 * Self.second)
  }

  @Test("A token that is given back can be used again") func giveBack() {
    var bucket = TokenBucket(rate: 1, burst: 1)
    bucket.take(at: 50 * Self.second)
    bucket.giveBack()
    #expect(bucket.readyTime <= 50 * Self.second)
    bucket.giveBack()
    bucket.take(at: 50 * Self.second)
    #expect(bucket.readyTime == 51 * Self.second)
  }

  @Test("A token is not given back if the bucket has been full since it was taken") func refilledToken() {
    var bucket = TokenBucket(rate: 10, burst: 5)
    bucket.take(at: Self.second)
    bucket.giveBack(takenAt: Self.second)
    #expect(bucket.isFull(Self.second))
    bucket.take(at: Self.second)
    let later = 3 * Self.second
    for _ in 0..<5 { bucket.take(at: later) }
    bucket.giveBack(takenAt: Self.second)
    #expect(bucket.readyTime == later + Self.second / 10, "the burst is used up")
    bucket.giveBack(takenAt: later)
    #expect(bucket.readyTime == later)
  }

  @Test("Extreme rates and counts do not overflow", arguments: [0, -1, .nan, .infinity, 1e-300, 1e300])
  func extremes(rate: Double) {
    for burst in [0, 1, -5, Double.infinity, 1e300] {
      var bucket = TokenBucket(rate: rate, burst: burst)
      bucket.take(1e300, at: .max - 1)
      bucket.take(at: 0)
      bucket.giveBack()
      #expect(bucket.readyTime >= 0)
    }
  }
}

@Suite("Request limits") struct RequestLimitTests {
  private typealias Moment = HostAdmission.Moment
  private static let second: UInt64 = 1_000_000_000

  private func admission(
    connections: Int = 6, inFlight: Int? = nil, rate: Double? = nil, burst: Int = 1
  ) -> HostAdmission {
    let limits = TransportOptions.RequestLimits(
      perHost: inFlight, ratePerHost: rate.map { .init(perSecond: $0, burst: burst) })
    return HostAdmission(connections: connections, limits: HostLimits(limits))
  }

  @Test("Options without limits of a host need none") func noLimits() {
    #expect(HostLimits(.init()) == nil)
    #expect(HostLimits(.init(perSession: 3)) == nil)
    #expect(HostLimits(.init(perHost: 0))?.inFlight == 1)
  }

  @Test("Requests in flight are limited below the connections, also with many streams") func inFlight() {
    var admission = admission(inFlight: 2)
    #expect(admission.submitted(1, priority: 0.5) == true)
    #expect(admission.submitted(2, priority: 0.5) == true)
    #expect(admission.submitted(3, priority: 0.5) == false)
    #expect(admission.obstacle(0) == .inFlight)
    #expect(admission.learned(multiplexes: true) == [])
    #expect(admission.ended() == 3)
    #expect(admission.obstacle(0) == nil)
    var plain = self.admission(connections: 1, inFlight: 9)
    #expect(plain.submitted(1, priority: 0.5) == true)
    #expect(plain.submitted(2, priority: 0.5) == false)
    #expect(plain.obstacle(0) == .connections)
    #expect(plain.submitted(3, priority: 0.5) == false)
    #expect(plain.learned(multiplexes: true) == [2, 3])
  }

  @Test("A rate delays requests after a burst") func rate() {
    var admission = admission(connections: 100, rate: 2, burst: 2)
    let start = 10 * Self.second
    #expect(admission.submitted(1, priority: 0.5, Moment(now: start)) == true)
    #expect(admission.submitted(2, priority: 0.5, Moment(now: start)) == true)
    #expect(admission.submitted(3, priority: 0.5, Moment(now: start)) == false)
    #expect(admission.submitted(4, priority: 0.5, Moment(now: start)) == false)
    let next = start + Self.second / 2
    #expect(admission.obstacle(start) == .rate(next))
    #expect(admission.releaseTime(start) == next)
    #expect(admission.released(Moment(now: next - 1)) == [])
    #expect(admission.released(Moment(now: next)) == [3])
    // The end of a request gives no token.
    #expect(admission.ended(Moment(now: next)) == nil)
    #expect(admission.releaseTime(next) == next + Self.second / 2)
    #expect(admission.released(Moment(now: next + Self.second)) == [4])
    #expect(admission.releaseTime(next) == .max)
    #expect(!admission.isForgettable(next))
  }

  @Test("A request that was not sent does not count for the rate") func returned() {
    var admission = admission(rate: 0.001)
    #expect(admission.submitted(1, priority: 0.5, Moment(now: Self.second)) == true)
    #expect(admission.submitted(2, priority: 0.5, Moment(now: Self.second)) == false)
    #expect(admission.returned(Moment(now: Self.second)) == 2)
  }

  @Test("The limit of the session keeps requests waiting") func room() {
    var admission = admission()
    #expect(admission.submitted(1, priority: 0.5, Moment(room: 0)) == false)
    #expect(admission.submitted(2, priority: 0.7, Moment(room: 3)) == false, "after a waiting request")
    #expect(admission.obstacle(0) == nil)
    #expect(admission.candidate(0)?.ticket == 2)
    #expect(admission.released(Moment(room: 1)) == [2])
    #expect(admission.ended(Moment(room: 0)) == nil)
    #expect(admission.next(Moment(room: 1)) == 1)
    #expect(admission.candidate(0) == nil)
  }

  @Test("The priority of a waiting request can change") func priority() {
    var admission = admission(connections: 1)
    for ticket in UInt64(0)...4 { _ = admission.submitted(ticket, priority: 0.5) }
    #expect(admission.prioritized(3, 1) == true)
    #expect(admission.prioritized(1, 0) == true)
    #expect(admission.prioritized(4, 0.5) == true, "the same priority keeps the position")
    #expect(admission.prioritized(0, 1) == false)
    #expect(admission.prioritized(9, 1) == false)
    #expect(admission.queue.map(\.ticket) == [3, 2, 4, 1])
    #expect((0..<4).map { _ in admission.ended() } == [3, 2, 4, 1])
  }

  @Test("Of two hosts, the higher priority precedes, then the older request") func order() throws {
    var first = admission(connections: 1)
    var second = admission(connections: 1)
    for ticket in UInt64(1)...3 { _ = first.submitted(ticket, priority: 0.5, Moment(room: 0)) }
    _ = second.submitted(4, priority: 0.5, Moment(room: 0))
    let oldest = try #require(first.candidate(0))
    #expect(oldest.precedes(try #require(second.candidate(0))))
    _ = second.prioritized(4, 0.6)
    #expect(!oldest.precedes(try #require(second.candidate(0))))
  }

  @Test("In random sequences no limit is exceeded, and no request is lost", .steps) func walk() {
    var random = SeededGenerator(seed: 11)
    for number in 0..<300 {
      step("walk \(number)")
      let inFlight = Int.random(in: 1...4, using: &random)
      let burst = Int.random(in: 1...3, using: &random)
      var admission = admission(connections: 3, inFlight: inFlight, rate: 10, burst: burst)
      var now = 100 * Self.second
      var (next, running) = (UInt64(0), 0)
      var begun: [UInt64] = []
      var waiting: Set<UInt64> = []
      func begin(_ tickets: [UInt64]) {
        for ticket in tickets { #expect(waiting.remove(ticket) != nil) }
        running += tickets.count
        begun += tickets.map { _ in now }
      }
      for _ in 0..<60 {
        now += UInt64.random(in: 0..<Self.second / 8, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1:
          next += 1
          let isFirst = admission.submitted(
            next, priority: Float.random(in: 0...1, using: &random), Moment(now: now))
          waiting.insert(next)
          if isFirst { begin([next]) }
        case 2 where running > 0:
          running -= 1
          begin(admission.ended(Moment(now: now)).map { [$0] } ?? [])
        case 3:
          if let ticket = waiting.sorted().randomElement(using: &random) {
            #expect(admission.prioritized(ticket, Float.random(in: 0...1, using: &random)) == true)
          }
        case 4 where waiting.count > 3:
          if let ticket = waiting.sorted().randomElement(using: &random) {
            #expect(admission.withdrawn(ticket) == true)
            waiting.remove(ticket)
          }
        default: begin(admission.released(Moment(now: now)))
        }
        #expect(running <= min(3, inFlight))
        #expect(admission.waitingCount == waiting.count)
      }
      for (index, time) in begun.enumerated() where index >= burst {
        // Any burst + 1 requests take at least the interval of the rate.
        #expect(time - begun[index - burst] >= Self.second / 10 - 1)
      }
    }
  }
}

@Suite("Bandwidth meters") struct BandwidthMeterTests {
  private static let second: UInt64 = 1_000_000_000

  @Test("The directions have their own limits") func directions() {
    var meter = BandwidthMeter(.init(download: 1000))
    meter.moved(2000, .upload, at: Self.second)
    #expect(meter.readyTime(.upload) == 0)
    #expect(meter.readyTime(.download) <= Self.second)
    meter.moved(2000, .download, at: Self.second)
    #expect(meter.readyTime(.download) > 2 * Self.second)
  }

  @Test("On average the limit is respected", arguments: [1, 1000, 100_000, 1_000_000_000])
  func average(limit: Int) {
    var meter = BandwidthMeter(.init(upload: limit))
    let start = 10 * Self.second
    var now = start
    var moved = 0
    for _ in 0..<1000 {
      now = max(now, meter.readyTime(.upload))
      meter.moved(BandwidthMeter.largestPiece, .upload, at: now)
      moved += BandwidthMeter.largestPiece
    }
    let seconds = Double(now - start) / 1e9
    // A twentieth of a second and one piece are ahead.
    let most = Double(limit) * (seconds + 0.05) + Double(BandwidthMeter.largestPiece) + 1
    #expect(Double(moved) <= most * 1.001)
    #expect(Double(moved) >= Double(limit) * seconds * 0.999)
  }
}
