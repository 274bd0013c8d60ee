import FoundationEssentials

/// The key of an opening handshake and the answer to it (RFC 6455 §4).
package enum WebSocketKey {
  /// Computes SHA-1; `nil` if the system does not allow it.
  package typealias SHA1 = ([UInt8]) -> [UInt8]?

  private static let identifier = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

  /// Returns the value of `Sec-WebSocket-Accept` for a key.
  package static func accept(_ key: String, sha1: SHA1) -> String? {
    sha1(Array((key + identifier).utf8)).map { Data($0).base64EncodedString() }
  }

  /// Returns the key of 16 random bytes.
  static func text(of nonce: (UInt64, UInt64)) -> String {
    withUnsafeBytes(of: nonce) { Data($0).base64EncodedString() }
  }

  /// Whether a key is the Base64 encoding of 16 bytes.
  static func isValid(_ key: String) -> Bool { Data(base64Encoded: key)?.count == 16 }
}

/// The result of an opening handshake.
package struct WebSocketAgreement: Sendable, Equatable {
  package var subprotocol: String?
  package var deflate: WebSocketDeflate?

  package init(subprotocol: String? = nil, deflate: WebSocketDeflate? = nil) {
    self.subprotocol = subprotocol
    self.deflate = deflate
  }
}

/// One element of `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
package struct WebSocketExtension: Sendable, Equatable {
  package struct Parameter: Sendable, Equatable {
    package var name: String
    /// `nil` if there is none; without the quotation marks.
    package var value: String?

    package init(_ name: String, _ value: String? = nil) {
      self.name = name
      self.value = value
    }

    var text: String { value.map { "\(name)=\($0)" } ?? name }
  }

  package var name: String
  package var parameters: [Parameter] = []

  package init(_ name: String, _ parameters: [Parameter] = []) {
    self.name = name
    self.parameters = parameters
  }

  /// The element in the form that is sent.
  package var text: String { ([name] + parameters.map(\.text)).joined(separator: "; ") }

  /// Reads the value of a field, or the joined values of several fields. Returns `nil` if it is malformed.
  package static func list(_ text: String) -> [WebSocketExtension]? {
    var scanner = ExtensionScanner(bytes: Array(text.utf8))
    var result: [WebSocketExtension] = []
    while !scanner.isAtEnd {
      // A list may have empty elements (RFC 9110 §5.6.1.2).
      if scanner.skip(",") { continue }
      guard let name = scanner.token() else { return nil }
      var element = WebSocketExtension(name)
      while scanner.skip(";") {
        guard let parameter = scanner.token() else { return nil }
        guard scanner.skip("=") else {
          element.parameters.append(Parameter(parameter))
          continue
        }
        guard let value = scanner.value() else { return nil }
        element.parameters.append(Parameter(parameter, value))
      }
      result.append(element)
      guard scanner.isAtEnd || scanner.skip(",") else { return nil }
    }
    return result.isEmpty ? nil : result
  }
}

/// Reads tokens and quoted strings. White space around them is skipped.
private struct ExtensionScanner {
  let bytes: [UInt8]
  private var position = 0

  init(bytes: [UInt8]) {
    self.bytes = bytes
    skipSpace()
  }

  var isAtEnd: Bool { position == bytes.count }

  mutating func skip(_ mark: Unicode.Scalar) -> Bool {
    guard position < bytes.count, bytes[position] == UInt8(ascii: mark) else { return false }
    position += 1
    skipSpace()
    return true
  }

  mutating func token() -> String? {
    let start = position
    while position < bytes.count, HeaderFieldRules.isTokenByte(bytes[position]) { position += 1 }
    guard position > start else { return nil }
    defer { skipSpace() }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// Reads a token, or a quoted string that contains a token (RFC 6455 §9.1).
  mutating func value() -> String? {
    guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return token() }
    position += 1
    var content: [UInt8] = []
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      if bytes[position] == UInt8(ascii: "\\") { position += 1 }
      guard position < bytes.count, HeaderFieldRules.isTokenByte(bytes[position]) else { return nil }
      content.append(bytes[position])
      position += 1
    }
    guard position < bytes.count, !content.isEmpty else { return nil }
    position += 1
    skipSpace()
    return String(decoding: content, as: UTF8.self)
  }

  private mutating func skipSpace() {
    while position < bytes.count, bytes[position] == 0x20 || bytes[position] == 0x09 { position += 1 }
  }
}

