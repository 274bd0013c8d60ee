public import Foundation
public import FoundationNetworking

extension Request {
  /// Calls `completionHandler` after the end of the request with the data unchanged. For a download, these are its
  /// resume data.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: The handler.
  @discardableResult
  public func response(
    queue: DispatchQueue? = nil,
    completionHandler: @escaping (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Void
  ) -> Self {
    let completion = Boxed(completionHandler)
    completionQueue.add {
      let record = self.record.withLock { $0 }
      (queue ?? .main).async {
        completion.value(self.request, record.response, record.data, record.error)
      }
    }
    return self
  }

  /// Calls a closure with one parameter, a tuple of all four values, when the request is over.
  @_disfavoredOverload
  @discardableResult
  public func response(
    queue: DispatchQueue? = nil,
    completionHandler:
      @escaping ((request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: NSError?)) -> Void
  ) -> Self {
    response(queue: queue) { completionHandler(($0, $1, $2, $3)) }
  }

  /// Calls `completionHandler` after the end of the request with the result of the serializer, which does not run on
  /// the main queue.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - responseSerializer: Makes the value. The request is not retried after its failure.
  ///   - completionHandler: The handler.
  @discardableResult
  public func response<Serializer: ResponseSerializerType>(
    queue: DispatchQueue? = nil, responseSerializer: Serializer,
    completionHandler: @escaping (Response<Serializer.SerializedObject, Serializer.ErrorObject>) -> Void
  ) -> Self {
    add(responseSerializer.serializeResponse, queue, completionHandler)
  }

  private func add<Value, Failure: Error>(
    _ serialize: @escaping (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<Value, Failure>,
    _ queue: DispatchQueue?, _ completion: @escaping (Response<Value, Failure>) -> Void
  ) -> Self {
    let user = Boxed((serialize: serialize, completion: completion))
    completionQueue.add {
      let request = self.request
      let record = self.record.withLock { $0 }
      let result = user.value.serialize(request, record.response, record.data, record.error)
      let response = Boxed(
        Response(
          request: request, response: record.response, data: record.data, result: result,
          timeline: record.timeline))
      (queue ?? .main).async { user.value.completion(response.value) }
    }
    return self
  }

  /// Calls `completionHandler` with the bytes of the body; see ``dataResponseSerializer()``.
  @discardableResult
  public func responseData(
    queue: DispatchQueue? = nil, completionHandler: @escaping (Response<Data, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.dataResponseSerializer(),
      completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the body as text; see ``stringResponseSerializer(encoding:)``.
  @discardableResult
  public func responseString(
    queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
    completionHandler: @escaping (Response<String, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.stringResponseSerializer(encoding: encoding),
      completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the body read as JSON; see ``JSONResponseSerializer(options:)``.
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping (Response<Any, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.JSONResponseSerializer(options: options),
      completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the body read as a property list; see
  /// ``propertyListResponseSerializer(options:)``.
  @discardableResult
  public func responsePropertyList(
    queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
    completionHandler: @escaping (Response<Any, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.propertyListResponseSerializer(options: options),
      completionHandler: completionHandler)
  }
}
