public import Foundation

extension DownloadRequest {
  /// Calls `completionHandler` on `queue` (default: main) with the file as it came, when the request is over.
  @preconcurrency
  @discardableResult
  public func response(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (AFDownloadResponse<URL?>) -> Void
  ) -> Self {
    add(Serialization(picking: { $0.fileURL }), queue, completionHandler)
  }

  /// Calls `completionHandler` with the value that `responseSerializer` makes of the file.
  @preconcurrency
  @discardableResult
  public func response<Serializer: DownloadResponseSerializerProtocol>(
    queue: DispatchQueue = .main, responseSerializer: Serializer,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    add(Serialization(download: responseSerializer), queue, completionHandler)
  }

  /// Calls `completionHandler` with the value that `responseSerializer` makes of the file.
  @preconcurrency
  @discardableResult
  public func response<Serializer: ResponseSerializer>(
    queue: DispatchQueue = .main, responseSerializer: Serializer,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    add(Serialization(download: responseSerializer), queue, completionHandler)
  }

  /// Calls `completionHandler` with the URL of the file.
  @preconcurrency
  @discardableResult
  public func responseURL(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (AFDownloadResponse<URL>) -> Void
  ) -> Self {
    response(queue: queue, responseSerializer: URLResponseSerializer(), completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the bytes of the file; parameters as for
  /// ``DataRequest/responseData(queue:dataPreprocessor:emptyResponseCodes:emptyRequestMethods:completionHandler:)``.
  @preconcurrency
  @discardableResult
  public func responseData(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = DataResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = DataResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DataResponseSerializer.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Data>) -> Void
  ) -> Self {
    response(
      queue: queue,
      responseSerializer: DataResponseSerializer(
        dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the text of the file.
  @preconcurrency
  @discardableResult
  public func responseString(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = StringResponseSerializer.defaultDataPreprocessor,
    encoding: String.Encoding? = nil,
    emptyResponseCodes: Set<Int> = StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = StringResponseSerializer.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDownloadResponse<String>) -> Void
  ) -> Self {
    response(
      queue: queue,
      responseSerializer: StringResponseSerializer(
        dataPreprocessor: dataPreprocessor, encoding: encoding, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the value that the file is decoded as.
  @preconcurrency
  @discardableResult
  public func responseDecodable<Value: Decodable & Sendable>(
    of type: Value.Type = Value.self, queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer<Value>.defaultDataPreprocessor,
    decoder: any DataDecoder = defaultJSONDecoder,
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer<Value>.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer<Value>.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Value>) -> Void
  ) -> Self {
    response(
      queue: queue,
      responseSerializer: DecodableResponseSerializer<Value>(
        dataPreprocessor: dataPreprocessor, decoder: decoder, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), completionHandler: completionHandler)
  }

  func add<Value: Sendable>(
    _ serialization: Serialization<Value>, _ queue: DispatchQueue,
    _ completion: @escaping @Sendable (AFDownloadResponse<Value>) -> Void
  ) -> Self {
    core.add(
      QueueSink<DownloadHandler>(queue: queue, serialization: serialization, completion: completion),
      for: self)
    return self
  }
}
