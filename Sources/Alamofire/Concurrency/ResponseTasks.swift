public import Foundation

/// The response of a ``DataRequest``, to be awaited: any number of times, by any number of tasks.
///
/// The request starts when the task is created, whether it is awaited or not.
///
/// ```swift
/// let user = try await AF.request(url).serializingDecodable(User.self).value
/// ```
public struct DataTask<Value: Sendable>: Sendable {
  private let request: DataRequest
  private let sink: AwaitedSink<Value>
  /// The request that is cancelled with the awaiting task; `nil` if it continues.
  private let cancelled: Request?

  init(_ request: DataRequest, serialization: Serialization<Value>, automaticallyCancelling: Bool) {
    self.request = request
    sink = AwaitedSink(serialization: serialization)
    cancelled = automaticallyCancelling ? request : nil
    request.core.add(sink, for: request)
  }

  /// The response, once the request is over. It never throws; its `result` holds the failure.
  public var response: DataResponse<Value, AFError> {
    get async {
      await sink.arrive(cancelling: cancelled)
      return sink.response()
    }
  }

  /// The result, once the request is over.
  public var result: Result<Value, AFError> {
    get async {
      await sink.arrive(cancelling: cancelled)
      return sink.result
    }
  }

  /// The value, once the request is over.
  ///
  /// - Throws: `AFError`.
  public var value: Value {
    get async throws {
      await sink.arrive(cancelling: cancelled)
      return try sink.value()
    }
  }

  /// Cancels the request.
  public func cancel() { request.cancel() }
  /// Resumes the request.
  public func resume() { request.resume() }
  /// Suspends the request.
  public func suspend() { request.suspend() }
}

