import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The code that answers one hop of a request.
enum HopHandler: Sendable {
  /// The session's engine, for `http` and `https`.
  case engine
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
    case .local: LocalTransport()
    case .userProtocol(let transport): transport
    }
  }

  /// Whether the hop goes over the network and is measured.
  var isEngine: Bool {
    switch self {
    case .engine: true
    case .local, .userProtocol: false
    }
  }

  /// The response and the error of a `URLProtocol` class.
  var given: ProtocolTransport.Given? {
    switch self {
    case .engine, .local: nil
    case .userProtocol(let transport): transport.given
    }
  }
}
