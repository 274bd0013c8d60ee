public import Foundation
public import FoundationNetworking

/// Compresses the `httpBody` of requests as gzip (RFC 9110 §8.4.1.3), which more servers understand than
/// `deflate`. In everything else as ``DeflateRequestCompressor``.
///
/// ```swift
/// let compressor = GzipRequestCompressor { $0.count > 1024 }
/// ```
public struct GzipRequestCompressor: RequestInterceptor {
  /// The handling of a request that already has a `Content-Encoding`.
  public let duplicateHeaderBehavior: DeflateRequestCompressor.DuplicateHeaderBehavior
  /// Decides for each body whether it is compressed.
  public let shouldCompressBodyData: @Sendable (_ bodyData: Data) -> Bool

  /// Makes the compressor.
  ///
  /// - Parameters:
  ///   - duplicateHeaderBehavior: For a request that has a `Content-Encoding`. Default: an error.
  ///   - shouldCompressBodyData:  Whether a body is compressed; small ones grow. Default: all are.
  @preconcurrency
  public init(
    duplicateHeaderBehavior: DeflateRequestCompressor.DuplicateHeaderBehavior = .error,
    shouldCompressBodyData: @escaping @Sendable (_ bodyData: Data) -> Bool = { _ in true }
  ) {
    self.duplicateHeaderBehavior = duplicateHeaderBehavior
    self.shouldCompressBodyData = shouldCompressBodyData
  }

  /// Compresses the body, if there is one, and says so in `Content-Encoding`.
  @preconcurrency
  public func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    completion(
      BodyCompression.gzip.applied(to: urlRequest, duplicateHeaderBehavior, when: shouldCompressBodyData))
  }
}

extension RequestInterceptor where Self == GzipRequestCompressor {
  /// A compressor for all bodies; a request that has a `Content-Encoding` fails.
  public static var gzipCompressor: GzipRequestCompressor { GzipRequestCompressor() }
}
