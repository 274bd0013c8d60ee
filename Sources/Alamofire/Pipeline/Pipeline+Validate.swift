import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 5: the validators in the order in which they were added; the first failure ends it.
  nonisolated(nonsending) func validate(_ exchange: Exchange) async throws(AFError) {
    if core.isDispositionWanted { await core.dispositionMade() }
    try checkAlive()
    let (validators, request, body) = core.judged()
    guard !validators.isEmpty else { return }
    if !core.isMonitored, validators.allSatisfy({ !$0.runsUserCode }) {
      for validator in validators { try validator.check(request, exchange, body) }
      return
    }
    try await validateOffLoop(validators, request, exchange, body)
  }

  nonisolated(nonsending) private func validateOffLoop(
    _ validators: [Validator], _ request: URLRequest?, _ exchange: Exchange, _ body: JudgedBody
  ) async throws(AFError) {
    let pipeline = self
    let failure = await offLoop { () -> AFError? in
      for validator in validators {
        let failure = validator.failure(request, exchange, body)
        if pipeline.core.isMonitored { pipeline.tellValidated(request, exchange, body.data, failure) }
        if let failure { return failure }
      }
      return nil
    }
    if let failure { throw failure }
  }
}
