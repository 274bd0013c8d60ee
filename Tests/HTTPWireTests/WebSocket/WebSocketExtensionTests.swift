import HTTPWire
import Testing

@Suite("Extensions of WebSocket") struct WebSocketExtensionTests {
  typealias Parameter = WebSocketExtension.Parameter

  @Test("A list of extensions is read") func list() {
    #expect(WebSocketExtension.list("a") == [WebSocketExtension("a")])
    #expect(
      WebSocketExtension.list(" a;b ; c=1;\td = \"e\\f\" , ,g;h=\"2\",")
        == [
          WebSocketExtension("a", [Parameter("b"), Parameter("c", "1"), Parameter("d", "ef")]),
          WebSocketExtension("g", [Parameter("h", "2")]),
        ])
    #expect(WebSocketExtension("a", [Parameter("b"), Parameter("c", "1")]).text == "a; b; c=1")
  }

  @Test(
    "A malformed list is refused",
    arguments: [
      "", " ", ",", ";", "a;", "a b", "a;b=", "a;=1", "a;b=\"\"", "a;b=\"1", "a;b=\"1\\", "a;b=\"1 2\"",
      "a=1",
      "a;b c", "a\u{0}", "a;b=1;", "é", "a;b=\"é\"",
    ]) func malformed(text: String)
  {
    #expect(WebSocketExtension.list(text) == nil)
  }

  private static func parameters(
    _ text: String, isResponse: Bool
  ) throws -> WebSocketDeflateParameters {
    let list = try #require(WebSocketExtension.list("permessage-deflate" + text))
    return try WebSocketDeflateParameters(#require(list.first), isResponse: isResponse)
  }

  @Test("All parameters of an offer are read and written") func offer() throws {
    let text =
      "; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10; client_max_window_bits=9"
    let offer = try Self.parameters(text, isResponse: false)
    #expect(offer.serverNoContextTakeover && offer.clientNoContextTakeover)
    #expect(offer.serverMaxWindowBits == 10 && offer.clientMaxWindowBits == .bits(9))
    #expect(offer.webSocketExtension.text == "permessage-deflate" + text)
    let hint = try Self.parameters("; client_max_window_bits", isResponse: false)
    #expect(hint.clientMaxWindowBits == .supported)
    #expect(hint.webSocketExtension.text == "permessage-deflate; client_max_window_bits")
  }

  @Test(
    "Invalid parameters are refused",
    arguments: [
      ("; x", .unknownParameter("x")), ("; x=1", .unknownParameter("x")),
      (
        "; server_no_context_takeover; server_no_context_takeover",
        .duplicateParameter("server_no_context_takeover")
      ),
      ("; client_max_window_bits=9; client_max_window_bits", .duplicateParameter("client_max_window_bits")),
      ("; server_no_context_takeover=1", .invalidValue(Parameter("server_no_context_takeover", "1"))),
      ("; client_no_context_takeover=true", .invalidValue(Parameter("client_no_context_takeover", "true"))),
      ("; server_max_window_bits", .invalidValue(Parameter("server_max_window_bits"))),
      ("; server_max_window_bits=7", .invalidValue(Parameter("server_max_window_bits", "7"))),
      ("; server_max_window_bits=16", .invalidValue(Parameter("server_max_window_bits", "16"))),
      ("; server_max_window_bits=08", .invalidValue(Parameter("server_max_window_bits", "08"))),
      ("; client_max_window_bits=+9", .invalidValue(Parameter("client_max_window_bits", "+9"))),
      ("; client_max_window_bits=1e1", .invalidValue(Parameter("client_max_window_bits", "1e1"))),
    ] as [(String, WebSocketDeflateError)]) func invalid(text: String, error: WebSocketDeflateError)
  {
    for isResponse in [false, true] {
      #expect(throws: error) { try Self.parameters(text, isResponse: isResponse) }
    }
    #expect(error.message.contains("RFC 7692"))
  }

  @Test("A response needs a value of client_max_window_bits") func responseWithoutValue() {
    #expect(throws: WebSocketDeflateError.invalidValue(Parameter("client_max_window_bits"))) {
      try Self.parameters("; client_max_window_bits", isResponse: true)
    }
  }

  @Test(
    "A client accepts what was offered, and requests of the server",
    arguments: [
      ("; client_max_window_bits", "", 15, false, 15, false),
      ("; client_max_window_bits", "; client_max_window_bits=8", 8, false, 15, false),
      ("; client_max_window_bits=10", "", 10, false, 15, false),
      ("; client_max_window_bits=10", "; client_max_window_bits=9", 9, false, 15, false),
      ("", "; server_max_window_bits=8; server_no_context_takeover", 15, false, 8, true),
      ("", "; client_no_context_takeover", 15, true, 15, false),
      ("; client_no_context_takeover", "", 15, true, 15, false),
      ("; server_max_window_bits=12", "; server_max_window_bits=12", 15, false, 12, false),
      ("; server_max_window_bits=12", "; server_max_window_bits=9", 15, false, 9, false),
      ("; server_no_context_takeover", "; server_no_context_takeover", 15, false, 15, true),
    ])
  func agreement(
    offer: String, response: String, clientBits: Int, clientResets: Bool, serverBits: Int, serverResets: Bool
  ) throws {
    let agreement = try Self.parameters(offer, isResponse: false)
      .agreement(with: Self.parameters(response, isResponse: true))
    #expect(
      agreement
        == WebSocketDeflate(
          client: .init(windowBits: clientBits, resetsContext: clientResets),
          server: .init(windowBits: serverBits, resetsContext: serverResets)))
    #expect(agreement.outgoing(of: .client) == agreement.incoming(of: .server))
    #expect(agreement.outgoing(of: .server) == agreement.incoming(of: .client))
  }

  @Test(
    "A client refuses a response that does not fit its offer",
    arguments: [
      ("", "; client_max_window_bits=15", .clientWindowNotOffered),
      ("; client_max_window_bits=10", "; client_max_window_bits=11", .largerWindow("client_max_window_bits")),
      ("; server_max_window_bits=10", "; server_max_window_bits=11", .largerWindow("server_max_window_bits")),
      ("; server_max_window_bits=10", "", .parameterNotAccepted("server_max_window_bits")),
      ("; server_no_context_takeover", "", .parameterNotAccepted("server_no_context_takeover")),
    ] as [(String, String, WebSocketDeflateError)])
  func disagreement(offer: String, response: String, error: WebSocketDeflateError) {
    #expect(throws: error) {
      try Self.parameters(offer, isResponse: false)
        .agreement(with: Self.parameters(response, isResponse: true))
    }
    #expect(error.message.contains("RFC 7692"))
  }

  @Test("A client accepts every response of a server to its offer, and both agree")
  func allOptions() throws {
    for clientOptions in Self.allOptions {
      for serverOptions in Self.allOptions {
        let offer = clientOptions.offer
        // The offer as the server reads it.
        let read = try Self.parameters(
          String(offer.webSocketExtension.text.dropFirst("permessage-deflate".count)), isResponse: false)
        #expect(read == offer)
        let (response, agreement) = try #require(serverOptions.response(to: read))
        #expect(try offer.agreement(with: response).server == agreement.server)
        #expect(try offer.agreement(with: response).client == agreement.client)
        #expect(
          agreement.server.windowBits <= min(clientOptions.server.windowBits, serverOptions.server.windowBits)
        )
        #expect(
          agreement.client.windowBits <= min(clientOptions.client.windowBits, serverOptions.client.windowBits)
        )
      }
    }
  }

  private static var allOptions: [WebSocketDeflateOptions] {
    var result: [WebSocketDeflateOptions] = []
    for bits in [(15, 15), (8, 15), (15, 9), (12, 10)] {
      for flags in 0..<4 {
        var options = WebSocketDeflateOptions()
        options.client = .init(windowBits: bits.0, resetsContext: flags & 1 != 0)
        options.server = .init(windowBits: bits.1, resetsContext: flags & 2 != 0)
        result.append(options)
      }
    }
    return result
  }

  @Test("A server declines the extension if it cannot limit the client's window") func declined() {
    var options = WebSocketDeflateOptions()
    options.client.windowBits = 12
    #expect(options.response(to: WebSocketDeflateParameters()) == nil)
    options.client.windowBits = 15
    #expect(options.response(to: WebSocketDeflateParameters())?.parameters == WebSocketDeflateParameters())
  }
}
