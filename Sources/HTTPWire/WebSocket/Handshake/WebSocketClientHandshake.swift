/// The opening handshake of a client (RFC 6455 §4.1).
package struct WebSocketClientHandshake: Sendable {
  /// The value of `Sec-WebSocket-Key`.
  package let key: String
  private let subprotocols: [String]
  private let offer: WebSocketDeflateParameters?

  /// Makes the handshake of one connection. Throws if the name of a subprotocol is no token or comes twice.
  ///
  /// - Parameters:
  ///   - nonce: Random bytes, a new value for each handshake.
  ///   - subprotocols: The names of the accepted subprotocols, the preferred one first.
  ///   - deflate: Offers permessage-deflate, if it is not `nil`.
  package init(
    nonce: (UInt64, UInt64), subprotocols: [String] = [], deflate: WebSocketDeflateOptions? = nil
  ) throws(WebSocketHandshakeError) {
    var names: Set<String> = []
    for name in subprotocols {
      guard HeaderFieldRules.isToken(name) else { throw .subprotocolName(name) }
      guard names.insert(name).inserted else { throw .duplicateSubprotocol(name) }
    }
    key = WebSocketKey.text(of: nonce)
    self.subprotocols = subprotocols
    offer = deflate?.offer
  }

  /// The fields of the request, whose method is GET and whose version is HTTP/1.1.
  package var fields: [HTTPHeader] {
    var fields = [
      HTTPHeader(name: "Upgrade", value: "websocket"),
      HTTPHeader(name: "Connection", value: "Upgrade"),
      HTTPHeader(name: "Sec-WebSocket-Key", value: key),
      HTTPHeader(name: "Sec-WebSocket-Version", value: "13"),
    ]
    if !subprotocols.isEmpty { fields.append(.websocketProtocol(subprotocols.joined(separator: ", "))) }
    if let offer {
      fields.append(HTTPHeader(name: "Sec-WebSocket-Extensions", value: offer.webSocketExtension.text))
    }
    return fields
  }

  /// Verifies the response, behind redirects and challenges.
  package func verify(
    _ head: ResponseHead, sha1: WebSocketKey.SHA1
  ) throws(WebSocketHandshakeError) -> WebSocketAgreement {
    guard head.status == 101 else {
      throw .status(head.status, supportedVersions: head.block.value(of: "Sec-WebSocket-Version"))
    }
    guard head.version == .http1_1 else { throw .httpVersion(head.version) }
    let upgrade = head.block.value(of: "Upgrade")
    guard let upgrade, FieldName.equal(upgrade, "websocket") else { throw .upgrade(upgrade) }
    guard head.block.elements(of: "Connection").contains(where: { FieldName.equal(String($0), "upgrade") })
    else { throw .connection(head.block.value(of: "Connection")) }
    try verifyAccept(head.block, sha1: sha1)
    return WebSocketAgreement(subprotocol: try subprotocol(head.block), deflate: try deflate(head.block))
  }

  private func verifyAccept(
    _ block: FieldBlock, sha1: WebSocketKey.SHA1
  ) throws(WebSocketHandshakeError) {
    guard let expected = WebSocketKey.accept(key, sha1: sha1) else { throw .hashUnavailable }
    let values = block.values(of: "Sec-WebSocket-Accept")
    guard let value = values.first else { throw .missingAccept }
    guard values.count == 1 else { throw .repeatedField("Sec-WebSocket-Accept") }
    guard value == expected else { throw .acceptMismatch }
  }

  private func subprotocol(_ block: FieldBlock) throws(WebSocketHandshakeError) -> String? {
    let values = block.values(of: "Sec-WebSocket-Protocol")
    guard values.count <= 1 else { throw .repeatedField("Sec-WebSocket-Protocol") }
    guard let name = values.first else { return nil }
    guard subprotocols.contains(name) else { throw .subprotocolNotOffered(name) }
    return name
  }

  private func deflate(_ block: FieldBlock) throws(WebSocketHandshakeError) -> WebSocketDeflate? {
    guard let value = block.value(of: "Sec-WebSocket-Extensions"), !value.isEmpty else { return nil }
    guard let extensions = WebSocketExtension.list(value) else { throw .malformedExtensions }
    var agreement: WebSocketDeflate?
    for element in extensions {
      // A second response to the one offer has no offer either.
      guard element.name == WebSocketDeflateParameters.name, let offer, agreement == nil else {
        throw .extensionNotOffered(element.name)
      }
      do throws(WebSocketDeflateError) {
        agreement = try offer.agreement(with: WebSocketDeflateParameters(element, isResponse: true))
      } catch {
        throw .deflate(error)
      }
    }
    return agreement
  }
}
