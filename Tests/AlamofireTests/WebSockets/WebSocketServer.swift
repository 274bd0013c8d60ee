import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer

/// An event of a WebSocket request, as tests compare it.
enum SocketEvent: Equatable, Sendable {
  case connected(String?)
  case text(String)
  case data(Data)
  case disconnected(Int, String?)
  case completed(URLError.Code?)
  case cancelled
  case failed(String)
}

extension SocketEvent {
  init(_ event: WebSocketRequest.Event<URLSessionWebSocketTask.Message, Never>) {
    switch event.kind {
    case .connected(let name): self = .connected(name)
    case .receivedMessage(.string(let text)): self = .text(text)
    case .receivedMessage(.data(let data)): self = .data(data)
    case .receivedMessage: self = .failed("unknown message")
    case .disconnected(let code, let reason):
      self = .disconnected(code.rawValue, reason.map { String(decoding: $0, as: UTF8.self) })
    case .completed(let completion):
      switch completion.error {
      case nil: self = .completed(nil)
      case .explicitlyCancelled: self = .cancelled
      case let error?: self = error.transferCode.map { .completed($0) } ?? .failed("\(error)")
      }
    }
  }
}

extension WebSocketRequest {
  /// Records the events of the request.
  func recorded(on queue: DispatchQueue = .global()) -> Recorder<SocketEvent> {
    let events = Recorder<SocketEvent>()
    streamMessageEvents(on: queue) { events.add(SocketEvent($0)) }
    return events
  }

  /// Returns the events until the completion.
  func events() async -> [SocketEvent] {
    var events: [SocketEvent] = []
    for await event in webSocketTask().streamingMessageEvents() { events.append(SocketEvent(event)) }
    return events
  }
}

/// The sessions of the tests, which live as long as the process, because the release of a session ends its requests.
private let sessions = Recorder<Session>()

extension Session {
  /// Makes a session for one test.
  static func forSockets(
    _ change: (inout TransportOptions) -> Void = { _ in }, manager: ServerTrustManager? = nil,
    delegate: SessionDelegate = SessionDelegate(), timeout: TimeInterval = 60
  ) -> Session {
    let session = Session.forStreams(change, manager: manager, delegate: delegate, timeout: timeout)
    sessions.add(session)
    return session
  }

  /// Makes a session over streams that a test serves.
  static func forFakeSockets(
    _ streams: FakeByteStreams, _ options: TransportOptions, _ interceptor: (any RequestInterceptor)?
  ) -> Session {
    let engine = Engine(transport: FakeTransport(), byteStreams: streams)
    let session = Session(
      configuration: .uncached, engine: engine, interceptor: interceptor, transportOptions: options)
    sessions.add(session)
    return session
  }
}

extension HTTPTestServer {
  /// Returns the URL of a path with the scheme `ws` or `wss`.
  func socketURL(_ path: String = "/socket") -> String { "ws" + url(path).dropFirst(4) }

  /// Starts a server whose path `/socket` is an endpoint.
  static func webSocket(
    _ security: Security = .none, _ endpoint: WebSocketEndpoint = WebSocketEndpoint()
  ) throws -> HTTPTestServer {
    try HTTPTestServer(
      security, routes: .standard.adding("/socket") { _, _ in .webSocket(endpoint) })
  }

  static func webSocket(
    _ security: Security = .none, script: @escaping WebSocketEndpoint.Script
  ) throws -> HTTPTestServer {
    try webSocket(security, WebSocketEndpoint(script: script))
  }
}
