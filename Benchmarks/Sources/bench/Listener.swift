import Scorecard

/// A port of the server.
enum Listener: CaseIterable {
  case http1
  case https1
  case h2
  /// HTTP/1.1 over TLS where no session is resumed.
  case fresh

  init(_ wire: WireProtocol) {
    self =
      switch wire {
      case .http1: .http1
      case .https1: .https1
      case .h2: .h2
      }
  }

  var scheme: String { self == .http1 ? "http" : "https" }
}
