import HTTPSystem
import HTTPWire

/// The means of the engine for WebSocket connections.
package enum WebSocketFeatures {
  package static let compression: any MessageCompression = ZlibMessageCompression()

  /// Returns the SHA-1 of `bytes`; `nil` if OpenSSL refuses it.
  package static func sha1(_ bytes: [UInt8]) -> [UInt8]? { OpenSSLHashes.sha1(bytes) }

  /// Returns random words that cannot be predicted; `nil` without entropy.
  static func randomWords(_ count: Int) -> [UInt32]? { OpenSSLRandom.words(count) }
}
