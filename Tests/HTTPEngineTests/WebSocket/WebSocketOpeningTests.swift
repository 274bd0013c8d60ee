import HTTPEngine
import HTTPSystem
import HTTPWire
import Testing

@Suite("Opening handshake of WebSocket with OpenSSL") struct WebSocketOpeningTests {
  /// Checks the example of RFC 6455 §1.3.
  @Test("The accept value matches the RFC's example") func accept() {
    #expect(
      WebSocketKey.accept("dGhlIHNhbXBsZSBub25jZQ==", sha1: OpenSSLHashes.sha1)
        == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    #expect(OpenSSLHashes.sha1([])?.prefix(4) == [0xDA, 0x39, 0xA3, 0xEE])
  }

  @Test("A client and a server agree on every configuration")
  func agreement() throws {
    for bits in 8...15 {
      var options = WebSocketDeflateOptions()
      options.client = .init(windowBits: bits, resetsContext: bits % 2 == 0)
      options.server = .init(windowBits: 23 - bits, resetsContext: bits % 3 == 0)
      let opening = try WebSocketClientHandshake(
        nonce: (1, UInt64(bits)), subprotocols: ["a", "b"], deflate: options)
      let answer = try WebSocketServerHandshake(subprotocols: ["b"], deflate: WebSocketDeflateOptions())
        .answer(method: "GET", FieldBlock(opening.fields), sha1: OpenSSLHashes.sha1)
      let head = ResponseHead(status: 101, fields: answer.fields)
      let agreement = try opening.verify(head, sha1: OpenSSLHashes.sha1)
      #expect(agreement == answer.agreement && agreement.subprotocol == "b")
      #expect(agreement.deflate?.client == options.client && agreement.deflate?.server == options.server)
    }
  }
}
