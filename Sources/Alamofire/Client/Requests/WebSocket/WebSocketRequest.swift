public import Foundation
public import FoundationNetworking
public import HTTPWire
import Synchronization

/// A request that opens a WebSocket connection (RFC 6455), sends messages, and delivers the server's.
///
/// ```swift
/// let socket = session.webSocketRequest(to: "wss://example.com/chat")
/// socket.streamMessageEvents { event in
///   switch event.kind {
///   case .connected: socket.send(.string("hello"))
///   case .receivedMessage(let message): print(message)
///   case .disconnected(let code, _): print("closed with \(code)")
///   case .completed(let completion): print(completion.error ?? "the end")
///   }
/// }
/// ```
///
/// Each handler receives the events in this order: `connected`, messages, `disconnected`, `completed`. A handler that
/// is added later receives the events from then on, and always the completion. If a retrier opens the connection again,
/// `connected` follows once more.
///
/// Messages that are sent before the connection is open wait for it. While handlers have not processed a mebibyte of
/// messages, the server has to wait. ``Request/cancel()`` drops the messages that no handler has received yet.
///
/// The opening handshake is a GET over HTTP/1.1, with the cookies, credentials, interceptors, proxies and trust
/// evaluation of the session. `timeoutIntervalForRequest` limits the whole response to the handshake, and
/// `timeoutIntervalForResource` the whole connection. A status other than 101 is a `URLError.badServerResponse`, or the
/// error of a validator.
public final class WebSocketRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// The parameters of a connection.
  public struct Configuration: Sendable {
    /// No subprotocol, messages up to a mebibyte, no automatic pings, no compression.
    public static var `default`: Configuration { Configuration() }

    /// Returns the default with a subprotocol.
    public static func `protocol`(_ protocol: String) -> Configuration {
      Configuration(protocol: `protocol`)
    }

    /// Returns the default with another limit of messages.
    public static func maximumMessageSize(_ maximumMessageSize: Int) -> Configuration {
      Configuration(maximumMessageSize: maximumMessageSize)
    }

    /// Returns the default with automatic pings.
    public static func pingInterval(_ pingInterval: TimeInterval) -> Configuration {
      Configuration(pingInterval: pingInterval)
    }

    /// The subprotocols that are offered in `Sec-WebSocket-Protocol`, separated by commas; `nil` for the ones in the
    /// request's field of that name. If one is a secret, add the name of the field to
    /// `TransportOptions.protectedHeaders`; otherwise it is offered to another origin, too, after a redirect.
    public var `protocol`: String?
    /// The largest message that is received, in bytes. A larger one ends the connection with
    /// `URLError.dataLengthExceedsMaximum`. Default: a mebibyte.
    public var maximumMessageSize: Int
    /// The time between automatic pings, in seconds. The first is sent an interval after the connection is open, the
    /// next an interval after each pong. If nothing arrives within an interval after the ping was written, the request
    /// ends with `URLError.timedOut`. So it does if a piece of an earlier message cannot be written for a minute. While
    /// unprocessed messages keep the connection from being read, no pong is expected. Default: `nil`, no pings.
    public var pingInterval: TimeInterval?
    /// The number of bytes of messages that are not sent yet, from which on a further message is refused with
    /// `URLError.dataLengthExceedsMaximum`. A single message may be larger. ``WebSocketTask/send(_:)`` waits instead.
    /// Default: 16 mebibytes.
    public var maximumUnsentSize = 16_777_216
    /// Whether the compression of messages (permessage-deflate, RFC 7692) is offered. Default: `false`. Compression
    /// takes about 300 kB of memory. The size of compressed messages can reveal parts of secrets that they contain
    /// together with text from an attacker.
    public var compressesMessages: Bool

    /// Makes a configuration.
    ///
    /// - Parameters:
    ///   - protocol: The subprotocols that are offered. Default: none.
    ///   - maximumMessageSize: The largest message that is received. Default: a mebibyte.
    ///   - pingInterval: The time between automatic pings. Default: no pings.
    ///   - compressesMessages: Whether compression is offered. Default: `false`.
    public init(
      protocol: String? = nil, maximumMessageSize: Int = 1_048_576, pingInterval: TimeInterval? = nil,
      compressesMessages: Bool = false
    ) {
      self.protocol = `protocol`
      self.maximumMessageSize = maximumMessageSize
      self.pingInterval = pingInterval
      self.compressesMessages = compressesMessages
    }

    /// The time for the server's Close frame; for tests.
    package var closeTimeout = Duration.seconds(10)

    var channelOptions: WebSocketChannelOptions {
      var options = WebSocketChannelOptions()
      options.maximumMessageSize = max(0, maximumMessageSize)
      options.pingInterval = pingInterval.flatMap { $0 > 0 ? Duration.retryDelay($0) : nil }
      options.compresses = compressesMessages
      options.unsentLimit = max(1, maximumUnsentSize)
      options.closeTimeout = closeTimeout
      return options
    }
  }

  /// The value that makes the `URLRequest`; used again for each attempt.
  public var convertible: any URLRequestConvertible { core.convertible }

  /// The parameters of the connection.
  public let configuration: Configuration

  let flow: WebSocketFlow

  init(_ parts: RequestParts, flow: WebSocketFlow, configuration: Configuration) {
    self.flow = flow
    self.configuration = configuration
    super.init(parts)
    flow.serve(self)
  }

  // MARK: Sending

  /// Sends a message after all earlier ones, as soon as the connection is open. If too many bytes are not sent yet, the
  /// request is cancelled with the error, so that no message is lost between others; see
  /// ``Configuration/maximumUnsentSize``.
  ///
  /// If a connection is lost and a retrier opens another one, messages that were being written are lost. The form with
  /// a completion handler reports that.
  ///
  /// - Parameter message: A text or bytes, of any size.
  public func send(_ message: URLSessionWebSocketTask.Message) {
    guard let error = flow.send(WebSocketMessage(message), isLimited: true, nil) else {
      return awaitStart()
    }
    core.cancel(self, because: error)
  }

  /// Sends a message after all earlier ones, as soon as the connection is open.
  ///
  /// - Parameters:
  ///   - message: A text or bytes, of any size.
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: Called once: when the system has accepted the bytes of the message, or with the error if
  ///     the connection has ended before, or if too many bytes are not sent yet; see
  ///     ``Configuration/maximumUnsentSize``. After a retry, later messages are sent although this one was lost.
  @preconcurrency
  public func send(
    _ message: URLSessionWebSocketTask.Message, queue: DispatchQueue = .main,
    completionHandler: @escaping @Sendable (Result<Void, any Error>) -> Void
  ) {
    send(WebSocketMessage(message), isLimited: true) { error in
      queue.async { completionHandler(error.map { .failure($0) } ?? .success(())) }
    }
  }

  func send(
    _ message: WebSocketMessage, isLimited: Bool, _ completion: @escaping @Sendable (AFError?) -> Void
  ) {
    // A message that waits for a connection must not retain the request, which may be released unsent.
    let refusal = flow.send(message, isLimited: isLimited) { [weak core] error in
      completion(error.map { error in core?.error ?? error })
    }
    if let refusal { completion(refusal) } else { awaitStart() }
  }

  /// Lets the end of the session end the request if it was not started, because a message waits for it.
  private func awaitStart() {
    if core.state.withLock({ $0.lifecycle.run == .notStarted }) { core.awaitStart(of: self) }
  }

  // MARK: The end

  /// Closes the connection: sends a Close frame after all earlier messages, and then waits up to ten seconds for the
  /// server's. Messages that arrive before it are delivered, so that no answer is lost (RFC 6455 §1.4). If they are not
  /// processed in that time, the rest is skipped, and the wait begins once more. If a piece of the earlier messages
  /// cannot be written for a minute, the connection is ended. The request is cancelled from now on, and completes
  /// without an error. If it was not resumed yet, it is never sent, and completes with `AFError.explicitlyCancelled`.
  /// ``Request/cancel()`` ends the closing handshake at once.
  ///
  /// - Parameters:
  ///   - closeCode: The code of the frame. A code that must not be sent is left out, together with the reason; see
  ///     `WebSocketCloseCode.canBeSent`.
  ///   - reason: UTF-8, at most 123 bytes are sent. Default: none.
  public func close(sending closeCode: WebSocketCloseCode, reason: Data? = nil) {
    let reason = reason.map { String(decoding: $0, as: UTF8.self) } ?? ""
    core.close(self) { [flow] in flow.close(closeCode, reason: reason) }
  }

  /// Closes the connection with a code of Foundation, which has fewer of them.
  @_disfavoredOverload
  public func close(sending closeCode: URLSessionWebSocketTask.CloseCode, reason: Data? = nil) {
    close(sending: WebSocketCloseCode(rawValue: closeCode.rawValue), reason: reason)
  }

  // MARK: Pings

  /// The answer to a ping.
  public enum PingResponse: Sendable {
    /// The times of a ping and its answer.
    public struct Pong: Sendable {
      /// The time at which the ping was sent.
      public let start: Date
      /// The time at which the answer has arrived.
      public let end: Date
      /// The seconds between both, by a clock that is never set.
      public let latency: TimeInterval
    }

    /// The server has answered.
    case pong(Pong)
    /// The connection has ended before.
    case error(any Error)
    /// No ping was sent, because there is no connection.
    case unsent
  }

  /// Sends a ping (RFC 6455 §5.5.2).
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - onResponse: Called once.
  @preconcurrency
  public func sendPing(
    respondingOn queue: DispatchQueue = .main, onResponse: @escaping @Sendable (PingResponse) -> Void
  ) {
    let core = core
    let isSent = flow.ping { result in
      let response: PingResponse =
        switch result {
        case .success(let pong):
          .pong(.init(start: pong.start, end: pong.end, latency: pong.latency / .seconds(1)))
        case .failure(let failure): .error(core.error ?? AFError(failure, url: ""))
        }
      queue.async { onResponse(response) }
    }
    if !isSent { queue.async { onResponse(.unsent) } }
  }

  func add(_ reader: any WebSocketReader) {
    flow.add(reader)
    core.add(reader, for: self)
  }
}

