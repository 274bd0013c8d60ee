public import Foundation

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
