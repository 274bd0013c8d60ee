import AlamofireV4
import Testing

@Suite("Result") struct ResultTests {
  private enum Mishap: Error, Equatable { case first, second }

  private let good = Result<Int>.success(3)
  private let bad = Result<Int>.failure(Mishap.first)

  @Test("Properties return the case") func properties() {
    #expect(good.isSuccess && !good.isFailure && good.value == 3 && good.error == nil)
    #expect(!bad.isSuccess && bad.isFailure && bad.value == nil && bad.error as? Mishap == .first)
  }

  @Test("Descriptions match the generation") func descriptions() {
    #expect("\(good)" == "SUCCESS" && "\(bad)" == "FAILURE")
    #expect(String(reflecting: good) == "SUCCESS: 3")
    #expect(String(reflecting: bad) == "FAILURE: first")
  }

  @Test("A result is created from a closure that returns or throws") func closure() throws {
    #expect(Result { 4 }.value == 4)
    #expect(Result<Int> { throw Mishap.second }.error as? Mishap == .second)
    #expect(try good.unwrap() == 3)
    #expect(throws: Mishap.first) { try bad.unwrap() }
  }

  @Test("Values are mapped and errors are preserved") func map() {
    #expect(good.map { "\($0)" }.value == "3")
    #expect(bad.map { "\($0)" }.error as? Mishap == .first)
    #expect(good.flatMap { $0 + 1 }.value == 4)
    #expect(good.flatMap { _ -> Int in throw Mishap.second }.error as? Mishap == .second)
    #expect(bad.flatMap { _ -> Int in throw Mishap.second }.error as? Mishap == .first)
  }

  @Test("Errors are mapped and values are preserved") func mapError() {
    #expect(bad.mapError { _ in Mishap.second }.error as? Mishap == .second)
    #expect(good.mapError { _ in Mishap.second }.value == 3)
    #expect(bad.flatMapError { _ in Mishap.second }.error as? Mishap == .second)
    #expect(bad.flatMapError { error -> Mishap in throw CancellationError() }.error is CancellationError)
    #expect(good.flatMapError { _ -> Mishap in throw CancellationError() }.value == 3)
  }

  @Test("Closures are called for their case only") func callbacks() {
    var calls: [String] = []
    good.withValue { calls.append("value \($0)") }.withError { _ in calls.append("never") }
      .ifSuccess { calls.append("success") }.ifFailure { calls.append("never") }
    bad.withValue { _ in calls.append("never") }.withError { calls.append("error \($0)") }
      .ifSuccess { calls.append("never") }.ifFailure { calls.append("failure") }
    #expect(calls == ["value 3", "success", "error first", "failure"])
  }
}