extension WebSocketMessage {
  init(_ message: URLSessionWebSocketTask.Message) {
    switch message {
    case .string(let text): self = .text(text)
    case .data(let data): self = .binary(data)
    @unknown default: self = .binary(Data())
    }
  }

  /// The message as Foundation's type.
  var ofFoundation: URLSessionWebSocketTask.Message {
    switch self {
    case .text(let text): .string(text)
    case .binary(let data): .data(data)
    }
  }
}

// The response to the handshake.
extension WebSocketRequest {
  /// Checks the response to the handshake. The data is ``data``.
  public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

  /// The body of a response other than 101, at most a mebibyte; `nil` without one.
  public var data: Data? { core.state.withLock { $0.collectedBody } }

  /// Adds a validator of the response to the handshake. Validators run in their order, before `connected` and before
  /// the retriers; the first failure stops them and closes the connection. Any error other than an `AFError` becomes
  /// `.customValidationFailed`. A status other than 101 is an error also if all validators accept it. Never called on
  /// the engine's thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    add(.custom(validation))
  }

  /// Accepts the given status codes; none if the sequence is empty. A status other than 101 is an error in any case.
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

  /// Accepts the status code 101. The error for another one is `.responseValidationFailed` with
  /// `.unacceptableStatusCode`, as for any request, instead of `URLError.badServerResponse`.
  @discardableResult
  public func validate() -> Self { add(.statusCodes(101..<102)) }

  private func add(_ validator: Validator) -> Self {
    core.add(validator)
    return self
  }
}

// How the factories make their requests.
extension Session {
  func webSocket(
    _ convertible: any URLRequestConvertible, _ configuration: WebSocketRequest.Configuration,
    _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?
  ) -> WebSocketRequest {
    let names = configuration.protocol.map { WebSocketClientHandshake.subprotocols(in: $0) } ?? []
    let flow = WebSocketFlow(configuration.channelOptions, subprotocols: names)
    let request = WebSocketRequest(
      core.parts(
        of: convertible, runsUserCode: convertible.convertsByUserCode, kind: WebSocketKind(flow: flow),
        interceptor, shouldAutomaticallyResume),
      flow: flow, configuration: configuration)
    request.core.setUp(request, isEager: requestSetup == .eager)
    return request
  }
}
