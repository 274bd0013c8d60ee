import Foundation
import HTTPWire
import Testing

@Suite("Opening handshake of WebSocket") struct WebSocketHandshakeTests {
  /// Knows the one hash of the example of RFC 6455 §1.3.
  private static func sha1(_ bytes: [UInt8]) -> [UInt8]? {
    guard
      String(decoding: bytes, as: UTF8.self) == "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    else { return [UInt8](repeating: 0, count: 20) }
    return [
      0xB3, 0x7A, 0x4F, 0x2C, 0xC0, 0x62, 0x4F, 0x16, 0x90, 0xF6, 0x46, 0x06, 0xCF, 0x38, 0x59, 0x45, 0xB2,
      0xBE, 0xC4, 0xEA,
    ]
  }

  /// "the sample nonce".
  private static let nonce: (UInt64, UInt64) = {
    let bytes = Array("the sample nonce".utf8)
    return bytes.withUnsafeBytes {
      ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
  }()

  private static func handshake(
    _ subprotocols: [String] = [], deflate: WebSocketDeflateOptions? = nil
  ) throws -> WebSocketClientHandshake {
    try WebSocketClientHandshake(nonce: nonce, subprotocols: subprotocols, deflate: deflate)
  }

  private static func head(
    _ changes: [String: String] = [:], without missing: String = "", status: Int = 101,
    version: HTTPVersion = .http1_1,
    more: [HTTPHeader] = []
  ) -> ResponseHead {
    var headers = HTTPHeaders([
      HTTPHeader(name: "Upgrade", value: "websocket"), HTTPHeader(name: "Connection", value: "Upgrade"),
      HTTPHeader(name: "Sec-WebSocket-Accept", value: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    ])
    for (name, value) in changes { headers[name] = value }
    headers.remove(name: missing)
    return ResponseHead(status: status, version: version, fields: Array(headers) + more)
  }

  @Test("The fields of the request match the RFC's example") func requestFields() throws {
    let handshake = try Self.handshake(["chat", "superchat"], deflate: WebSocketDeflateOptions())
    #expect(
      handshake.fields == [
        HTTPHeader(name: "Upgrade", value: "websocket"), HTTPHeader(name: "Connection", value: "Upgrade"),
        HTTPHeader(name: "Sec-WebSocket-Key", value: "dGhlIHNhbXBsZSBub25jZQ=="),
        HTTPHeader(name: "Sec-WebSocket-Version", value: "13"),
        HTTPHeader(name: "Sec-WebSocket-Protocol", value: "chat, superchat"),
        HTTPHeader(name: "Sec-WebSocket-Extensions", value: "permessage-deflate; client_max_window_bits"),
      ])
    #expect(try Self.handshake().fields.count == 4)
  }

  @Test("Subprotocols are tokens, each of them once") func subprotocolNames() {
    for name in ["", "a b", "a,b", "é", "a\r\nb"] {
      #expect(throws: WebSocketHandshakeError.subprotocolName(name)) { try Self.handshake([name]) }
    }
    #expect(throws: WebSocketHandshakeError.duplicateSubprotocol("a")) {
      try Self.handshake(["a", "b", "a"])
    }
  }

