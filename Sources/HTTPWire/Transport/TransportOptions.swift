public import FoundationEssentials

/// What the transport is allowed and told to do, beyond what `URLSessionConfiguration` can say.
///
/// A session takes one value for all its requests; a request can change its own copy with
/// `transportOptions { $0.… }` before it starts.
///
/// ```swift
/// var options = TransportOptions()
/// options.connectTimeout = .seconds(5)
/// options.trustStore = .pem(try Data(contentsOf: companyCA))
/// let session = Session(transportOptions: options)
/// ```
public struct TransportOptions: Sendable, Equatable {
  /// The versions of HTTP that may be used.
  public enum HTTPVersions: Sendable, Equatable {
    /// HTTP/2 where a TLS server agrees (ALPN, RFC 7301), else HTTP/1.1.
    case automatic
    /// HTTP/1.1 alone.
    case http1Only
  }

  /// Whose certificates are trusted as roots.
  public enum TrustStore: Sendable, Hashable {
    /// The system's certificates.
    case system
    /// The certificates of one PEM file alone.
    case file(String)
    /// The given certificates (PEM) alone.
    case pem(Data)
  }

  /// A version of TLS.
  public enum TLSVersion: Int, Sendable, Comparable {
    /// TLS 1.2 (RFC 5246).
    case tls12 = 12
    /// TLS 1.3 (RFC 8446).
    case tls13 = 13

    /// The older version is the smaller.
    public static func < (left: TLSVersion, right: TLSVersion) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// The versions of HTTP that may be used. Default: ``HTTPVersions/automatic``.
  public var httpVersions: HTTPVersions = .automatic
  /// How long name look-up, connection and TLS handshake may take together. Default: `nil`, only the
  /// timeouts of the request count.
  public var connectTimeout: Duration?
  /// Whose certificates are trusted. Default: ``TrustStore/system``.
  public var trustStore: TrustStore = .system
  /// Who the client is, to servers that ask for a certificate. Default: `nil`, nobody; servers that insist end the
  /// request with `URLError.clientCertificateRequired`.
  public var clientIdentity: ClientIdentity?
  /// The oldest TLS that is spoken. Default: ``TLSVersion/tls12``.
  public var minimumTLSVersion: TLSVersion = .tls12
  /// The schemes, in lower case, of URLs that may be requested and redirected to; others fail with
  /// `URLError.unsupportedURL`. Default: `nil`, `http`, `https`, `file`, `data`, and whatever a `URLProtocol`
  /// class of the session serves. A program that requests URLs which others gave it should allow
  /// `["http", "https"]` alone: `file:` reads the files of its machine.
  public var allowedSchemes: Set<String>?
  /// How many redirects are followed before the request fails with
  /// `URLError.httpTooManyRedirects`. Default: 20.
  public var redirectLimit: Int = 20
  /// The most bytes that the header fields of one response may take. Default: 256 KiB.
  public var headerSizeLimit: Int = 262_144
  /// The most bytes that a response's body may have after decoding; `nil`, the default, is no limit.
  public var bodySizeLimit: Int64?
  /// Whether a `GET` may carry a body. Default: `false`, such a request fails with
  /// `AFError.urlRequestValidationFailed`.
  public var allowsBodyInGETRequests: Bool = false
  /// Names of header fields that, like `Authorization` and `Cookie`, are not sent on to another
  /// origin by a redirect.
  public var protectedHeaders: Set<String> = []

  /// Whether requests that are the same and run at the same time share one transfer: data requests by GET, without
  /// a body, with the same URL, header fields and options, in one session. Each gets the whole response; one that is
  /// cancelled leaves the transfer to the others, and one that is suspended does not hold them up. The timeouts are
  /// those of the request that came first. Default: `false`.
  public var sharesIdenticalRequests: Bool = false

  /// Makes the default options.
  public init() {}
}
