import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 5: the validators in the order in which they were added; the first failure ends it.
  nonisolated(nonsending) func validate(_ exchange: Exchange) async throws(AFError) {
    if core.isDispositionWanted { await core.dispositionMade() }
    try checkAlive()
    if try !validatedAtOnce(exchange) { try await validateOffLoop(exchange) }
  }

  /// The same, when nothing has to be waited for. Returns false, and asks nobody, when a validator runs code of a user, or
  /// somebody is told of each.
  func validatedAtOnce(_ exchange: Exchange) throws(AFError) -> Bool {
    let (validators, request, body) = core.judged()
    if validators.isEmpty { return true }
    guard !core.isMonitored, validators.allSatisfy({ !$0.runsUserCode }) else { return false }
    for validator in validators { try validator.check(request, exchange, body) }
    return true
  }

  nonisolated(nonsending) private func validateOffLoop(_ exchange: Exchange) async throws(AFError) {
    let (validators, request, body) = core.judged()
    let pipeline = self
    let failure = await offLoop { () -> AFError? in
      for validator in validators {
        let failure = validator.failure(request, exchange, body)
        if let failure { pipeline.core.fail(failure) }
        if pipeline.core.isMonitored { pipeline.tellValidated(request, exchange, body.data, failure) }
        if let failure { return failure }
      }
      return nil
    }
    if let failure { throw failure }
  }
}
