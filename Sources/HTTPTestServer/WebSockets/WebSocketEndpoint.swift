import COpenSSL
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
/// A request that is not a handshake is refused with status 400 or 426, and the connection is closed.
public struct WebSocketEndpoint: Sendable {
  /// The code that serves a connection after its handshake. An error that it throws ends the connection.
  public typealias Script = @Sendable (WebSocketTestConnection) throws -> Void

  /// The subprotocols that the endpoint accepts.
  public var subprotocols: [String]
  /// Whether permessage-deflate (RFC 7692) is accepted if the client offers it.
  public var compresses: Bool
  /// Fields that replace the response's fields with the same name.
  public var fields: [HTTPHeader]
  /// The largest message that the endpoint receives.
  public var maximumMessageSize: Int
  let script: Script

  /// Makes an endpoint.
  ///
  /// - Parameters:
  ///   - subprotocols: The subprotocols that the endpoint accepts. Default: none.
  ///   - compresses: Whether permessage-deflate is accepted. Default: `false`.
  ///   - fields: Fields that replace the response's fields with the same name. Default: none.
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

extension Conversation {
  /// Performs the opening handshake and the script of the endpoint. Returns how the connection ends.
  func serve(
    _ endpoint: WebSocketEndpoint, _ head: RequestHead, over channel: Channel, input: [UInt8]
  ) throws(Channel.Failure) -> ConnectionEnding {
    let handshake = WebSocketServerHandshake(
      subprotocols: endpoint.subprotocols, deflate: endpoint.compresses ? WebSocketDeflateOptions() : nil)
    let agreement: WebSocketAgreement
    do throws(WebSocketServerHandshake.Refusal) {
      let answer = try handshake.answer(method: head.method, FieldBlock(head.headers), sha1: Self.sha1)
      agreement = answer.agreement
      let kept = answer.fields.filter { field in
        !endpoint.fields.contains { FieldName.equal($0.name, field.name) }
      }
      try? channel.write(ReplyHead.head(status: 101, reason: nil, headers: kept + endpoint.fields))
    } catch {
      try channel.write(Self.head(of: error))
      return .close
    }
    let connection = WebSocketTestConnection(
      channel, agreement, input: input, maximumMessageSize: endpoint.maximumMessageSize)
    do {
      try endpoint.script(connection)
    } catch let failure as Channel.Failure {
      throw failure
    } catch {
      // The error only ends the connection; a script reports its failures itself.
    }
    return connection.ending
  }

  /// Returns the response to a request that is not a handshake.
  private static func head(of refusal: WebSocketServerHandshake.Refusal) -> [UInt8] {
    let options = refusal.fields.filter { FieldName.equal($0.name, "Connection") }.map(\.value) + ["close"]
    let fields =
      refusal.fields.filter { !FieldName.equal($0.name, "Connection") } + [
        HTTPHeader(name: "Connection", value: options.joined(separator: ", ")),
        HTTPHeader(name: "Content-Length", value: "0"),
      ]
    return ReplyHead.head(status: refusal.status, reason: nil, headers: fields)
  }

  private static func sha1(_ bytes: [UInt8]) -> [UInt8]? {
    var hash = [UInt8](repeating: 0, count: 20)
    var length: UInt32 = 0
    guard EVP_Digest(bytes, bytes.count, &hash, &length, EVP_sha1(), nil) == 1 else { return nil }
    return hash
  }
}
