public import HTTPWire

/// An endpoint that upgrades a connection to the WebSocket protocol (RFC 6455), for ``Reply/webSocket(_:)``.
///
/// ```swift
/// let endpoint = WebSocketEndpoint(subprotocols: ["chat"]) { connection in
///   try connection.send("welcome")
///   try connection.echo()
/// }
/// server.enqueue(.webSocket(endpoint))
/// ```
///
/// A request that is no handshake is refused with status 400 or 426.
public struct WebSocketEndpoint: Sendable {
  /// The code that serves a connection after its handshake. An error that it throws ends the connection.
  public typealias Script = @Sendable (WebSocketTestConnection) throws -> Void

  /// The subprotocols that the endpoint accepts.
  public var subprotocols: [String]
  /// Whether permessage-deflate (RFC 7692) is accepted if the client offers it.
  public var compresses: Bool
  /// Fields that replace those of the response with the same name.
  public var fields: [HTTPHeader]
  /// The largest message that the endpoint receives.
  public var maximumMessageSize: Int
  let script: Script

  /// Makes an endpoint.
  ///
  /// - Parameters:
  ///   - subprotocols: The subprotocols that the endpoint accepts. Default: none.
  ///   - compresses: Whether permessage-deflate is accepted. Default: `false`.
  ///   - fields: Fields that replace those of the response with the same name. Default: none.
  ///   - maximumMessageSize: The largest message that the endpoint receives. Default: 256 MiB.
  ///   - script: Default: sends received messages back until the connection is closed.
  public init(
    subprotocols: [String] = [], compresses: Bool = false, fields: [HTTPHeader] = [],
    maximumMessageSize: Int = 268_435_456, script: @escaping Script = { try $0.echo() }
  ) {
    self.subprotocols = subprotocols
    self.compresses = compresses
    self.fields = fields
    self.maximumMessageSize = maximumMessageSize
    self.script = script
  }
}

extension Reply {
  /// Makes an upgrade to the WebSocket protocol.
  public static func webSocket(_ endpoint: WebSocketEndpoint = WebSocketEndpoint()) -> Reply {
    var reply = Reply(status: 101)
    reply.webSocket = endpoint
    return reply
  }
}
