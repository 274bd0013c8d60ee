/// A measured way of using WebSocket connections.
package enum SocketRow: String, CaseIterable, Codable, Sendable {
  /// Small texts that the server sends back, one after the other.
  case echo = "socket-echo"
  /// Small texts that the server sends back, with 64 of them under way.
  case echoes = "socket-echo-64"
  /// Messages of a megabyte to a server that drops them.
  case send = "socket-send"
  /// Messages of a megabyte from a server.
  case receive = "socket-receive"
  /// One message of 64 MiB to a server that drops it.
  case sendLarge = "socket-send-64mb"
  /// One message of 64 MiB from a server.
  case receiveLarge = "socket-receive-64mb"
  /// Connections that are opened one after the other, carry one text each, and stay open.
  case idle = "socket-idle"

  /// The work of one run.
  package struct Work: Sendable, Equatable {
    /// The number of messages. The connections of ``SocketRow/idle`` have one each.
    package var messages: Int
    /// The bytes of a message.
    package var size: Int
    /// The number of messages under way.
    package var window = 1
    package var connections = 1

    package init(messages: Int, size: Int, window: Int = 1, connections: Int = 1) {
      self.messages = messages
      self.size = size
      self.window = window
      self.connections = connections
    }
  }

  /// The work of a run of about half a second.
  package var work: Work {
    switch self {
    case .echo: Work(messages: 10_000, size: 64)
    case .echoes: Work(messages: 100_000, size: 64, window: 64)
    case .send, .receive: Work(messages: 1000, size: 1_000_000)
    case .sendLarge, .receiveLarge: Work(messages: 1, size: 64 << 20)
    case .idle: Work(messages: 1000, size: 64, connections: 1000)
    }
  }
}
