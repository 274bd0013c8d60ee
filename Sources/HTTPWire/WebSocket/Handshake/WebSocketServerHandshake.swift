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
