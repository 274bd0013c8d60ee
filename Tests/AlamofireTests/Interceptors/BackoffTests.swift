import Alamofire
import Foundation
import Testing

@Suite("Delays of retries") struct BackoffTests {
  private func delays(base: UInt = 2, scale: Double = 0.5) -> [TimeInterval] {
    let backoff = Backoff(base: base, scale: scale, isJittered: false)
    return (0..<4).map { backoff.delay(retryCount: $0, random: 0) }
  }

  @Test("Delays grow by the base") func growth() {
    #expect(delays() == [0.5, 1, 2, 4])
    #expect(delays(base: 10, scale: 0.01) == [0.01, 0.1, 1, 10])
  }

  @Test(
    "Delays are finite for any parameters",
    arguments: [0, 1, 63, 64, 1_100, Int.max, -1],
    [0.5, 0, -1, .nan, .infinity, -.infinity, .greatestFiniteMagnitude, Double.leastNonzeroMagnitude])
  func bounds(count: Int, scale: Double) {
    for base in [2, 3, UInt.max] {
      for isJittered in [false, true] {
        for retryAfter in [nil, 0, -1, .nan, .infinity, 1e300] as [TimeInterval?] {
          let backoff = Backoff(base: base, scale: scale, isJittered: isJittered)
          for random in [0, 0.5, 1] {
            let delay = backoff.delay(retryCount: count, retryAfter: retryAfter, random: random)
            #expect((0...Backoff.longest).contains(delay), "\(base) \(retryAfter as Any) gave \(delay)")
          }
        }
      }
    }
  }

  @Test("Invalid parameters yield no delay") func invalidParameters() {
    #expect(delays(scale: 0) == [0, 0, 0, 0])
    #expect(delays(scale: -1) == [0, 0, 0, 0])
    #expect(delays(scale: .nan) == [0, 0, 0, 0])
    #expect(delays(scale: .infinity).allSatisfy { $0 == Backoff.longest })
    #expect(Backoff(base: 2, scale: 0, isJittered: false).delay(retryCount: 5_000, random: 0) == 0)
  }

  @Test("Jitter subtracts a part of the delay") func jitter() {
    let backoff = Backoff(base: 2, scale: 1, isJittered: true)
    #expect(backoff.delay(retryCount: 3, random: 0) == 0)
    #expect(backoff.delay(retryCount: 3, random: 0.25) == 2)
    #expect(backoff.delay(retryCount: 3, random: 1) == 8)
  }

  @Test("Retry-After is the minimum of the delay") func retryAfter() {
    let plain = Backoff(base: 2, scale: 1, isJittered: false)
    #expect(plain.delay(retryCount: 1, retryAfter: 10, random: 0) == 10)
    #expect(plain.delay(retryCount: 4, retryAfter: 10, random: 0) == 16)
    let jittered = Backoff(base: 2, scale: 1, isJittered: true)
    #expect(jittered.delay(retryCount: 1, retryAfter: 10, random: 0) == 10)
    #expect(jittered.delay(retryCount: 1, retryAfter: 10, random: 0.5) == 11)
  }
}
