/// The reason why an opening handshake failed (RFC 6455 §4).
package enum WebSocketHandshakeError: Error, Sendable, Equatable {
  /// The caller offers a subprotocol that is not a token.
  case subprotocolName(String)
  case duplicateSubprotocol(String)
  /// The system does not allow SHA-1.
  case hashUnavailable
  /// The status is not 101. The versions are those of `Sec-WebSocket-Version`, which a 426 names.
  case status(Int, supportedVersions: String?)
  case httpVersion(HTTPVersion)
  case upgrade(String?)
  case connection(String?)
  case missingAccept
  case acceptMismatch
  case repeatedField(String)
  case subprotocolNotOffered(String)
  case malformedExtensions
  case extensionNotOffered(String)
  case deflate(WebSocketDeflateError)

  /// One or two sentences: the failure, and the section of the RFC or a remedy.
  package var message: String {
    switch self {
    case .subprotocolName(let name):
      "\(HeaderFieldRules.quoted(name)) is not the name of a WebSocket subprotocol: letters, digits and "
        + "!#$%&'*+-.^_`|~ are allowed (RFC 6455 §4.1)."
    case .duplicateSubprotocol(let name):
      "The WebSocket subprotocol \(HeaderFieldRules.quoted(name)) is offered twice (RFC 6455 §4.1)."
    case .hashUnavailable:
      "OpenSSL refuses SHA-1, which the WebSocket handshake needs. Check whether it is set to FIPS mode."
    case .status, .httpVersion, .upgrade, .connection: headMessage
    case .missingAccept, .acceptMismatch, .repeatedField, .subprotocolNotOffered, .malformedExtensions,
      .extensionNotOffered, .deflate:
      fieldMessage
    }
  }

  private var headMessage: String {
    switch self {
    case .status(let status, let versions?):
      "The server answered the WebSocket handshake with status \(status) and supports the versions "
        + "\(HeaderFieldRules.quoted(versions)). Only version 13 is supported here (RFC 6455 §4.4)."
    case .status(let status, nil):
      "The server answered the WebSocket handshake with status \(status) instead of 101. "
        + "Check that the URL is that of a WebSocket endpoint."
    case .httpVersion(let version):
      "The server answered the WebSocket handshake with \(version.text) instead of HTTP/1.1 (RFC 6455 §4.1)."
    case .upgrade(let value):
      "The Upgrade field of the WebSocket handshake is \(Self.shown(value)) instead of \"websocket\" "
        + "(RFC 6455 §4.1)."
    case .connection(let value):
      "The Connection field of the WebSocket handshake is \(Self.shown(value)), without \"Upgrade\" "
        + "(RFC 6455 §4.1)."
    default: ""
    }
  }

  private var fieldMessage: String {
    switch self {
    case .missingAccept: "The server sent no Sec-WebSocket-Accept field (RFC 6455 §4.1)."
    case .acceptMismatch:
      "The Sec-WebSocket-Accept field does not match the key of the request. A proxy or cache may have answered "
        + "(RFC 6455 §4.1)."
    case .repeatedField(let name): "The server sent the field \(name) more than once (RFC 6455 §11.3)."
    case .subprotocolNotOffered(let name):
      "The server chose the WebSocket subprotocol \(HeaderFieldRules.quoted(name)), which was not offered "
        + "(RFC 6455 §4.1)."
    case .malformedExtensions: "The Sec-WebSocket-Extensions field is malformed (RFC 6455 §9.1)."
    case .extensionNotOffered(let name):
      "The server uses the WebSocket extension \(HeaderFieldRules.quoted(name)), which was not offered "
        + "(RFC 6455 §4.1)."
    case .deflate(let error): error.message
    default: ""
    }
  }

  private static func shown(_ value: String?) -> String { value.map(HeaderFieldRules.quoted) ?? "missing" }
}
