/// The parameters of permessage-deflate that both sides agreed on (RFC 7692 §7.1).
package struct WebSocketDeflate: Sendable, Equatable {
  /// The compression of the messages of one side.
  package struct Direction: Sendable, Equatable {
    /// The base-2 logarithm of the size of the window: 8 to 15.
    package var windowBits = 15
    /// Whether each message is compressed by itself ("no context takeover").
    package var resetsContext = false

    package init(windowBits: Int = 15, resetsContext: Bool = false) {
      self.windowBits = windowBits
      self.resetsContext = resetsContext
    }
  }

  /// Compression by the client.
  package var client: Direction
  /// Compression by the server.
  package var server: Direction

  package init(client: Direction = Direction(), server: Direction = Direction()) {
    self.client = client
    self.server = server
  }

  package func outgoing(of role: WebSocketRole) -> Direction { role == .client ? client : server }
  package func incoming(of role: WebSocketRole) -> Direction { role == .client ? server : client }
}

/// The configuration of permessage-deflate, as a client offers it or a server limits it.
package struct WebSocketDeflateOptions: Sendable, Equatable {
  package var client = WebSocketDeflate.Direction()
  package var server = WebSocketDeflate.Direction()

  package init() {}

  /// The offer of a client, which always allows the server to choose the window of the client.
  package var offer: WebSocketDeflateParameters {
    var offer = WebSocketDeflateParameters()
    offer.serverNoContextTakeover = server.resetsContext
    offer.clientNoContextTakeover = client.resetsContext
    if server.windowBits < 15 { offer.serverMaxWindowBits = max(8, server.windowBits) }
    offer.clientMaxWindowBits = client.windowBits < 15 ? .bits(max(8, client.windowBits)) : .supported
    return offer
  }

  /// Chooses the parameters for an offer, as a server. `nil` declines it: the client cannot limit its window as the
  /// options demand.
  package func response(
    to offer: WebSocketDeflateParameters
  ) -> (parameters: WebSocketDeflateParameters, agreement: WebSocketDeflate)? {
    var response = WebSocketDeflateParameters()
    var agreement = WebSocketDeflate()
    response.serverNoContextTakeover = offer.serverNoContextTakeover || server.resetsContext
    response.clientNoContextTakeover = offer.clientNoContextTakeover || client.resetsContext
    agreement.server.windowBits = min(offer.serverMaxWindowBits ?? 15, max(8, server.windowBits))
    if offer.serverMaxWindowBits != nil || agreement.server.windowBits < 15 {
      response.serverMaxWindowBits = agreement.server.windowBits
    }
    switch offer.clientMaxWindowBits {
    case nil: guard client.windowBits >= 15 else { return nil }
    case .supported: agreement.client.windowBits = min(15, max(8, client.windowBits))
    case .bits(let bits): agreement.client.windowBits = min(bits, max(8, client.windowBits))
    }
    if agreement.client.windowBits < 15 { response.clientMaxWindowBits = .bits(agreement.client.windowBits) }
    agreement.server.resetsContext = response.serverNoContextTakeover
    agreement.client.resetsContext = response.clientNoContextTakeover
    return (response, agreement)
  }
}
