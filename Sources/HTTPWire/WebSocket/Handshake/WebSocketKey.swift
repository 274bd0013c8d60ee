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
