public import Foundation
public import FoundationNetworking
public import HTTPWire

/// The events of a ``WebSocketRequest``, for `for await`, and its messages to send.
///
/// ```swift
/// let task = session.webSocketRequest(to: "wss://example.com/chat").webSocketTask()
/// let messages = task.streamingMessages()
/// try await task.send(.string("hello"))
/// for await message in messages { print(message) }
/// ```
///
/// Several streams of one request may be read at the same time. The request starts when the first stream is created, or
/// with ``send(_:)``. A stream has the messages that arrive after its creation, so create it before the first message
/// is sent.
///
/// By default (`.unbounded`) no event is lost, and while the reader of a stream is a mebibyte behind, the server has to
/// wait. Another policy drops events that are not read in time, which can include the completion.
public struct WebSocketTask: Sendable {
  /// An event of a request.
  public typealias Event<Success: Sendable, Failure: Error> = WebSocketRequest.Event<Success, Failure>
  /// A stream of a request's events.
  public typealias EventStreamOf<Success: Sendable, Failure: Error> = StreamOf<
    WebSocketRequest.Event<Success, Failure>
  >

  private let request: WebSocketRequest

  init(_ request: WebSocketRequest) { self.request = request }

  // MARK: Streams

  /// Returns all events.
  ///
  /// - Parameters:
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingMessageEvents(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    bufferingPolicy: StreamOf<Event<URLSessionWebSocketTask.Message, Never>>.BufferingPolicy = .unbounded
  ) -> StreamOf<Event<URLSessionWebSocketTask.Message, Never>> {
    stream(.events { .success($0) }, shouldAutomaticallyCancel, bufferingPolicy)
  }

  /// Returns the messages.
  ///
  /// - Parameters:
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingMessages(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    bufferingPolicy: StreamOf<URLSessionWebSocketTask.Message>.BufferingPolicy = .unbounded
  ) -> StreamOf<URLSessionWebSocketTask.Message> {
    stream(.messages { $0 }, shouldAutomaticallyCancel, bufferingPolicy)
  }

  /// Returns all events with decoded messages, text and bytes alike.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingDecodableEvents<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    using decoder: any DataDecoder = JSONDecoder(),
    bufferingPolicy: StreamOf<Event<Value, any Error>>.BufferingPolicy = .unbounded
  ) -> StreamOf<Event<Value, any Error>> {
    let decoder = DecodableWebSocketMessageDecoder<Value>(decoder: decoder)
    return stream(
      .events { message in Result { try decoder.decode(message) } }, shouldAutomaticallyCancel,
      bufferingPolicy)
  }

  /// Returns the decoded messages. Messages that cannot be decoded are skipped.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingDecodable<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    using decoder: any DataDecoder = JSONDecoder(),
    bufferingPolicy: StreamOf<Value>.BufferingPolicy = .unbounded
  ) -> StreamOf<Value> {
    let decoder = DecodableWebSocketMessageDecoder<Value>(decoder: decoder)
    return stream(.messages { try? decoder.decode($0) }, shouldAutomaticallyCancel, bufferingPolicy)
  }

  // MARK: The connection

  /// Sends a message after all earlier ones. Returns when the system has accepted its bytes. Starts the request, as the
  /// first stream does. If the current task is cancelled, it stops waiting, but the message may still be sent.
  ///
  /// - Throws: `AFError`, if the connection has ended before, or if the current task is cancelled.
  public func send(_ message: URLSessionWebSocketTask.Message) async throws {
    // Without a handler the request would not start, and this wait would not end.
    if request.isInitialized, request.core.resumesAutomatically { request.resume() }
    let error = await SingleCompletion<AFError?>.answer(
      whenForgotten: .explicitlyCancelled, whenCancelled: .explicitlyCancelled
    ) { completion in
      request.send(WebSocketMessage(message), isLimited: false) { completion($0) }
    }
    if let error { throw error }
  }

  /// Closes the connection; see `close(sending:reason:)` of ``WebSocketRequest``.
  public func close(sending closeCode: WebSocketCloseCode, reason: Data? = nil) {
    request.close(sending: closeCode, reason: reason)
  }

  /// Closes the connection with a code of Foundation.
  @_disfavoredOverload
  public func close(sending closeCode: URLSessionWebSocketTask.CloseCode, reason: Data? = nil) {
    request.close(sending: closeCode, reason: reason)
  }

  /// Cancels the request.
  public func cancel() { request.cancel() }
  /// Resumes the request.
  public func resume() { request.resume() }
  /// Suspends the request.
  public func suspend() { request.suspend() }

  private func stream<Element: Sendable>(
    _ reading: WebSocketReading<Element>, _ cancels: Bool, _ policy: StreamOf<Element>.BufferingPolicy
  ) -> StreamOf<Element> {
    let events = WebSocketEvents(request, reading, cancels: cancels)
    guard case .unbounded = policy else { return .limited(events, policy) }
    return StreamOf(pulling: events)
  }
}

extension StreamOf {
  /// Reads all events at once, and buffers as many as the policy allows.
  fileprivate static func limited(_ events: WebSocketEvents<Element>, _ policy: BufferingPolicy) -> StreamOf {
    StreamOf(bufferingPolicy: policy) {
      events.finish()
    } builder: { continuation in
      Task.detached {
        while let element = await events.next() { continuation.yield(element) }
        continuation.finish()
      }
    }
  }
}

extension WebSocketRequest {
  /// Makes the task that has the events of this request as `async` sequences.
  public func webSocketTask() -> WebSocketTask { WebSocketTask(self) }
}
