import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 5: the validators in the order in which they were added; the first failure ends it.
  nonisolated(nonsending) func validate(_ exchange: Exchange) async throws(AFError) {
    await core.dispositionMade()
    try checkAlive()
    let (validators, request, data) = core.state.withLock { ($0.validators, $0.request, $0.data) }
    guard !validators.isEmpty else { return }
    if validators.allSatisfy({ !$0.runsUserCode }) {
      for validator in validators { try validator.check(request, exchange, data) }
      return
    }
    let failure = await offLoop { () -> AFError? in
      do throws(AFError) {
        for validator in validators { try validator.check(request, exchange, data) }
        return nil
      } catch {
        return error
      }
    }
    if let failure { throw failure }
  }
}
