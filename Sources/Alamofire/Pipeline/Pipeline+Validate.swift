import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 5: the validators in the order in which they were added; the first failure ends it.
  nonisolated(nonsending) func validate(_ exchange: Exchange) async throws(AFError) {
    if core.isDispositionWanted { await core.dispositionMade() }
    try checkAlive()
    let (validators, request, data) = core.state.withLock { ($0.validators, $0.request, $0.data) }
    guard !validators.isEmpty else { return }
    if !core.isMonitored, validators.allSatisfy({ !$0.runsUserCode }) {
      for validator in validators { try validator.check(request, exchange, data) }
      return
    }
    try await validateOffLoop(validators, request, exchange, data)
  }

  nonisolated(nonsending) private func validateOffLoop(
    _ validators: [Validator], _ request: URLRequest?, _ exchange: Exchange, _ data: Data?
  ) async throws(AFError) {
    let pipeline = self
    let failure = await offLoop { () -> AFError? in
      for validator in validators {
        let failure = validator.failure(request, exchange, data)
        if pipeline.core.isMonitored { pipeline.tellValidated(request, exchange, data, failure) }
        if let failure { return failure }
      }
      return nil
    }
    if let failure { throw failure }
  }
}
