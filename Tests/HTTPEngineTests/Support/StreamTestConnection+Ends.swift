import HTTPTestServer

extension StreamTestConnection {
  /// The end of a script that closes the connection without another byte, so that nothing of TLS is sent either.
  struct Cut: Error {}

  /// Ends the socket without the alert of TLS, as an attacker on the network path could.
  func cut() throws -> Never {
    cutOff()
    waitForEnd()
    throw Cut()
  }

  /// Reads what the client still sends, until it closes the connection.
  func waitForEnd() { _ = try? readToEnd() }
}

/// A server that speaks HTTP/2 by a script for each connection.
enum HTTP2Server {
  typealias Script = @Sendable (HTTP2TestConnection, StreamTestConnection) throws -> Void

  static func start(_ options: TLSOptions = TLSOptions(), _ script: @escaping Script) throws
    -> StreamTestServer
  {
    var options = options
    options.applicationProtocols = ["h2"]
    return try StreamTestServer(.tls(.localhost, options)) { try script(HTTP2TestConnection($0), $0) }
  }

  static func startWithoutTLS(_ script: @escaping Script) throws -> StreamTestServer {
    try StreamTestServer { try script(HTTP2TestConnection($0), $0) }
  }
}
