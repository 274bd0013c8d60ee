public import Foundation
import FoundationNetworking
public import HTTPWire

/// A request for server-sent events (WHATWG HTML §9.2). With GET, it connects again when a connection ends, until it is
/// cancelled. With POST, the end of the stream is the end of the request (``Configuration/reconnects``).
///
/// - Each connection is an attempt: adapters run for each, and the request carries `Last-Event-ID` after the first
///   event with an ID. Every event with an ID is delivered once, if the server continues after that ID.
/// - If a connection ends or fails because of the network, retriers are asked first. If none of them decides, the
///   request waits for the delay that the server has set (its field `retry`, otherwise ``Configuration/initialDelay``),
///   give or take a tenth. After a failure a random delay is added. Its range doubles with each further failure in a
///   row.
/// - A response with status 204 ends the request without an error. Another status than 200, or another content type
///   than `text/event-stream`, ends it with `AFError.responseValidationFailed`. Then ``data`` is the body of the
///   response, and the error's text has its beginning.
/// - A permanent redirect (301, 308) also holds for the next connections. Secrets of the request stay with its origin.
/// - ``Request/cancel()`` ends the delivery at once: events that no handler has received yet are dropped.
/// - A connection without a byte for `timeoutIntervalForRequest` counts as lost.
/// - ``Request/requests`` and ``Request/allMetrics`` hold only the last connection.
/// - If a handler is slow, about a mebibyte of events is buffered, then the server has to wait.
///
/// ```swift
/// for try await event in AF.eventSourceRequest("https://example.com/prices").events() {
///   print(event.type, event.data)
/// }
/// ```
public final class EventSourceRequest: DataStreamRequest, @unchecked Sendable {
  // Unchecked, as ``DataStreamRequest`` is: what it adds is constant.

  /// The delays and limits of an event source.
  ///
  /// ```swift
  /// var configuration = EventSourceRequest.Configuration()
  /// configuration.maximumFailureCount = 10
  /// ```
  public struct Configuration: Sendable {
    /// The value of `Last-Event-ID` of the first connection. Default: empty, so that the field is not sent.
    public var lastEventID = ""
    /// The delay before a further connection in seconds, until the server sends one. Default: 3.
    public var initialDelay: TimeInterval = 3
    /// The longest delay in seconds. A longer delay set by the server is shortened. Default: 300.
    public var maximumDelay: TimeInterval = 300
    /// The number of connections in a row without an event that the request survives; clean ends count. The end of
    /// the next one ends the request, unless a retrier of the caller asks for another connection. Such connections
    /// count as well. A finished request that is sent again begins to count anew. Default: `nil`, no limit.
    public var maximumFailureCount: Int?
    /// The largest event in bytes. A larger one ends the request. Default: 4 MiB.
    public var maximumEventSize = 4_194_304

    /// Whether the request connects again when a connection ends or fails. If not, the end of the stream ends the
    /// request without an error. Default: `nil`, only with a safe method such as GET, because the server performs each
    /// request.
    public var reconnects: Bool?

    /// Makes the default configuration.
    public init() {}

    var policy: EventStreamReconnection.Policy {
      var policy = EventStreamReconnection.Policy()
      policy.initialDelay = .retryDelay(initialDelay)
      policy.maximumDelay = .retryDelay(maximumDelay)
      return policy
    }

    var limits: EventStreamReader.Limits {
      var limits = EventStreamReader.Limits()
      limits.event = max(1, maximumEventSize)
      // A line of data begins with the name of its field.
      let (line, isTooLarge) = limits.event.addingReportingOverflow(64)
      limits.line = isTooLarge ? .max : line
      return limits
    }
  }

  let source: EventSource

  override var lastInterceptors: [any RequestInterceptor] { [EventSourceInterceptor(source: source)] }

  init(_ parts: RequestParts, flow: StreamFlow, source: EventSource) {
    self.source = source
    super.init(parts, flow: flow, automaticallyCancelOnStreamError: false)
  }

  /// The ID of the last event that arrived, for ``Configuration/lastEventID`` of a later request; empty without one.
  /// Handlers may not have received that event yet. An ID of more than 8,000 bytes or with a control character does
  /// not count, because no server would receive it: the one before is repeated.
  public var lastEventID: String { source.lastEventID }

  /// The body of a response that was refused because it is not an event stream, at most its first 64 KiB; `nil` without
  /// one. The error has its beginning as well; see ``ResponseRefusal``.
  public var data: Data? { source.refusedBody }

  // MARK: Events

  /// Adds a handler that gets the events, then the completion.
  ///
  /// A handler that is added later gets the events that arrive from then on.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - handler: Called with each event. An error that it throws ends the request.
  @preconcurrency
  @discardableResult
  public func responseEvents(
    on queue: DispatchQueue = .main, handler: @escaping Handler<ServerSentEvent, AFError>
  ) -> Self {
    add(Self.eventDecoding, on: queue, isCheap: true, handler)
  }

  /// Adds a handler that gets the data of the events, decoded.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - decoder: Decodes the bytes of ``ServerSentEvent/data``. Default: a `JSONDecoder`.
  ///   - handler: Called with each event. A value that cannot be decoded is delivered as a failure, and the stream
  ///     continues.
  @preconcurrency
  @discardableResult
  public func responseDecodableEvents<Value: Decodable & Sendable>(
    of type: Value.Type = Value.self, on queue: DispatchQueue = .main,
    using decoder: any DataDecoder = JSONDecoder(), handler: @escaping Handler<DecodedEvent<Value>, AFError>
  ) -> Self {
    add(Self.decoding(by: decoder), on: queue, isCheap: false, handler)
  }

