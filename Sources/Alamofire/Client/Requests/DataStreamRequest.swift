public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A request whose response is delivered in chunks and not retained.
///
/// Each handler gets every chunk in order, then ``Event/complete(_:)`` once. If a handler is slow, about a mebibyte
/// is buffered, then the server has to wait. Without a handler the body is discarded. A handler that is added during
/// the body gets the rest; added after the end, only the completion. A retry delivers the new response from its
/// beginning.
///
/// ```swift
/// AF.streamRequest("https://httpbin.org/stream/100")
///   .validate()
///   .responseStreamDecodable(of: Item.self) { stream in
///     switch stream.event {
///     case .stream(.success(let item)): print(item)
///     case .stream(.failure(let error)): print("not an item: \(error)")
///     case .complete(let completion): print(completion.error ?? "the end")
///     }
///   }
/// ```
public class DataStreamRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// Called with each event of a stream. An error that it throws ends the request: an ``AFError`` unchanged, another
  /// one as `.customSerializationFailed`. The handler then gets only its completion, whose errors are ignored.
  public typealias Handler<Success: Sendable, Failure: Error> =
    @Sendable (_ stream: Stream<Success, Failure>) throws -> Void

  /// Checks a response.
  public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse) -> ValidationResult

  /// The value that makes the `URLRequest`; used again for each attempt.
  public var convertible: any URLRequestConvertible { core.convertible }

  /// Whether an error of a serializer cancels the request. Default: `false`, the stream continues.
  public let automaticallyCancelOnStreamError: Bool

  package let flow: StreamFlow

  init(_ parts: RequestParts, flow: StreamFlow, automaticallyCancelOnStreamError: Bool) {
    self.flow = flow
    self.automaticallyCancelOnStreamError = automaticallyCancelOnStreamError
    super.init(parts)
  }

  // MARK: Validation

  /// Adds a validator. Validators run in their order after the whole response, before the retriers; a failure is the
  /// error of the completion. The chunks are delivered in any case. Never called on the engine's thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    add(.custom { request, response, _ in validation(request, response) })
  }

  /// Accepts the given status codes; none if the sequence is empty.
  @preconcurrency
  @discardableResult
  public func validate<Codes: Sequence & Sendable>(statusCode acceptableStatusCodes: Codes) -> Self
  where Codes.Element == Int {
    if let range = acceptableStatusCodes as? Range<Int> { return add(.statusCodes(range)) }
    return validate { _, response in
      ValidationRules.statusCode(response.statusCode, in: acceptableStatusCodes)
        .map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Accepts the given media types, including wildcards such as `image/*`, also for an empty body. The closure is
  /// evaluated after the response.
  @preconcurrency
  @discardableResult
  public func validate<Types: Sequence & Sendable>(
    contentType acceptableContentTypes: @escaping @Sendable @autoclosure () -> Types
  ) -> Self where Types.Element == String {
    validate { _, response in
      ValidationRules.contentType(
        response.value(forHTTPHeaderField: "Content-Type"), in: acceptableContentTypes(), isBodyEmpty: false
      ).map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Accepts status codes from 200 to 299, and the media types of the request's `Accept` field; all without one.
  @discardableResult
  public func validate() -> Self {
    validate(statusCode: 200..<300).validate { request, response in
      let acceptable = ValidationRules.acceptableContentTypes(accept: request?.headers["Accept"])
      return ValidationRules.contentType(
        response.value(forHTTPHeaderField: "Content-Type"), in: acceptable, isBodyEmpty: false
      ).map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  private func add(_ validator: Validator) -> Self {
    core.add(validator)
    return self
  }

  // MARK: The head of the response

  /// Calls `handler` on `queue` (default: main) with the response before its body is read, as the method of
  /// ``DataRequest`` does. With ``Request/ResponseDisposition/cancel`` no chunk is delivered.
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

/// A handler of a stream request.
final class StreamEventHandler<Success: Sendable, Failure: Error>: StreamHandler, EventSink {
  typealias Outcome = Result<Success, Failure>

  private struct State {
    /// `nil` while entries are decoded.
    var decoding: StreamDecoding<Success, Failure>?
    /// Retains the request for the last event, because its other owners may have released it.
    var request: DataStreamRequest?
  }

  let runEnd: RunEnd
  let decodingQueue: DispatchQueue?
  /// Weak, because the request holds this object.
  private weak let request: DataStreamRequest?
  private let handler: DataStreamRequest.Handler<Success, Failure>
  /// The state of the decoding for the handler, for its queues. Values are decoded outside the lock.
  private let state: Mutex<State>

  init(
    _ request: DataStreamRequest, _ decoding: StreamDecoding<Success, Failure>,
    on decodingQueue: DispatchQueue?,
    _ handler: @escaping DataStreamRequest.Handler<Success, Failure>
  ) {
    self.request = request
    self.decodingQueue = decodingQueue
    self.handler = handler
    runEnd = RunEnd(request.flow.delivery)
    state = Mutex(State(decoding: decoding))
  }

  // MARK: Events

  func calls(with entries: [StreamEntry]) -> @Sendable () -> Void {
    let values = runEnd.isMuted ? [] : values(of: entries)
    return { [self] in handOut(values) }
  }

  /// Decodes entries. The decoder is taken out of the state first, because the caller's code must not run under a lock.
  private func values(of entries: [StreamEntry]) -> [Outcome] {
    guard var decoding = state.withLock({ $0.decoding.take() }) else { return [] }
    let values = decoding.values(of: entries)
    state.withLock { $0.decoding = decoding }
    return values
  }

  private func handOut(_ values: [Outcome]) {
    guard !values.isEmpty, let request = state.withLock({ $0.request }) ?? request else { return }
    let token = DataStreamRequest.CancellationToken(request: request, runEnd: runEnd)
    for value in values {
      guard !runEnd.isMuted else { break }
      request.notifyParsed(value)
      if case .failure = value, request.automaticallyCancelOnStreamError { token.cancel() }
      do {
        try handler(.init(event: .stream(value), token: token))
      } catch {
        stop(request, because: error)
      }
    }
  }

  private func stop(_ request: DataStreamRequest, because error: any Error) {
    if !runEnd.isReached {
      request.core.cancel(
        request,
        because: error.asAFError(
          or: .responseSerializationFailed(reason: .customSerializationFailed(error: error))))
    }
    request.flow.mute(runEnd)
  }

  // MARK: The end

  func deliver() {
    guard let request else { return }
    state.withLock { $0.request = request }
    runEnd.reach()
    request.flow.fanout.leave(runEnd, .left(self))
  }

  func complete() {
    guard let request = state.withLock({ $0.request.take() }) else { return }
    let token = DataStreamRequest.CancellationToken(request: request, runEnd: runEnd)
    // The request has already ended, so an error of the handler has no effect.
    try? handler(.init(event: .complete(request.completion(at: runEnd)), token: token))
  }
}

extension DataStreamRequest {
  /// Notifies the monitors of a value that a handler or a loop is about to get. Bytes that were passed on as they
  /// arrived were not parsed.
  func notifyParsed<Success: Sendable, Failure: Error>(_ value: Result<Success, Failure>) {
    guard core.notifiesMonitors, !(value is Result<Data, Never>) else { return }
    let result = value.mapError { error in
      error.asAFError(or: .responseSerializationFailed(reason: .customSerializationFailed(error: error)))
    }
    notifyMonitors { $0.request(self, didParseStream: result) }
  }
}
