import Foundation
import HTTPWire

extension SessionTrust {
  /// What the evaluators say, asked on a thread of Dispatch's: they may wait for responders or for what a user makes
  /// them wait for, and Swift's pool has no more threads than there are processors.
  func outcome(
    of trust: ServerTrust, forHost host: String
  ) async -> Result<TrustMemory.Verdict, any Error> {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(returning: Result { try self.evaluate(trust, forHost: host) })
      }
    }
  }
}
