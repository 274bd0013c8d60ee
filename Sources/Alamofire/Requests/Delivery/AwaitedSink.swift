import Foundation

/// The response of a ``DataTask``, which any number of tasks can await any number of times. Serialization whose
/// failure no retrier needs happens where the response is awaited.
///
/// The attempt writes its properties before the latch opens, or the task that claims the response does. All tasks
/// read them after the latch is open.
final class AwaitedSink<Value: Sendable>: DeliveryLatch, ResponseSink, @unchecked Sendable {
  private let serialization: Serialization<Value>
  /// In memory of its own, because each access to a stored optional would look its type up at run time.
  @exclusivity(unchecked) private var made: UnsafeMutablePointer<Value>?

  init(serialization: Serialization<Value>) {
    self.serialization = serialization
  }

  deinit { forget() }

  var runsUserCode: Bool { serialization.runsUserCode }

  func postpone(_ outcome: RequestOutcome) -> Bool {
    self.outcome = outcome
    postponed()
    return true
  }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    self.outcome = outcome
    make()
    // Read before ``prepared()``, whose lock makes the order with a replacement visible to ThreadSanitizer.
    let failure = serialization.isSerialized ? failure : nil
    prepared()
    return failure
  }

  func replaceFailure(with error: AFError) {
    guard isPrepared else { return }
    failure = error
  }

  /// Waits for the response. If the surrounding task is cancelled, `request` is cancelled.
  nonisolated(nonsending) func arrive(cancelling request: Request?) async {
    if await enter(cancelling: request) == .makeIt {
      make()
      open()
    }
  }

  /// The value. Only after ``arrive(cancelling:)``, as the next two.
  func value() throws(AFError) -> Value {
    if let failure { throw failure }
    guard let made else { preconditionFailure("a latch opened before its response was made") }
    return made.pointee
  }

  var result: Result<Value, AFError> {
    do { return .success(try value()) } catch { return .failure(error) }
  }

  func response<Response: SerializedResponse<Value>>() -> Response {
    Response(outcome, serializationDuration: duration, result: result)
  }

  func announce(to request: Request) {
    guard isPrepared else { return }
    if request is DownloadRequest {
      DownloadHandler<Value>.announce(response(), to: request)
    } else {
      DataHandler<Value>.announce(response(), to: request)
    }
  }

  private func make() {
    forget()
    let place = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    do throws(AFError) {
      try serialization.serialize(outcome, into: place, duration: &duration)
      failure = nil
      made = place
    } catch {
      place.deallocate()
      failure = error
    }
  }

  private func forget() {
    made?.deinitialize(count: 1)
    made?.deallocate()
    made = nil
  }
}
