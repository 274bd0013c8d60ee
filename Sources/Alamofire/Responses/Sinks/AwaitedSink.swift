import Foundation

/// The response that a ``DataTask`` is awaited for, by any number of tasks and any number of times.
/// Serialization that runs code of a user happens where the response is awaited, when nobody has to
/// know of its failure earlier.
final class AwaitedSink<Value: Sendable>: DeliveryLatch, ResponseSink, @unchecked Sendable {
  private let serialization: Serialization<Value>
  /// Written by the pipeline before the latch lets anybody in, read by those whom it let in.
  private var outcome = RequestOutcome()
  /// Written by the pipeline before the latch lets anybody in, or by the one whom it told to.
  private var made: Serialization<Value>.Product?

  init(serialization: Serialization<Value>) {
    self.serialization = serialization
  }

  var runsUserCode: Bool { serialization.runsUserCode }

  func postpone(_ outcome: RequestOutcome) -> Bool {
    guard serialization.runsUserCode else { return false }
    self.outcome = outcome
    postponed()
    return true
  }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    self.outcome = outcome
    let product = serialization.product(of: outcome)
    made = product
    prepared()
    return product.failure
  }

  func replaceFailure(with error: AFError) {
    made = made?.failing(with: error)
  }

  /// The result, as soon as there is one.
  func result() async -> Result<Value, AFError> {
    await product().result
  }

  /// The response, as soon as there is one.
  func response() async -> AFDataResponse<Value> {
    await product().response(to: outcome)
  }

  private func product() async -> Serialization<Value>.Product {
    if await enter() == .makeIt {
      made = serialization.product(of: outcome)
      open()
    }
    guard let made else { preconditionFailure("a latch opened before its response was made") }
    return made
  }
}
