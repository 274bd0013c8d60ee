public import Foundation
public import FoundationNetworking
public import HTTPWire

// Handlers of events, each on its queue, one event at a time.
extension WebSocketRequest {
  /// Calls a handler with all events. A serializer turns their messages into values.
  ///
  /// - Parameters:
  ///   - serializer: Makes values of messages. If it throws, the event is `serializerFailed`.
  ///   - queue: The queue of the serializer and the handler. Default: the main queue.
  ///   - handler: Called with each event.
  @preconcurrency
  @discardableResult
  public func streamSerializer<Serializer: WebSocketMessageSerializer>(
    _ serializer: Serializer, on queue: DispatchQueue = .main,
    handler: @escaping @Sendable (_ event: Event<Serializer.Output, Serializer.Failure>) -> Void
  ) -> Self where Serializer.Failure == any Error {
    add(.events { message in Result { try serializer.decode(message) } }, on: queue, handler)
  }

  /// Calls a handler with all events. Their messages are decoded, text and bytes alike.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - queue: The queue of the decoder and the handler. Default: the main queue.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - handler: Called with each event. A message that cannot be decoded is a `serializerFailed`.
  @preconcurrency
  @discardableResult
  public func streamDecodableEvents<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, on queue: DispatchQueue = .main,
    using decoder: any DataDecoder = JSONDecoder(),
    handler: @escaping @Sendable (_ event: Event<Value, any Error>) -> Void
  ) -> Self {
    streamSerializer(DecodableWebSocketMessageDecoder<Value>(decoder: decoder), on: queue, handler: handler)
  }

  /// Calls a handler with the decoded messages. Messages that cannot be decoded are skipped.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - queue: The queue of the decoder and the handler. Default: the main queue.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - handler: Called with each value.
  @preconcurrency
  @discardableResult
  public func streamDecodable<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, on queue: DispatchQueue = .main,
    using decoder: any DataDecoder = JSONDecoder(),
    handler: @escaping @Sendable (_ value: Value) -> Void
  ) -> Self {
    let decoder = DecodableWebSocketMessageDecoder<Value>(decoder: decoder)
    return add(.messages { try? decoder.decode($0) }, on: queue, handler)
  }

  /// Calls a handler with all events.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - handler: Called with each event.
  @preconcurrency
  @discardableResult
  public func streamMessageEvents(
    on queue: DispatchQueue = .main,
    handler: @escaping @Sendable (_ event: Event<URLSessionWebSocketTask.Message, Never>) -> Void
  ) -> Self {
    add(.events { .success($0) }, on: queue, handler)
  }

  /// Calls a handler with the messages.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - handler: Called with each message.
  @preconcurrency
  @discardableResult
  public func streamMessages(
    on queue: DispatchQueue = .main,
    handler: @escaping @Sendable (_ message: URLSessionWebSocketTask.Message) -> Void
  ) -> Self {
    add(.messages { $0 }, on: queue, handler)
  }

  private func add<Element: Sendable>(
    _ reading: WebSocketReading<Element>, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Element) -> Void
  ) -> Self {
    add(WebSocketHandler(self, queue: queue, reading, handler: handler))
    return self
  }
}

extension WebSocketRequest {
  /// An event of the connection, with the means to answer it.
  public struct Event<Success: Sendable, Failure: Error>: Sendable {
    /// The kind of an event.
    public enum Kind: Sendable {
      /// The connection is open, with the subprotocol that the server has chosen.
      case connected(protocol: String?)
      /// The value of a message.
      case receivedMessage(Success)
      /// The serializer could not make a value of a message. The connection stays open.
      case serializerFailed(Failure)
      /// Both sides have sent a Close frame: with the code of `close(sending:reason:)` of ``WebSocketRequest``, or else
      /// with the server's. An empty reason is `nil`.
      case disconnected(closeCode: WebSocketCloseCode, reason: Data?)
      /// The request has ended. The last event.
      case completed(Completion)
    }

    let source: WebSocketEventSource

    /// The kind of the event.
    public let kind: Kind

    /// The value of a message; `nil` for other events.
    public var message: Success? {
      guard case .receivedMessage(let message) = kind else { return nil }
      return message
    }

    /// Closes the connection; see `close(sending:reason:)` of ``WebSocketRequest``. Has no effect on the connection of
    /// a request that was sent again later.
    public func close(sending closeCode: WebSocketCloseCode, reason: Data? = nil) {
      current?.close(sending: closeCode, reason: reason)
    }

    /// Closes the connection with a code of Foundation.
    @_disfavoredOverload
    public func close(sending closeCode: URLSessionWebSocketTask.CloseCode, reason: Data? = nil) {
      current?.close(sending: closeCode, reason: reason)
    }

    /// Cancels the request, without a closing handshake. Events that have not been delivered yet are dropped, except
    /// for the completion. A later run of the request, if it was sent again, continues.
    public func cancel() {
      source.runEnd.delivery.end()
      current?.cancel()
    }

