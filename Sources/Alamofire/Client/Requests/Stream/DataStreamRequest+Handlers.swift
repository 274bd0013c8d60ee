public import Foundation
public import FoundationNetworking
import HTTPWire

extension DataStreamRequest {
  /// Adds a handler that gets the bytes as they arrive.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler, which is called for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStream(
    on queue: DispatchQueue = .main, stream: @escaping Handler<Data, Never>
  ) -> Self {
    add(.data, on: queue, isCheap: true, stream)
  }

  /// Adds a handler that gets the values that `serializer` makes of the bytes.
  ///
  /// The serializer runs on the session's serialization queue if there is one, otherwise on a queue of the system.
  ///
  /// - Parameters:
  ///   - serializer: Makes values. Built-in serializers are called with whole characters or documents, custom ones
  ///     with each chunk as received.
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStream<Serializer: DataStreamSerializer>(
    using serializer: Serializer, on queue: DispatchQueue = .main,
    stream: @escaping Handler<Serializer.SerializedObject, AFError>
  ) -> Self {
    add(StreamDecoding(serializer), on: queue, isCheap: false, stream)
  }

  /// Adds a handler that gets UTF-8 text, in chunks that end between characters, at arbitrary boundaries. Invalid
  /// UTF-8 becomes U+FFFD.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStreamString(
    on queue: DispatchQueue = .main, stream: @escaping Handler<String, Never>
  ) -> Self {
    add(.text, on: queue, isCheap: true, stream)
  }

  /// Adds a handler that gets decoded values; see ``DecodableStreamSerializer`` for the format.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - preprocessor: The transformation of each chunk before it is decoded. Default: none.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStreamDecodable<T: Decodable & Sendable>(
    of type: T.Type = T.self, on queue: DispatchQueue = .main, using decoder: any DataDecoder = JSONDecoder(),
    preprocessor: any DataPreprocessor = PassthroughPreprocessor(), stream: @escaping Handler<T, AFError>
  ) -> Self {
    responseStream(
      using: DecodableStreamSerializer<T>(decoder: decoder, dataPreprocessor: preprocessor), on: queue,
      stream: stream)
  }

  /// Adds a handler.
  ///
  /// - Parameter isCheap: Whether values are created on the handler's queue.
  @discardableResult
  func add<Success: Sendable, Failure: Error>(
    _ decoding: StreamDecoding<Success, Failure>, on queue: DispatchQueue, isCheap: Bool,
    _ handler: @escaping Handler<Success, Failure>
  ) -> Self {
    _ = addHandler(decoding, on: queue, isCheap: isCheap, handler)
    return self
  }

  /// Adds a handler, and returns the end of its run.
  func addHandler<Success: Sendable, Failure: Error>(
    _ decoding: StreamDecoding<Success, Failure>, on queue: DispatchQueue, isCheap: Bool,
    _ handler: @escaping Handler<Success, Failure>
  ) -> RunEnd {
    let decodingQueue = isCheap ? nil : core.session.userSerializationQueue ?? .global()
    let handler = StreamEventHandler(self, decoding, on: decodingQueue, handler)
    flow.add(handler, on: queue)
    core.add(handler, for: self)
    return handler.runEnd
  }
}

extension DataStreamRequest {
  /// An event of a stream, and the token that cancels its request.
  public struct Stream<Success: Sendable, Failure: Error>: Sendable {
    /// The event.
    public let event: Event<Success, Failure>
    /// The token that cancels the request.
    public let token: CancellationToken

    /// Cancels the request; see ``DataStreamRequest/CancellationToken/cancel()``.
    public func cancel() { token.cancel() }
  }

  /// The events of a stream: chunks, then the completion.
  public enum Event<Success: Sendable, Failure: Error>: Sendable {
    /// A chunk of the body, or the error of its serializer.
    case stream(Result<Success, Failure>)
    /// The end of the request. The last event, once.
    case complete(Completion)
  }

  /// The outcome of a request.
  public struct Completion: Sendable {
    /// The request that was sent last, if there was one.
    public let request: URLRequest?
    /// The response, if one was received.
    public let response: HTTPURLResponse?
    /// The metrics of the last attempt.
    public let metrics: URLSessionTaskMetrics?
    /// The trailer fields, which the server sent after the body (RFC 9110 §6.5); `nil` if there were none. See
    /// ``Request/responseTrailers``.
    public let trailers: HTTPHeaders?
    /// The error of the request; `nil` if it succeeded.
    public let error: AFError?
  }

  /// A token that cancels the request of the stream it belongs to.
  public struct CancellationToken: Sendable {
    let request: DataStreamRequest
    /// The end of the run to which the handler or loop belongs.
    let runEnd: RunEnd

    /// Cancels the request. The handler or loop with this token gets no further chunks, and the completion with
    /// `AFError.explicitlyCancelled`. Other handlers and loops get the chunks received so far; those that read an event
    /// source get no further events either. Callable on any thread; further calls, and calls after the end, have no
    /// effect.
    public func cancel() {
      if !runEnd.isReached { request.cancel() }
      mute()
    }

    /// Stops the events of the handler or loop with this token, except for the completion.
    func mute() { request.flow.mute(runEnd) }
  }

  /// Returns the outcome of a run, for the last event.
  func completion(at end: RunEnd) -> Completion {
    let outcome = end.outcome ?? core.outcome
    return Completion(
      request: outcome.request, response: outcome.exchange?.httpResponse, metrics: outcome.exchange?.metrics,
      trailers: outcome.exchange?.trailers, error: outcome.error)
  }
}

extension DataStreamRequest.Stream {
  /// The chunk, or why there is none; `nil` for the completion.
  public var result: Result<Success, Failure>? {
    guard case .stream(let result) = event else { return nil }
    return result
  }

  /// The chunk; `nil` for a failure and for the completion.
  public var value: Success? {
    guard case .stream(.success(let value)) = event else { return nil }
    return value
  }

  /// The reason why a serializer could not make a value; `nil` for chunks and for the completion.
  public var error: Failure? {
    guard case .stream(.failure(let error)) = event else { return nil }
    return error
  }

  /// The completion; `nil` for chunks and failures.
  public var completion: DataStreamRequest.Completion? {
    guard case .complete(let completion) = event else { return nil }
    return completion
  }
}
