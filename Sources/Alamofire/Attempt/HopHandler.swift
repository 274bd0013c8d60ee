import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The code that answers one hop of a request.
enum HopHandler: Sendable {
  /// The session's engine, for `http` and `https`.
  case engine
  /// The engine, for the handshake of a WebSocket connection and the connection itself.
  case webSocket(WebSocketTransport)
  /// The library itself, for `file:` and `data:`.
  case local
  /// A `URLProtocol` class of the caller.
  case userProtocol(ProtocolTransport)

  /// The handler of a scheme that no `URLProtocol` class takes; `nil` if there is none.
  init?(scheme: String) {
    switch scheme {
    case "http", "https": self = .engine
    case "file", "data": self = .local
    default: return nil
    }
  }

  func transport(of session: SessionCore) -> any Transport {
    switch self {
    case .engine: session.transport
    case .webSocket(let transport): transport
    case .local: LocalTransport()
    case .userProtocol(let transport): transport
    }
  }

  /// Whether the engine sends the hop as a request of its own, which a cache or another service may answer.
  var isEngine: Bool {
    switch self {
    case .engine: true
    case .webSocket, .local, .userProtocol: false
    }
  }

  /// Whether the hop goes over the network and is measured.
  var isOverNetwork: Bool {
    switch self {
    case .engine, .webSocket: true
    case .local, .userProtocol: false
    }
  }

  /// The response and the error of a `URLProtocol` class.
  var given: ProtocolTransport.Given? {
    switch self {
    case .engine, .webSocket, .local: nil
    case .userProtocol(let transport): transport.given
    }
  }
}
