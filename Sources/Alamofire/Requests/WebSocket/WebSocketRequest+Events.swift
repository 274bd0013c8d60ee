public import Foundation
public import FoundationNetworking
public import HTTPWire

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
      /// with that of the server. An empty reason is `nil`.
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
    /// for the completion. A later run of the request, if it was sent again, goes on.
    public func cancel() {
      source.delivery.end()
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
    WebSocketReading { occurrence, source in
      let kind: Element.Kind =
        switch occurrence {
        case .connected(let name): .connected(protocol: name)
        case .message(let message, _):
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

  /// Makes a reading of the messages alone. Messages for which `decode` returns `nil` are skipped.
  static func messages(
    _ decode: @escaping @Sendable (URLSessionWebSocketTask.Message) -> Element?
  ) -> WebSocketReading<Element> {
    WebSocketReading { occurrence, _ in
      guard case .message(let message, _) = occurrence else { return nil }
      return decode(message.ofFoundation)
    }
  }
}