    /// Sends a ping; see ``WebSocketRequest/sendPing(respondingOn:onResponse:)``.
    @preconcurrency
    public func sendPing(
      respondingOn queue: DispatchQueue = .main,
      onResponse: @escaping @Sendable (PingResponse) -> Void
    ) {
      guard let current else { return queue.async { onResponse(.unsent) } }
      current.sendPing(respondingOn: queue, onResponse: onResponse)
    }

    /// The request, as long as it has the connection of this event.
    private var current: WebSocketRequest? { source.runEnd.isReached ? nil : source.request }
  }

  /// The outcome of a request.
  public struct Completion: Sendable {
    /// The last `URLRequest`.
    public let request: URLRequest?
    /// The response to the handshake.
    public let response: HTTPURLResponse?
    /// The metrics of the last attempt.
    public let metrics: URLSessionTaskMetrics?
    /// The error; `nil` after a closing handshake.
    public let error: AFError?

    init(_ outcome: RequestOutcome) {
      request = outcome.request
      response = outcome.exchange?.httpResponse
      metrics = outcome.exchange?.metrics
      error = outcome.error
    }
  }
}

extension WebSocketReading {
  /// Makes a reading of all events, with the messages that `decode` returns.
  static func events<Success: Sendable, Failure: Error>(
    _ decode: @escaping @Sendable (URLSessionWebSocketTask.Message) -> Result<Success, Failure>
  ) -> WebSocketReading<Element> where Element == WebSocketRequest.Event<Success, Failure> {
    WebSocketReading { notice, source in
      let kind: Element.Kind =
        switch notice {
        case .connected(let name): .connected(protocol: name)
        case .message(let message):
          switch decode(message.ofFoundation) {
          case .success(let value): .receivedMessage(value)
          case .failure(let error): .serializerFailed(error)
          }
        case .disconnected(let code, let reason): .disconnected(closeCode: code, reason: reason)
        case .completed(let outcome): .completed(.init(outcome))
        }
      return Element(source: source, kind: kind)
    }
  }

  /// Makes a reading of only the messages. Messages for which `decode` returns `nil` are skipped.
  static func messages(
    _ decode: @escaping @Sendable (URLSessionWebSocketTask.Message) -> Element?
  ) -> WebSocketReading<Element> {
    WebSocketReading { notice, _ in
      guard case .message(let message) = notice else { return nil }
      return decode(message.ofFoundation)
    }
  }
}

/// Makes values of the messages of a WebSocket connection.
///
/// ```swift
/// struct LineCount: WebSocketMessageSerializer {
///   func decode(_ message: URLSessionWebSocketTask.Message) throws -> Int {
///     guard case .string(let text) = message else { return 0 }
///     return text.split(separator: "\n").count
///   }
/// }
/// ```
public protocol WebSocketMessageSerializer<Output, Failure>: Sendable {
  /// The type of the values.
  associatedtype Output: Sendable
  /// The type of the errors.
  associatedtype Failure: Error = any Error

  /// Returns the value of a message. Called on the queue of the handler, for one message at a time.
  func decode(_ message: URLSessionWebSocketTask.Message) throws -> Output
}

extension WebSocketMessageSerializer {
  /// Decodes JSON messages, of either kind.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - decoder: Default: a `JSONDecoder`.
  public static func json<Value: Decodable & Sendable>(
    decoding type: Value.Type, using decoder: JSONDecoder = JSONDecoder()
  ) -> DecodableWebSocketMessageDecoder<Value> where Self == DecodableWebSocketMessageDecoder<Value> {
    DecodableWebSocketMessageDecoder(decoder: decoder)
  }
}

/// Decodes the messages of a WebSocket connection, whether they are text or bytes.
public struct DecodableWebSocketMessageDecoder<Value: Decodable & Sendable>: WebSocketMessageSerializer {
  /// The reason why a message was not decoded.
  public enum Error: Swift.Error {
    /// The decoder has thrown this error.
    case decoding(any Swift.Error)
    /// The message is neither text nor bytes.
    case unknownMessage(description: String)
  }

  /// The decoder of the messages.
  public let decoder: any DataDecoder

  /// Makes a serializer.
  ///
  /// - Parameter decoder: The decoder of the messages.
  public init(decoder: any DataDecoder) { self.decoder = decoder }

  /// Returns the value of a message. Throws ``Error``.
  public func decode(_ message: URLSessionWebSocketTask.Message) throws -> Value {
    let data: Data
    switch message {
    case .data(let bytes): data = bytes
    case .string(let text): data = Data(text.utf8)
    @unknown default: throw Error.unknownMessage(description: String(describing: message))
    }
    do { return try decoder.value(Value.self, from: data) } catch { throw Error.decoding(error) }
  }
}

extension DecodableWebSocketMessageDecoder.Error: NSErrorConvertible {}
