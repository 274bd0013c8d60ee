import Foundation
import FoundationNetworking
import HTTPWire

/// The serialization of an outcome into the value of one handler.
struct Serialization<Value: Sendable>: Sendable {
  /// Whether it runs user code or may block: decoding, custom serializers, preprocessors.
  let runsUserCode: Bool
  /// Makes the value. Throws the error of the outcome, or that of a serializer.
  private let makeValue: @Sendable (RequestOutcome) throws -> Value
  /// Whether a serializer makes the value; otherwise it is the data or the file itself.
  let isSerialized: Bool

  /// Returns the data as the value, without a serializer.
  init(mirroring mirror: @escaping @Sendable (Data?) -> Value) {
    runsUserCode = false
    isSerialized = false
    makeValue = { outcome in
      if let error = outcome.error { throw error }
      return mirror(outcome.data)
    }
  }

  /// Makes the value by a serializer of the library or of the caller.
  init<Serializer: DataResponseSerializerProtocol>(_ serializer: Serializer)
  where Serializer.SerializedObject == Value {
    runsUserCode = true
    isSerialized = true
    makeValue = { outcome in
      try serializer.serialize(
        request: outcome.request, response: outcome.exchange?.httpResponse, data: outcome.data,
        error: outcome.error)
    }
  }

  /// Takes the value from the outcome; `pick` must not block.
  init(picking pick: @escaping @Sendable (RequestOutcome) throws -> Value) {
    runsUserCode = false
    isSerialized = false
    makeValue = { outcome in
      if let error = outcome.error { throw error }
      return try pick(outcome)
    }
  }

  /// Makes the value of a file by a serializer of the library or of the caller, which may block.
  init<Serializer: DownloadResponseSerializerProtocol>(download serializer: Serializer)
  where Serializer.SerializedObject == Value {
    runsUserCode = true
    isSerialized = true
    makeValue = { outcome in
      try serializer.serializeDownload(
        request: outcome.request, response: outcome.exchange?.httpResponse, fileURL: outcome.fileURL,
        error: outcome.error)
    }
  }

  /// Makes the value by a built-in serializer, which needs no `HTTPURLResponse`.
  ///
  /// - Parameter runsUserCode: False if the serializer neither blocks nor calls user code.
  init<Serializer: WireSerializer>(wire serializer: Serializer, runsUserCode: Bool)
  where Serializer.SerializedObject == Value {
    self.runsUserCode = runsUserCode
    isSerialized = true
    makeValue = { outcome in
      if let error = outcome.error { throw error }
      return try serializer.serialize(
        method: outcome.request?.httpMethod, status: outcome.exchange?.head?.status,
        textEncodingName: { outcome.exchange?.textEncodingName }, data: outcome.data)
    }
  }

  /// Makes the serialization of JSON without a type.
  init(untyped serializer: UntypedJSONSerializer) where Value == UntypedJSON {
    runsUserCode = true
    isSerialized = true
    makeValue = { outcome in
      if let error = outcome.error { throw error }
      let value = try serializer.serialize(
        method: outcome.request?.httpMethod, status: outcome.exchange?.head?.status,
        textEncodingName: { nil }, data: outcome.data)
      return UntypedJSON(value: value)
    }
  }

  /// Makes the serialization of JSON without a type, from the file of a download.
  init(untypedDownload serializer: UntypedJSONSerializer) where Value == UntypedJSON {
    runsUserCode = true
    isSerialized = true
    makeValue = { outcome in
      let value = try serializer.serializeDownload(
        request: outcome.request, response: outcome.exchange?.httpResponse, fileURL: outcome.fileURL,
        error: outcome.error)
      return UntypedJSON(value: value)
    }
  }

  /// Makes the value in `place`, and takes the time.
  func serialize(
    _ outcome: RequestOutcome, into place: UnsafeMutablePointer<Value>, duration: inout TimeInterval
  ) throws(AFError) {
    // Built-in serialization is too short to measure; reading the clock would cost more.
    let start = runsUserCode ? DispatchTime.now().uptimeNanoseconds : nil
    defer { duration = start.map { Double(DispatchTime.now().uptimeNanoseconds - $0) / 1e9 } ?? 0 }
    do {
      place.initialize(to: try makeValue(outcome))
    } catch {
      throw error as? AFError
        ?? .responseSerializationFailed(reason: .customSerializationFailed(error: error))
    }
  }

  /// Makes the whole response.
  func response<Response: SerializedResponse<Value>>(to outcome: RequestOutcome) -> Response {
    var duration: TimeInterval = 0
    let result = withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) {
      place -> Result<Value, AFError> in
      guard let base = place.baseAddress else { preconditionFailure("room for one value has an address") }
      do throws(AFError) {
        try serialize(outcome, into: base, duration: &duration)
        return .success(base.move())
      } catch {
        return .failure(error)
      }
    }
    return Response(outcome, serializationDuration: duration, result: result)
  }
}

extension Serialization where Value == Data {
  /// Returns the serialization of the body as data. The one with the default arguments, which nearly every request
  /// uses, is made once.
  static func data(_ preprocessor: any DataPreprocessor, _ codes: Set<Int>, _ methods: Set<HTTPMethod>)
    -> Self
  {
    if preprocessor.isPassthrough, codes == DataResponseSerializer.defaultEmptyResponseCodes,
      methods == DataResponseSerializer.defaultEmptyRequestMethods
    {
      return plainData
    }
    let serializer = DataResponseSerializer(
      dataPreprocessor: preprocessor, emptyResponseCodes: codes, emptyRequestMethods: methods)
    return Serialization(wire: serializer, runsUserCode: !preprocessor.isPassthrough)
  }

  private static let plainData = Serialization(wire: DataResponseSerializer(), runsUserCode: false)
}

extension ResponseHead {
  /// The `charset` of the content type.
  var charset: String? {
    block.value(of: "Content-Type").flatMap { MediaType.charset(ofContentType: $0) }
  }
}

/// The result of `JSONSerialization`. Unchecked: the tree is not changed, and belongs to one handler.
struct UntypedJSON: @unchecked Sendable {
  let value: Any
}

/// The response of a data request or of a download, for handlers and awaiting tasks.
protocol SerializedResponse<Success> {
  associatedtype Success

  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>)

  var result: Result<Success, AFError> { get }
  /// Returns a copy with another error.
  func failing(with error: AFError) -> Self
}

extension DataResponse: SerializedResponse where Failure == AFError {
  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>) {
    self.init(
      request: outcome.request, exchange: outcome.exchange, data: outcome.data,
      serializationDuration: serializationDuration, result: result)
  }
}

extension DownloadResponse: SerializedResponse where Failure == AFError {
  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>) {
    self.init(
      request: outcome.request, exchange: outcome.exchange, fileURL: outcome.fileURL,
      resumeData: outcome.resumeData, serializationDuration: serializationDuration, result: result)
  }

  func failing(with error: AFError) -> DownloadResponse {
    DownloadResponse(
      request: request, response: response, fileURL: fileURL, resumeData: resumeData, metrics: metrics,
      serializationDuration: serializationDuration, result: .failure(error))
  }
}
