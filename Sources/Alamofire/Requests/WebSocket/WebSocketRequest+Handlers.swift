public import Foundation
public import FoundationNetworking

// Handlers of events, each on its queue, one event at a time.
extension WebSocketRequest {
  /// Calls a handler with all events, whose messages a serializer makes values of.
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

  /// Calls a handler with all events, whose messages are decoded, text and bytes alike.
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
