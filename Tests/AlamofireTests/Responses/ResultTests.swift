import Alamofire
import Foundation
import Testing

@Suite struct ResultTests {
  struct Failure: Error, Equatable { var number = 0 }

  @Test("A result returns its value or error") func result() {
    let success: Result<Int, Failure> = .success(1)
    let failure: Result<Int, Failure> = .failure(Failure())
    #expect(success.isSuccess && !success.isFailure && success.success == 1 && success.failure == nil)
    #expect(!failure.isSuccess && failure.isFailure && failure.success == nil)
    #expect(failure.failure == Failure())
  }

  @Test("An error has priority over a value") func priority() {
    #expect(Result<Int, Failure>(value: 1, error: nil).success == 1)
    #expect(Result<Int, Failure>(value: 1, error: Failure()).failure == Failure())
  }

  @Test("tryMap returns a thrown error as the failure") func tryMap() {
    let success: Result<Int, Failure> = .success(1)
    #expect(success.tryMap { $0 + 1 }.success == 2)
    #expect(success.tryMap { _ -> Int in throw Failure(number: 2) }.failure as? Failure == Failure(number: 2))
    let failure: Result<Int, Failure> = .failure(Failure())
    #expect(failure.tryMap { $0 + 1 }.failure as? Failure == Failure())
  }

  @Test("tryMapError returns a thrown error as the failure") func tryMapError() {
    let failure: Result<Int, Failure> = .failure(Failure(number: 1))
    #expect(failure.tryMapError { Failure(number: $0.number + 1) }.failure as? Failure == Failure(number: 2))
    #expect(
      failure.tryMapError { _ -> Failure in throw URLError(.badURL) }.failure as? URLError
        == URLError(.badURL))
    let success: Result<Int, Failure> = .success(1)
    #expect(success.tryMapError { _ in Failure() }.success == 1)
  }
}
