public import Foundation

extension DataRequest {
  /// Adds a handler that gets the body without serialization: `nil` for an empty one.
  ///
  /// Handlers are called in the order in which they were added, each on its queue, after all responses are made. The
  /// first one resumes the request, unless the session or the request disables that. A handler that is added after
  /// the end gets the same outcome.
  @preconcurrency
  @discardableResult
  public func response(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (AFDataResponse<Data?>) -> Void
  ) -> Self {
    add(Serialization(mirroring: { $0 }), queue, completionHandler)
  }

  /// Adds a handler with a serializer for data.
  @preconcurrency
  @discardableResult
  public func response<Serializer: DataResponseSerializerProtocol>(
    queue: DispatchQueue = .main, responseSerializer: Serializer,
    completionHandler: @escaping @Sendable (AFDataResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    add(Serialization(responseSerializer), queue, completionHandler)
  }

  /// Adds a handler with a serializer.
  @preconcurrency
  @discardableResult
  public func response<Serializer: ResponseSerializer>(
    queue: DispatchQueue = .main, responseSerializer: Serializer,
    completionHandler: @escaping @Sendable (AFDataResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    add(Serialization(responseSerializer), queue, completionHandler)
  }

  /// Adds a handler that gets the body as data.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - dataPreprocessor: Changes the body first. Default: leaves it as it is.
  ///   - emptyResponseCodes: Status codes that allow an empty body. Default: 204 and 205.
  ///   - emptyRequestMethods: Methods that allow an empty body. Default: HEAD.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func responseData(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = DataResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = DataResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DataResponseSerializer.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDataResponse<Data>) -> Void
  ) -> Self {
    add(.data(dataPreprocessor, emptyResponseCodes, emptyRequestMethods), queue, completionHandler)
  }

  /// Adds a handler that gets the body as text.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - dataPreprocessor: Changes the body first. Default: leaves it as it is.
  ///   - encoding: The encoding of the text. Default: that of the response, otherwise ISO Latin 1.
  ///   - emptyResponseCodes: Status codes that allow an empty body. Default: 204 and 205.
  ///   - emptyRequestMethods: Methods that allow an empty body. Default: HEAD.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func responseString(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = StringResponseSerializer.defaultDataPreprocessor,
    encoding: String.Encoding? = nil,
    emptyResponseCodes: Set<Int> = StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = StringResponseSerializer.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDataResponse<String>) -> Void
  ) -> Self {
    let serializer = StringResponseSerializer(
      dataPreprocessor: dataPreprocessor, encoding: encoding, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
    return add(Serialization(wire: serializer, runsUserCode: true), queue, completionHandler)
  }

  /// Adds a handler that gets the decoded body.
  ///
  /// - Parameters:
  ///   - type: The type of the value; inferred by default.
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - dataPreprocessor: The transformation of the body before it is decoded. Default: none.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - emptyResponseCodes: Status codes that allow an empty body. Default: 204 and 205.
  ///   - emptyRequestMethods: Methods that allow an empty body. Default: HEAD.
  ///   - completionHandler: Called once.
  @preconcurrency
  @discardableResult
  public func responseDecodable<Value: Decodable & Sendable>(
    of type: Value.Type = Value.self, queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer<Value>.defaultDataPreprocessor,
    decoder: any DataDecoder = defaultJSONDecoder,
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer<Value>.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer<Value>.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDataResponse<Value>) -> Void
  ) -> Self {
    let serializer = DecodableResponseSerializer<Value>(
      dataPreprocessor: dataPreprocessor, decoder: decoder, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
    return add(Serialization(wire: serializer, runsUserCode: true), queue, completionHandler)
  }

  func add<Value: Sendable>(
    _ serialization: Serialization<Value>, _ queue: DispatchQueue,
    _ completion: @escaping @Sendable (AFDataResponse<Value>) -> Void
  ) -> Self {
    core.add(
      QueueSink<DataHandler>(queue: queue, serialization: serialization, completion: completion), for: self)
    return self
  }
}