  @Test("A response that follows the RFC is accepted") func accepted() throws {
    let handshake = try Self.handshake(["chat", "superchat"], deflate: WebSocketDeflateOptions())
    #expect(try handshake.verify(Self.head(), sha1: Self.sha1) == WebSocketAgreement())
    let head = Self.head([
      "upgrade": "WebSocket", "connection": "keep-alive, uPGRADE", "sec-websocket-protocol": "superchat",
      "Sec-WebSocket-Extensions": "permessage-deflate; server_no_context_takeover; client_max_window_bits=12",
    ])
    #expect(
      try handshake.verify(head, sha1: Self.sha1)
        == WebSocketAgreement(
          subprotocol: "superchat",
          deflate: WebSocketDeflate(client: .init(windowBits: 12), server: .init(resetsContext: true))))
  }

  private static let malformedHeads: [(ResponseHead, WebSocketHandshakeError)] = [
    (head(status: 200), .status(200, supportedVersions: nil)),
    (head(["Sec-WebSocket-Version": "8, 7"], status: 426), .status(426, supportedVersions: "8, 7")),
    (head(version: .http1_0), .httpVersion(.http1_0)), (head(version: .http2), .httpVersion(.http2)),
    (head(without: "Upgrade"), .upgrade(nil)), (head(["Upgrade": "h2c"]), .upgrade("h2c")),
    (head(["Upgrade": "websocket, h2c"]), .upgrade("websocket, h2c")),
    (head(without: "Connection"), .connection(nil)),
    (head(["Connection": "close, not-upgrade"]), .connection("close, not-upgrade")),
    (head(without: "Sec-WebSocket-Accept"), .missingAccept),
    (head(["Sec-WebSocket-Accept": "s3pplmbitxaq9kygzzhzrbk+xoo="]), .acceptMismatch),
    (head(["Sec-WebSocket-Accept": ""]), .acceptMismatch),
    (
      head(more: [HTTPHeader(name: "sec-websocket-accept", value: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")]),
      .repeatedField("Sec-WebSocket-Accept")
    ),
    (head(["Sec-WebSocket-Protocol": "other"]), .subprotocolNotOffered("other")),
    (head(["Sec-WebSocket-Protocol": "CHAT"]), .subprotocolNotOffered("CHAT")),
    (head(["Sec-WebSocket-Protocol": ""]), .subprotocolNotOffered("")),
    (
      head(
        ["Sec-WebSocket-Protocol": "chat"], more: [HTTPHeader(name: "Sec-WebSocket-Protocol", value: "chat")]),
      .repeatedField("Sec-WebSocket-Protocol")
    ),
    (head(["Sec-WebSocket-Extensions": "a b"]), .malformedExtensions),
    (
      head(["Sec-WebSocket-Extensions": "x-webkit-deflate-frame"]),
      .extensionNotOffered("x-webkit-deflate-frame")
    ),
    (
      head(["Sec-WebSocket-Extensions": "permessage-deflate, permessage-deflate"]),
      .extensionNotOffered("permessage-deflate")
    ),
    (head(["Sec-WebSocket-Extensions": "permessage-deflate; x"]), .deflate(.unknownParameter("x"))),
  ]

  @Test("A response that violates the RFC fails with a reason", arguments: malformedHeads)
  func refused(head: ResponseHead, error: WebSocketHandshakeError) throws {
    let handshake = try Self.handshake(["chat"], deflate: WebSocketDeflateOptions())
    #expect(throws: error) { try handshake.verify(head, sha1: Self.sha1) }
    #expect(error.message.hasSuffix(".") && error.message.count > 40)
  }

  @Test("permessage-deflate that was not offered is refused") func deflateNotOffered() throws {
    let head = Self.head(["Sec-WebSocket-Extensions": "permessage-deflate"])
    #expect(throws: WebSocketHandshakeError.extensionNotOffered("permessage-deflate")) {
      try Self.handshake().verify(head, sha1: Self.sha1)
    }
  }

  @Test("Without SHA-1 a handshake is impossible") func noHash() throws {
    #expect(throws: WebSocketHandshakeError.hashUnavailable) {
      try Self.handshake().verify(Self.head(), sha1: { _ in nil })
    }
  }

  // MARK: The server

  private static func request(
    _ changes: [String: String] = [:], without missing: String = ""
  ) -> FieldBlock {
    var headers: HTTPHeaders = [
      "Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    ]
    for (name, value) in changes { headers[name] = value }
    headers.remove(name: missing)
    return FieldBlock(Array(headers))
  }

  @Test("A client accepts the answer of the server") func bothSides() throws {
    let client = try Self.handshake(["chat", "superchat"], deflate: WebSocketDeflateOptions())
    let server = WebSocketServerHandshake(subprotocols: ["superchat"], deflate: WebSocketDeflateOptions())
    let answer = try server.answer(method: "GET", FieldBlock(client.fields), sha1: Self.sha1)
    let agreement = try client.verify(ResponseHead(status: 101, fields: answer.fields), sha1: Self.sha1)
    #expect(agreement == answer.agreement)
    #expect(agreement == WebSocketAgreement(subprotocol: "superchat", deflate: WebSocketDeflate()))
  }

  @Test("A server takes the first offer that it can accept") func offers() throws {
    let server = WebSocketServerHandshake(deflate: WebSocketDeflateOptions())
    let offers =
      "x-other, permessage-deflate; x=1, permessage-deflate; server_max_window_bits=20, "
      + "permessage-deflate; server_max_window_bits=10, permessage-deflate"
    let answer = try server.answer(
      method: "GET", Self.request(["Sec-WebSocket-Extensions": offers, "Sec-WebSocket-Protocol": "a"]),
      sha1: Self.sha1)
    #expect(
      answer.fields.last
        == HTTPHeader(
          name: "Sec-WebSocket-Extensions", value: "permessage-deflate; server_max_window_bits=10"))
    #expect(answer.agreement == WebSocketAgreement(deflate: WebSocketDeflate(server: .init(windowBits: 10))))
    let plain = try WebSocketServerHandshake().answer(
      method: "GET", Self.request(["Sec-WebSocket-Extensions": offers]), sha1: Self.sha1)
    #expect(plain.agreement == WebSocketAgreement() && plain.fields.count == 3)
  }

  private static let malformedRequests: [(FieldBlock, WebSocketServerHandshake.Refusal, Int)] = [
    (request(without: "Upgrade"), .notUpgrade, 400), (request(["Connection": "close"]), .notUpgrade, 400),
    (request(without: "Sec-WebSocket-Key"), .malformedKey, 400),
    (request(["Sec-WebSocket-Key": "AAAA"]), .malformedKey, 400),
    (request(["Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ"]), .malformedKey, 400),
    (request(["Sec-WebSocket-Version": "8"]), .version, 426),
    (request(without: "Sec-WebSocket-Version"), .version, 426),
    (request(["Sec-WebSocket-Extensions": "a;"]), .malformedExtensions, 400),
  ]

  @Test("A server refuses malformed requests", arguments: malformedRequests)
  func refusedRequest(request: FieldBlock, refusal: WebSocketServerHandshake.Refusal, status: Int) {
    #expect(throws: refusal) {
      _ = try WebSocketServerHandshake().answer(method: "GET", request, sha1: Self.sha1)
    }
    #expect(refusal.status == status)
    #expect(
      refusal.fields.contains(HTTPHeader(name: "Sec-WebSocket-Version", value: "13")) == (status == 426))
  }

  @Test("A server refuses other methods") func otherMethod() {
    #expect(throws: WebSocketServerHandshake.Refusal.notUpgrade) {
      _ = try WebSocketServerHandshake().answer(method: "POST", Self.request(), sha1: Self.sha1)
    }
  }
}
