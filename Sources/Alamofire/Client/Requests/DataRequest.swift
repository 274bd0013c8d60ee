public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A request whose response is collected in memory. A ``Session`` creates it.
///
/// ```swift
/// AF.request("https://example.com/user")
///   .validate()
///   .responseDecodable(of: User.self) { response in print(response.result) }
/// ```
public class DataRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// Evaluates a response: the request, the response, and the data, which is `nil` when there is none.
  public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

  /// The value that makes the `URLRequest`; used again for each attempt.
  public var convertible: any URLRequestConvertible { core.convertible }

  /// The body of the last response, after the end of the attempt; after a failure, the bytes received before it.
  /// `nil` if there were none, or if ``responseChunks(on:onRestart:perform:)`` delivers them.
  public var data: Data? { core.state.withLock { $0.collectedBody } }

  // MARK: Validation

  /// Adds a validator. Validators run in their order after a response, before the retriers and the handlers; the first
  /// failure stops them. Validators are skipped if the transfer failed. Any error other than an `AFError` becomes
  /// `.customValidationFailed`. Never called on the engine's thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    add(.custom(validation))
  }

  /// Accepts only the given status codes; none at all if the sequence is empty.
  @preconcurrency
  @discardableResult
  public func validate<Codes: Sequence & Sendable>(statusCode acceptableStatusCodes: Codes) -> Self
  where Codes.Element == Int {
    if let range = acceptableStatusCodes as? Range<Int> { return add(.statusCodes(range)) }
    return validate { _, response, _ in
      ValidationRules.statusCode(response.statusCode, in: acceptableStatusCodes)
        .map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Accepts the given media types, including wildcards such as `image/*`; an empty body is always accepted. The
  /// closure is evaluated after the response.
  @preconcurrency
  @discardableResult
  public func validate<Types: Sequence & Sendable>(
    contentType acceptableContentTypes: @escaping @Sendable @autoclosure () -> Types
  ) -> Self where Types.Element == String {
    add(
      .contentTypes { type, isBodyEmpty in
        ValidationRules.contentType(type, in: acceptableContentTypes(), isBodyEmpty: isBodyEmpty)
      })
  }

  /// Accepts status codes from 200 to 299, and the media types that the request's `Accept` field names
  /// (all, without one).
  @discardableResult
  public func validate() -> Self {
    add(.automatic)
  }

  private func add(_ validator: Validator) -> Self {
    core.add(validator)
    return self
  }

  // MARK: The head of the response

  /// Calls `handler` on `queue` (default: main) with the response before its body is read. The body is read if the
  /// completion is called with ``Request/ResponseDisposition/allow`` or released without a call. With
  /// ``Request/ResponseDisposition/cancel`` the request is cancelled. The handler is called for each retry, but not
  /// for followed redirects. The last handler set is used.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    on queue: DispatchQueue = .main,
    perform handler:
      @escaping @Sendable (
        _ response: HTTPURLResponse, _ completionHandler: @escaping @Sendable (ResponseDisposition) -> Void
      ) -> Void
  ) -> Self {
    core.setHeadHandler(HeadHandler(queue: queue, handler))
    return self
  }

  /// Calls `handler` on `queue` (default: main) with the response before its body is read. The body is read when the
  /// handler returns, so a queue that does not run holds the response back.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    on queue: DispatchQueue = .main, perform handler: @escaping @Sendable (HTTPURLResponse) -> Void
  ) -> Self {
    onHTTPResponse(on: queue) { response, completionHandler in
      handler(response)
      completionHandler(.allow)
    }
  }
}

extension Request {
  /// The decision about a response, once its head was received.
  public enum ResponseDisposition: Sendable {
    /// The body of the response is read.
    case allow
    /// The request is cancelled.
    case cancel
  }
}

extension HeadHandler {
  init(
    queue: DispatchQueue,
    _ handler:
      @escaping @Sendable (HTTPURLResponse, @escaping @Sendable (Request.ResponseDisposition) -> Void) -> Void
  ) {
    self.init(queue: queue) { response, decide in
      handler(response) { decide($0 == Request.ResponseDisposition.cancel ? HeadDecision.cancel : .allow) }
    }
  }
}

extension DataRequest {
  /// Adds a handler that gets the body without serialization: `nil` for an empty one.
  ///
  /// Handlers are called in the order in which they were added, each on its queue, once all responses are ready. The
  /// first one resumes the request, unless the session or the request disables that. A handler that is added after the
  /// end gets the same outcome.
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
  ///   - encoding: The encoding of the text. Default: the `charset` of the response if it is UTF-8, ISO-8859-1, UTF-16
  ///     or UTF-32; UTF-8 for JSON without a `charset`; otherwise ISO Latin 1.
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

extension DataRequest {
  /// Delivers the body of the response in chunks instead of keeping it in memory. Like a response handler it resumes
  /// the request, so add validators before.
  ///
  /// ```swift
  /// AF.request("https://example.com/log")
  ///   .validate()
  ///   .responseChunks(on: queue) { chunk in print("\(chunk.count) more bytes") }
  ///   .response { response in print(response.error ?? "all of it is there") }
  /// ```
  ///
  /// Chunks are delivered in order, one at a time; their boundaries are arbitrary. If the handler is slow, about a
  /// mebibyte is buffered, then the server has to wait. Response handlers are called after the last chunk. These
  /// handlers, validators, ``data`` and monitors see no data; content types are validated by whether there was a chunk.
  /// An error or ``Request/cancel()`` ends the chunks; earlier ones have been delivered, validated or not.
  ///
  /// - Several handlers each get all chunks from the moment they are added; the slowest one determines the speed.
  /// - If a handler is added before the request is resumed, it gets the whole body in chunks. Added later, it may get
  ///   the bytes so far, or the whole body, as one large chunk. Added after the end, it gets the body if it was
  ///   retained. With ``TransportOptions/makesRequestsAtOnce``, or an observer of transfers, further bytes still arrive
  ///   in chunks.
  /// - Followed redirects and answered challenges have no chunks.
  /// - The body is not stored in the cache. A complete, fresh response in the cache answers the request.
  /// - While a retrier may retry, a body with a status other than 200 to 299 is held back, up to a mebibyte. It arrives
  ///   as one chunk at the end.
  ///
  /// If the request is retried after chunks were delivered, `onRestart` is called before the first chunk of the new
  /// response. Without `onRestart`, no retrier is called and the request fails, because the chunks of two bodies must
  /// not be mixed.
  ///
  /// - Parameters:
  ///   - queue: The queue of the closures. Default: the main queue.
  ///   - onRestart: Called if the chunks so far are void because the body begins again. Default: none.
  ///   - handler: Called with each chunk.
  @preconcurrency
  @discardableResult
  public func responseChunks(
    on queue: DispatchQueue = .main, onRestart: (@Sendable () -> Void)? = nil,
    perform handler: @escaping @Sendable (_ chunk: Data) -> Void
  ) -> Self {
    core.handOutBody(of: self, on: queue, onRestart: onRestart, handler)
    return self
  }
}
