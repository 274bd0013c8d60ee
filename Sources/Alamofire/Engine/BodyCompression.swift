import Foundation
import HTTPEngine

/// The codings in which bodies are sent.
enum BodyCompression: String, Sendable {
  case deflate
  case gzip

  /// The compressed bytes; `nil` when there is no memory.
  func compressed(_ data: Data) -> Data? {
    switch self {
    case .deflate: Deflater.compress(data, .zlib)
    case .gzip: Deflater.compress(data, .gzip)
    }
  }
}
