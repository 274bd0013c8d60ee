public import Foundation
public import FoundationNetworking
import HTTPSystem

/// Compresses the `httpBody` of requests in the zlib format, which HTTP calls `deflate` (RFC 9110 §8.4.1.2).
///
/// Bodies of uploads and body streams are not compressed. The server must support the coding; a client cannot ask for
/// it.
///
/// ```swift
/// let session = Session(interceptor: .deflateCompressor)
/// ```
public struct DeflateRequestCompressor: RequestInterceptor {
  /// The handling of a request that already has a `Content-Encoding`.
  public enum DuplicateHeaderBehavior: Sendable {
    /// The request fails with a ``DuplicateHeaderError``.
    case error
    /// The body is compressed and the field replaced.
    case replace
    /// The request is sent unchanged.
    case skip
  }

  /// The error of a request that already has a `Content-Encoding`.
  public struct DuplicateHeaderError: LocalizedError {
    /// The error message.
    public var errorDescription: String? {
      "The request has a Content-Encoding already and is not compressed a second time."
    }
  }

  /// The handling of a request that already has a `Content-Encoding`.
  public let duplicateHeaderBehavior: DuplicateHeaderBehavior
  /// Decides for each body whether it is compressed.
  public let shouldCompressBodyData: @Sendable (_ bodyData: Data) -> Bool

  /// Makes the compressor.
  ///
  /// - Parameters:
  ///   - duplicateHeaderBehavior: For a request that has a `Content-Encoding`. Default: an error.
  ///   - shouldCompressBodyData:  Whether a body is compressed; small ones grow. Default: all are.
  @preconcurrency
  public init(
    duplicateHeaderBehavior: DuplicateHeaderBehavior = .error,
    shouldCompressBodyData: @escaping @Sendable (_ bodyData: Data) -> Bool = { _ in true }
  ) {
    self.duplicateHeaderBehavior = duplicateHeaderBehavior
    self.shouldCompressBodyData = shouldCompressBodyData
  }

  /// Compresses the body, if there is one, and sets `Content-Encoding`.
  @preconcurrency
  public func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    completion(
      BodyCompression.deflate.applied(
        to: urlRequest, duplicateHeaderBehavior, when: shouldCompressBodyData))
  }
}

/// The codings in which bodies are sent.
private enum BodyCompression: String {
  case deflate, gzip

  private var wrapping: Deflater.Wrapping {
    switch self {
    case .deflate: .zlib
    case .gzip: .gzip
    }
  }

  func applied(
    to urlRequest: URLRequest, _ behavior: DeflateRequestCompressor.DuplicateHeaderBehavior,
    when shouldCompress: (Data) -> Bool
  ) -> Result<URLRequest, any Error> {
    guard let body = urlRequest.httpBody, urlRequest.isChangeable else { return .success(urlRequest) }
    if urlRequest.headers["Content-Encoding"] != nil {
      switch behavior {
      case .error: return .failure(DeflateRequestCompressor.DuplicateHeaderError())
      case .skip: return .success(urlRequest)
      case .replace: break
      }
    }
    guard shouldCompress(body) else { return .success(urlRequest) }
    guard let compressed = Deflater.compress(body, wrapping) else {
      return .failure(
        URLError(
          .resourceUnavailable, "There is not enough memory to compress the body.", url: nil))
    }
    var request = urlRequest
    request.httpBody = compressed
    request.headers.update(name: "Content-Encoding", value: rawValue)
    return .success(request)
  }
}

extension RequestInterceptor where Self == DeflateRequestCompressor {
  /// A compressor for all bodies; a request that has a `Content-Encoding` fails.
  public static var deflateCompressor: DeflateRequestCompressor { DeflateRequestCompressor() }

  /// Makes a compressor; parameters as for its initialiser.
  @preconcurrency
  public static func deflateCompressor(
    duplicateHeaderBehavior: DeflateRequestCompressor.DuplicateHeaderBehavior = .error,
    shouldCompressBodyData: @escaping @Sendable (_ bodyData: Data) -> Bool = { _ in true }
  ) -> DeflateRequestCompressor {
    DeflateRequestCompressor(
      duplicateHeaderBehavior: duplicateHeaderBehavior, shouldCompressBodyData: shouldCompressBodyData)
  }
}

extension DeflateRequestCompressor.DuplicateHeaderError: NSErrorConvertible {}

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
