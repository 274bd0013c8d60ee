import Foundation
import FoundationNetworking
import HTTPWire

/// How an outcome becomes the response of one handler.
struct Serialization<Value: Sendable>: Sendable {
  /// Whether it runs code of a user, or may take long: decoding, custom serializers, preprocessors.
  let runsUserCode: Bool
  /// `nil` mirrors the outcome without serializing: a request without failure has the value that
  /// ``mirror`` makes of its data.
  private let body: @Sendable (RequestOutcome) throws -> Value
  private let isMeasured: Bool

  /// The value is what came, untouched; it never fails by itself.
  init(mirroring mirror: @escaping @Sendable (Data?) -> Value) {
    runsUserCode = false
    isMeasured = false
    body = { outcome in
      if let error = outcome.error { throw error }
      return mirror(outcome.data)
    }
  }

  /// A serializer of a user.
  init<Serializer: DataResponseSerializerProtocol>(_ serializer: Serializer)
  where Serializer.SerializedObject == Value {
    runsUserCode = true
    isMeasured = true
    body = { outcome in
      try serializer.serialize(
        request: outcome.request, response: outcome.exchange?.httpResponse, data: outcome.data,
        error: outcome.error)
    }
  }

  /// One of the library's serializers, which needs no `HTTPURLResponse`.
  init<Serializer: WireSerializer>(wire serializer: Serializer) where Serializer.Value == Value {
    runsUserCode = serializer.runsUserCode
    isMeasured = true
    body = { outcome in
      if let error = outcome.error { throw error }
      return try serializer.serialize(
        method: outcome.request?.httpMethod, status: outcome.exchange?.head?.status,
        contentType: { outcome.exchange?.head?.block.value(of: "Content-Type") }, data: outcome.data)
    }
  }

  /// The response, and the failure if it is one that serialization brought.
  func response(for outcome: RequestOutcome) -> (response: AFDataResponse<Value>, failure: AFError?) {
    let start = isMeasured ? ContinuousClock.now : nil
    let result: Result<Value, AFError>
    do {
      result = .success(try body(outcome))
    } catch {
      result = .failure(
        error as? AFError ?? .responseSerializationFailed(reason: .customSerializationFailed(error: error)))
    }
    let duration = start.map { (ContinuousClock.now - $0) / Duration.seconds(1) } ?? 0
    let response = AFDataResponse<Value>(
      request: outcome.request, exchange: outcome.exchange, data: outcome.data, serializationDuration: duration,
      result: result)
    guard isMeasured, case .failure(let error) = result, outcome.error == nil else { return (response, nil) }
    return (response, error)
  }
}