/// The reason why an opening handshake failed (RFC 6455 §4).
package enum WebSocketHandshakeError: Error, Sendable, Equatable {
  /// The caller offers a subprotocol that is not a token.
  case subprotocolName(String)
  case duplicateSubprotocol(String)
  /// The system does not allow SHA-1.
  case hashUnavailable
  /// The status is not 101. The versions come from `Sec-WebSocket-Version` of a 426.
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

/// The opening handshake of a server (RFC 6455 §4.2).
package struct WebSocketServerHandshake: Sendable {
  /// The reason why a request is not answered with status 101.
  package enum Refusal: Error, Sendable, Equatable {
    /// The request is not a handshake.
    case notUpgrade
    case malformedKey
    case malformedExtensions
    /// The version is not 13. The response names it.
    case version
    case hashUnavailable

    /// The status of the response.
    package var status: Int {
      switch self {
      case .notUpgrade, .malformedKey, .malformedExtensions: 400
      case .version: 426
      case .hashUnavailable: 500
      }
    }

    /// The fields of the response.
    package var fields: [HTTPHeader] {
      self == .version
        ? [
          HTTPHeader(name: "Upgrade", value: "websocket"), HTTPHeader(name: "Connection", value: "Upgrade"),
          HTTPHeader(name: "Sec-WebSocket-Version", value: "13"),
        ] : []
    }
  }

  private let subprotocols: [String]
  private let deflate: WebSocketDeflateOptions?

  /// Makes the handshake with the features of a server.
  ///
  /// - Parameters:
  ///   - subprotocols: The subprotocols of the server. Of those that it knows, the first one that the client lists is
  ///     chosen; without one the connection has none.
  ///   - deflate: Accepts permessage-deflate, if it is not `nil`.
  package init(subprotocols: [String] = [], deflate: WebSocketDeflateOptions? = nil) {
    self.subprotocols = subprotocols
    self.deflate = deflate
  }

  /// Returns the fields of the response with status 101, and the agreement.
  package func answer(
    method: String, _ block: FieldBlock, sha1: WebSocketKey.SHA1
  ) throws(Refusal) -> (fields: [HTTPHeader], agreement: WebSocketAgreement) {
    let isUpgrade =
      method == "GET"
      && block.elements(of: "Upgrade").contains { FieldName.equal(String($0), "websocket") }
      && block.elements(of: "Connection").contains { FieldName.equal(String($0), "upgrade") }
    guard isUpgrade else { throw .notUpgrade }
    guard block.values(of: "Sec-WebSocket-Version") == ["13"] else { throw .version }
    let keys = block.values(of: "Sec-WebSocket-Key")
    guard keys.count == 1, WebSocketKey.isValid(keys[0]) else { throw .malformedKey }
    guard let accept = WebSocketKey.accept(keys[0], sha1: sha1) else { throw .hashUnavailable }
    var fields = [
      HTTPHeader(name: "Upgrade", value: "websocket"), HTTPHeader(name: "Connection", value: "Upgrade"),
      HTTPHeader(name: "Sec-WebSocket-Accept", value: accept),
    ]
    var agreement = WebSocketAgreement()
    if let name = block.elements(of: "Sec-WebSocket-Protocol").first(where: {
      subprotocols.contains(String($0))
    }) {
      agreement.subprotocol = String(name)
      fields.append(.websocketProtocol(String(name)))
    }
    if let (parameters, deflate) = try negotiate(block) {
      agreement.deflate = deflate
      fields.append(HTTPHeader(name: "Sec-WebSocket-Extensions", value: parameters.webSocketExtension.text))
    }
    return (fields, agreement)
  }

  /// Accepts the first offer of permessage-deflate that can be accepted. Offers with unknown or invalid parameters are
  /// declined (RFC 7692 §7.1).
  private func negotiate(
    _ block: FieldBlock
  ) throws(Refusal) -> (WebSocketDeflateParameters, WebSocketDeflate)? {
    guard let value = block.value(of: "Sec-WebSocket-Extensions"), !value.isEmpty else { return nil }
    guard let extensions = WebSocketExtension.list(value) else { throw .malformedExtensions }
    guard let deflate else { return nil }
    for element in extensions where element.name == WebSocketDeflateParameters.name {
      guard let offer = try? WebSocketDeflateParameters(element, isResponse: false),
        let response = deflate.response(to: offer)
      else { continue }
      return response
    }
    return nil
  }
}