extension DataRequest {
  /// Makes a task that awaits the response as data. It takes the same parameters as
  /// ``responseData(queue:dataPreprocessor:emptyResponseCodes:emptyRequestMethods:completionHandler:)``.
  ///
  /// The request is cancelled with the task that awaits it, unless `automaticallyCancelling` is `false`.
  public func serializingData(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    dataPreprocessor: any DataPreprocessor = DataResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = DataResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DataResponseSerializer.defaultEmptyRequestMethods
  ) -> DataTask<Data> {
    DataTask(
      self, serialization: .data(dataPreprocessor, emptyResponseCodes, emptyRequestMethods),
      automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Makes a task that awaits the response as text. It takes the same parameters as
  /// ``responseString(queue:dataPreprocessor:encoding:emptyResponseCodes:emptyRequestMethods:completionHandler:)``.
  ///
  /// The request is cancelled with the task that awaits it, unless `automaticallyCancelling` is `false`.
  public func serializingString(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    dataPreprocessor: any DataPreprocessor = StringResponseSerializer.defaultDataPreprocessor,
    encoding: String.Encoding? = nil,
    emptyResponseCodes: Set<Int> = StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = StringResponseSerializer.defaultEmptyRequestMethods
  ) -> DataTask<String> {
    let serializer = StringResponseSerializer(
      dataPreprocessor: dataPreprocessor, encoding: encoding, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
    return DataTask(
      self, serialization: Serialization(wire: serializer, runsUserCode: true),
      automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Makes a task that awaits the decoded response. It is decoded on the thread of the first awaiting task, unless a
  /// retrier needs the failure. The parameters of
  /// ``responseDecodable(of:queue:dataPreprocessor:decoder:emptyResponseCodes:emptyRequestMethods:completionHandler:)``
  /// have the same meaning.
  ///
  /// The request is cancelled with the task that awaits it, unless `automaticallyCancelling` is `false`.
  public func serializingDecodable<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer<Value>.defaultDataPreprocessor,
    decoder: any DataDecoder = defaultJSONDecoder,
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer<Value>.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer<Value>.defaultEmptyRequestMethods
  ) -> DataTask<Value> {
    let serializer = DecodableResponseSerializer<Value>(
      dataPreprocessor: dataPreprocessor, decoder: decoder, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
    return DataTask(
      self, serialization: Serialization(wire: serializer, runsUserCode: true),
      automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Makes a task that awaits the response as `serializer` makes it.
  ///
  /// The request is cancelled with the task that awaits it, unless `automaticallyCancelling` is `false`.
  public func serializingResponse<Serializer: ResponseSerializer>(
    using serializer: Serializer, automaticallyCancelling shouldAutomaticallyCancel: Bool = true
  ) -> DataTask<Serializer.SerializedObject> {
    DataTask(
      self, serialization: Serialization(serializer), automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Makes a task that awaits the response as `serializer`, which is one for data only, returns it.
  ///
  /// The request is cancelled with the task that awaits it, unless `automaticallyCancelling` is `false`.
  public func serializingResponse<Serializer: DataResponseSerializerProtocol>(
    using serializer: Serializer, automaticallyCancelling shouldAutomaticallyCancel: Bool = true
  ) -> DataTask<Serializer.SerializedObject> {
    DataTask(
      self, serialization: Serialization(serializer), automaticallyCancelling: shouldAutomaticallyCancel)
  }
}

/// The result of a request: a value, or an ``AFError``.
public typealias AFResult<Success> = Result<Success, AFError>

extension Result {
  /// Whether there is a value.
  package var isSuccess: Bool {
    guard case .success = self else { return false }
    return true
  }

  /// Whether there is an error.
  package var isFailure: Bool { !isSuccess }

  /// The value, or `nil`.
  package var success: Success? {
    guard case .success(let value) = self else { return nil }
    return value
  }

  /// The error, or `nil`.
  package var failure: Failure? {
    guard case .failure(let error) = self else { return nil }
    return error
  }

  /// Makes a failure if there is an error, otherwise a success.
  package init(value: Success, error: Failure?) {
    if let error {
      self = .failure(error)
    } else {
      self = .success(value)
    }
  }

  /// Returns the transformed value; an error of the closure becomes the failure.
  package func tryMap<NewSuccess>(
    _ transform: (Success) throws -> NewSuccess
  ) -> Result<NewSuccess, any Error> {
    switch self {
    case .success(let value): Result<NewSuccess, any Error> { try transform(value) }
    case .failure(let error): .failure(error)
    }
  }

  /// Returns the transformed error; an error of the closure replaces it.
  package func tryMapError<NewFailure: Error>(
    _ transform: (Failure) throws -> NewFailure
  ) -> Result<Success, any Error> {
    switch self {
    case .success(let value): return .success(value)
    case .failure(let error):
      do {
        return .failure(try transform(error))
      } catch {
        return .failure(error)
      }
    }
  }
}

/// The response of a download, which can be awaited by any number of tasks, any number of times. The request starts
/// even if no task awaits it.
///
/// ```swift
/// let file = try await AF.download("https://httpbin.org/image/png").serializingDownloadedFileURL().value
/// ```
public struct DownloadTask<Value: Sendable>: Sendable {
  private let request: DownloadRequest
  private let sink: AwaitedSink<Value>
  /// The request that is cancelled with the awaiting task; `nil` if it continues.
  private let cancelled: Request?

  init(_ request: DownloadRequest, serialization: Serialization<Value>, automaticallyCancelling: Bool) {
    self.request = request
    sink = AwaitedSink(serialization: serialization)
    cancelled = automaticallyCancelling ? request : nil
    request.core.add(sink, for: request)
  }

  /// The whole response.
  public var response: AFDownloadResponse<Value> {
    get async {
      await sink.arrive(cancelling: cancelled)
      return sink.response()
    }
  }

  /// The value or the error.
  public var result: Result<Value, AFError> {
    get async {
      await sink.arrive(cancelling: cancelled)
      return sink.result
    }
  }

  /// The value; throws the ``AFError``.
  public var value: Value {
    get async throws {
      await sink.arrive(cancelling: cancelled)
      return try sink.value()
    }
  }

  /// Cancels the request, without resume data.
  public func cancel() { request.cancel() }
  /// Starts or continues the request.
  public func resume() { request.resume() }
  /// Stops the request for the time being.
  public func suspend() { request.suspend() }
}

extension DownloadRequest {
  /// Returns the task that awaits the bytes of the file.
  ///
  /// - Parameters:
  ///   - shouldAutomaticallyCancel: Whether the request is cancelled with the task that awaits it. Default:
  ///     `true`.
  ///   - dataPreprocessor: Changes the bytes first. Default: they stay as they are.
  ///   - emptyResponseCodes: The status codes with which there may be no bytes. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods with which there may be none. Default: `HEAD`.
  public func serializingData(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    dataPreprocessor: any DataPreprocessor = DataResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = DataResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DataResponseSerializer.defaultEmptyRequestMethods
  ) -> DownloadTask<Data> {
    serializingDownload(
      using: DataResponseSerializer(
        dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the task that awaits the value that the file is decoded as.
  public func serializingDecodable<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer<Value>.defaultDataPreprocessor,
    decoder: any DataDecoder = defaultJSONDecoder,
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer<Value>.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer<Value>.defaultEmptyRequestMethods
  ) -> DownloadTask<Value> {
    serializingDownload(
      using: DecodableResponseSerializer<Value>(
        dataPreprocessor: dataPreprocessor, decoder: decoder, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the task that awaits the URL of the file.
  public func serializingDownloadedFileURL(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true
  ) -> DownloadTask<URL> {
    serializingDownload(
      using: URLResponseSerializer(), automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the task that awaits the text of the file.
  public func serializingString(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    dataPreprocessor: any DataPreprocessor = StringResponseSerializer.defaultDataPreprocessor,
    encoding: String.Encoding? = nil,
    emptyResponseCodes: Set<Int> = StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = StringResponseSerializer.defaultEmptyRequestMethods
  ) -> DownloadTask<String> {
    serializingDownload(
      using: StringResponseSerializer(
        dataPreprocessor: dataPreprocessor, encoding: encoding, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the task that awaits the value that `serializer` makes of the file.
  public func serializingDownload<Serializer: ResponseSerializer>(
    using serializer: Serializer, automaticallyCancelling shouldAutomaticallyCancel: Bool = true
  ) -> DownloadTask<Serializer.SerializedObject> {
    DownloadTask(
      self, serialization: Serialization(download: serializer),
      automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the task that awaits the value that `serializer` makes of the file.
  public func serializingDownload<Serializer: DownloadResponseSerializerProtocol>(
    using serializer: Serializer, automaticallyCancelling shouldAutomaticallyCancel: Bool = true
  ) -> DownloadTask<Serializer.SerializedObject> {
    DownloadTask(
      self, serialization: Serialization(download: serializer),
      automaticallyCancelling: shouldAutomaticallyCancel)
  }
}

extension SegmentedDownload {
  /// Returns the progress, about ten times a second, until the end. An element that was not read yet is replaced by the
  /// next one.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: the newest one.
  public func progress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .bufferingNewest(1)
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { core.add($0) }
  }

  /// The outcome. The download is cancelled with the task that awaits it.
  public var response: Response {
    get async {
      let response = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          core.addHandler { continuation.resume(returning: $0) }
        }
      } onCancel: {
        core.cancel()
      }
      // The lock makes the order of the two threads visible to ThreadSanitizer, which misses it for a continuation
      // that is resumed before it is awaited.
      core.state.withLock { _ in }
      return response
    }
  }

  /// The URL of the file, or the error. The download is cancelled with the task that awaits it.
  public var result: Result<URL, AFError> {
    get async { await response.result }
  }

  /// The URL of the file; throws the ``AFError``. The download is cancelled with the task that awaits it.
  public var value: URL {
    get async throws { try await response.result.get() }
  }
}