  /// An event with decoded data.
  public struct DecodedEvent<Value: Sendable>: Sendable {
    /// See ``ServerSentEvent/type``.
    public let type: String
    /// The decoded ``ServerSentEvent/data``.
    public let value: Value
    /// See ``ServerSentEvent/id``.
    public let id: String
  }
}

extension EventSourceRequest {
  static let eventDecoding = StreamDecoding<ServerSentEvent, AFError>(events: { .success($0) })

  static func decoding<Value: Decodable & Sendable>(
    by decoder: any DataDecoder
  ) -> StreamDecoding<DecodedEvent<Value>, AFError> {
    StreamDecoding(events: { event in
      do {
        let value = try decoder.value(Value.self, from: Data(event.data.utf8))
        return .success(DecodedEvent(type: event.type, value: value, id: event.id))
      } catch {
        return .failure(.responseSerializationFailed(reason: .decodingFailed(error: error)))
      }
    })
  }
}

extension Session {
  /// Makes a request for server-sent events from a URL.
  ///
  /// ```swift
  /// AF.eventSourceRequest("https://example.com/prices").responseEvents { stream in
  ///   if case .stream(.success(let event)) = stream.event { print(event.data) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - convertible: The URL; strings are parsed when the request is created.
  ///   - method: Default: `GET`. With a method that is not safe, the request connects once.
  ///   - headers: Header fields; they take precedence over the session's.
  ///   - configuration: Delays and limits. Default: the values of the standard.
  ///   - interceptor: Adapts each connection and is asked when one ends, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the `URLRequest` of each connection. Default: none.
  public func eventSourceRequest(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, headers: HTTPHeaders? = nil,
    configuration: EventSourceRequest.Configuration = .init(), interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> EventSourceRequest {
    eventSourceRequest(
      RequestDescription(convertible, method, headers, requestModifier), configuration: configuration,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  /// Makes a request for server-sent events from a `URLRequest` or a value that becomes one.
  ///
  /// - Parameters:
  ///   - convertible: Makes the `URLRequest`, again for each connection.
  ///   - configuration: Delays and limits. Default: the values of the standard.
  ///   - interceptor: Adapts each connection and is asked when one ends, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  public func eventSourceRequest(
    _ convertible: any URLRequestConvertible, configuration: EventSourceRequest.Configuration = .init(),
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> EventSourceRequest {
    let source = EventSource(configuration.settings)
    let flow = StreamFlow(executor: core.executor, eventSource: source)
    let request = EventSourceRequest(
      core.parts(
        of: convertible, runsUserCode: convertible.convertsByUserCode,
        kind: StreamKind(flow: flow, eventSource: source), interceptor, shouldAutomaticallyResume),
      flow: flow, source: source)
    for last in request.lastInterceptors { request.core.add(RequestInterests(of: last)) }
    request.core.state.withLock { state in
      state.handlers.add(.custom { _, response, _ in source.validation(response) })
      state.results.history.value.isForgotten = true
    }
    request.core.setUp(request, isEager: requestSetup == .eager)
    return request
  }
}

extension EventSourceRequest.Configuration {
  fileprivate var settings: EventSource.Settings {
    EventSource.Settings(
      lastEventID: lastEventID, policy: policy, limits: limits, reconnects: reconnects,
      maximumFailureCount: maximumFailureCount)
  }
}

/// The last interceptor of an event source. It adds the fields of each connection, and decides about the next one if
/// none of the caller's retriers does.
struct EventSourceInterceptor: RequestInterceptor {
  let source: EventSource

  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    guard urlRequest.isChangeable else { return completion(.success(urlRequest)) }
    var adapted = urlRequest
    adapted.cachePolicy = .reloadIgnoringLocalCacheData
    let fields = source.fields(for: urlRequest)
    if source.hasResetID { adapted.headers.remove(name: "Last-Event-ID") }
    for field in fields { adapted.headers.update(field) }
    completion(.success(adapted))
  }

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    let isClean = Self.isEndOfStream(error)
    guard source.reconnects, isClean || Self.isTemporary(error),
      let delay = source.delay(isClean: isClean, random: .random(in: 0...1))
    else {
      return completion(.doNotRetry)
    }
    completion(.retryWithDelay(delay / .seconds(1)))
  }

  /// Whether the server has ended the stream.
  private static func isEndOfStream(_ error: any Error) -> Bool {
    guard let error = error.asAFError, error.isResponseValidationError else { return false }
    return error.underlyingError is EventStreamEnd
  }

  /// Whether another connection may succeed, because the network failed. A certificate stays as it is.
  private static func isTemporary(_ error: any Error) -> Bool {
    guard let error = error.asAFError, !error.isResponseValidationError,
      let failure = error.underlyingError as? URLError, failure.code != .serverCertificateHasBadDate,
      failure.code != .serverCertificateNotYetValid
    else { return false }
    return RetryPolicy.defaultRetryableURLErrorCodes.contains(failure.code)
  }
}
