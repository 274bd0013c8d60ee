public import FoundationEssentials

/// The options of the transport, beyond those of `URLSessionConfiguration`.
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
    /// HTTP/2 without asking for `http` URLs (prior knowledge, RFC 9113 §3.3), as servers inside a cluster speak it, and
    /// ``automatic`` for `https` URLs. A server that does not speak it ends the request with an error. Each `http` request
    /// has a connection of its own: libcurl 7.88 fails on the second one of a connection. Through a proxy that
    /// speaks HTTP, `http` requests go by HTTP/1.1. With a libcurl older than 8.7, a server that answers before a
    /// body has been sent may end the request with an error.
    case http2PriorKnowledge
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

  /// Another place for the connections to a host, as if its name meant that place (`--connect-to` of curl). The name in
  /// the `Host` field, in TLS and in the certificate stays the one of the URL.
  public struct HostOverride: Sendable, Hashable {
    /// The host of the URL.
    public var host: String
    /// The port of the URL; `nil` is every port.
    public var port: Int?
    /// The name or address that is connected to.
    public var target: String
    /// The port that is connected to; `nil` is the one of the URL.
    public var targetPort: Int?

    /// Makes an override; hosts are written without brackets.
    public init(host: String, port: Int? = nil, target: String, targetPort: Int? = nil) {
      self.host = host
      self.port = port
      self.target = target
      self.targetPort = targetPort
    }
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
  /// The limit of the time for name look-up, connection and TLS handshake together. Default: `nil`, only the timeouts of
  /// the request count.
  public var connectTimeout: Duration?
  /// The proxy of requests. Default: ``Proxy/environment``. A proxy that cannot be found or does not let the request
  /// through ends it with an error; a proxy that speaks HTTP may also answer an `http` request itself, with status 407
  /// for want of credentials: that is a response like any other.
  public var proxy: Proxy = .environment
  /// Whose certificates are trusted. Default: ``TrustStore/system``.
  public var trustStore: TrustStore = .system
  /// Lists of revoked certificates (CRL, RFC 5280 §5), each as DER, or as PEM that may hold several. A certificate
  /// that one of them names is refused, wherever a chain is verified, and by pins without validation. A list has to be
  /// signed by the issuer of the certificate itself, if the server has sent the issuer or the trust store has it. A list
  /// that is out of date still revokes its certificates. So does one that cannot be used: a list of changes (delta), one
  /// with a critical extension that is not understood, or one whose issuer may not sign lists. Lists that cannot be read
  /// refuse every server. Default: none.
  ///
  /// To ask the issuers themselves, see `RevocationTrustEvaluator`.
  public var certificateRevocationLists: [Data] = []
  /// The identity of the client, for servers that ask for a certificate. Default: `nil`, no identity; servers that
  /// require one end the request with `URLError.clientCertificateRequired`.
  public var clientIdentity: ClientIdentity?
  /// The oldest TLS that is spoken. Default: ``TLSVersion/tls12``.
  public var minimumTLSVersion: TLSVersion = .tls12
  /// The newest TLS that is spoken. Default: `nil`, the newest that OpenSSL has. One that is older than
  /// ``minimumTLSVersion`` ends every request with `URLError.secureConnectionFailed`.
  public var maximumTLSVersion: TLSVersion?
  /// The ciphers of TLS 1.2 that are offered, in OpenSSL's notation. Default: `nil`, those that OpenSSL offers. A list
  /// without any known cipher ends every request with `URLError.secureConnectionFailed`.
  public var tls12Ciphers: String?
  /// The cipher suites of TLS 1.3 that are offered, separated by colons. As ``tls12Ciphers``.
  public var tls13CipherSuites: String?
  /// A file to which the secrets of every TLS connection are appended, in the format that Wireshark and others read
  /// (NSS key log). Who has it can read all that was sent. Default: `nil`, none; the environment's `SSLKEYLOGFILE` works
  /// too, as everywhere with libcurl.
  public var tlsKeyLogFile: String?
  /// The schemes, in lower case, of URLs that may be requested and redirected to; others fail with
  /// `URLError.unsupportedURL`. Default: `nil`, `http`, `https`, `file`, `data`, and whatever a `URLProtocol`
  /// class of the session serves. A program that requests URLs which others gave it should allow
  /// `["http", "https"]` alone: `file:` reads the files of its machine.
  public var allowedSchemes: Set<String>?
  /// The path of a Unix-domain socket that every connection goes to in place of the host, which stays in the `Host`
  /// field and in TLS. Default: `nil`.
  public var unixSocket: String?
  /// Hosts whose connections go elsewhere. The first that fits counts. Default: none.
  public var hostOverrides: [HostOverride] = []
  /// The `https` URL of a server that is asked for the addresses of names (DNS over HTTPS, RFC 8484), in place of the
  /// system's resolver, which finds that server itself, and proxies. The server is a server like any other of the
  /// session: its certificate is judged by the same trust store and evaluators, and it is reached by the same proxy. What
  /// it answers is kept as long as it says, an hour at most. Addresses, `localhost`, and names that a proxy finds are not
  /// asked for. Default: `nil`.
  public var nameServiceURL: String?
  /// The hosts that are reached over TLS alone (HSTS, RFC 6797), as they say themselves or as the program knows.
  /// Default: `nil`, none, and `http` URLs are requested as they are.
  public var strictTransportSecurity: StrictTransportSecurity?
  /// The alternative services of servers (`Alt-Svc`, RFC 7838). Default: `nil`, none.
  public var alternativeServices: AlternativeServices?
  /// The network interface, address or name of this machine that connections come from. Default: `nil`, the system
  /// chooses.
  public var localInterface: String?
  /// The time for which the first address family of a host with several is tried alone, before the other is tried as
  /// well (RFC 8305). Default: `nil`, 200 milliseconds.
  public var happyEyeballsDelay: Duration?
  /// Whether addresses are refused that are not of the public Internet: private, of this machine, of its link, reserved.
  /// For programs that request URLs which others gave them. It is the address of each connection that counts, so that
  /// neither a name that changes its meaning nor a redirect gets past it; with a proxy, the proxy's. Default: `false`.
  public var refusesPrivateAddresses: Bool = false
  /// The most redirects that are followed before the request fails with `URLError.httpTooManyRedirects`. Default: 20.
  public var redirectLimit: Int = 20
  /// The most bytes that the header fields of one response may take, with those of the informational responses
  /// before it and with its trailers. Default: 256 KiB. libcurl has limits of its own that no option raises:
  /// 100 KB for a line, from 8.3 on (and in patched older versions) 300 KB for a head, from 8.14 on 5,000 fields.
  public var headerSizeLimit: Int = 262_144
  /// The most bytes that a response's body may have after decoding; `nil`, the default, is no limit.
  public var bodySizeLimit: Int64?
  /// The most bytes that decoding may make of each received byte of a body; `nil`, the default, is no limit. It counts
  /// from 64 KiB of decoded bytes on. gzip makes at most 1,032 times as much of bytes that are all alike, and 3 to 10
  /// times as much of text.
  public var decodingRatioLimit: Int?
  /// Whether content codings of bodies are undone: `gzip`, `deflate`, `br`, `zstd` and lists of them (RFC 9110 §8.4).
  /// Default: `true`. The `Content-Encoding` field stays in the response in either case.
  ///
  /// With `false`, bodies come as the server sent them, progress counts and knows the length of these bytes, and
  /// ``decodingRatioLimit`` has no meaning. The cache is neither asked nor filled, because it holds decoded bodies. The
  /// default `Accept-Encoding` field is still sent; set it to `identity` for a body without coding.
  ///
  /// ```swift
  /// var options = TransportOptions()
  /// options.decodesContent = false
  /// let session = Session(transportOptions: options)
  /// let response = await session.request(url).serializingData().response
  /// let codings = response.response?.headers.value(for: "Content-Encoding")
  /// ```
  ///
  /// A coding that is not known is never undone: the body comes as the server sent it. If a list names such a coding,
  /// none of the list is undone. More than five codings end the request with `URLError.cannotDecodeContentData`.
  public var decodesContent: Bool = true
  /// Whether requests are made before the factory that creates them returns, and on its thread, so that their
  /// `URLRequest`, their task and their cURL text are there at once. Default: `false`. A matter of the session; at a
  /// request it comes too late.
  ///
  /// They wait to be resumed before they are sent. Code of users that takes part, such as adapters, runs in the call;
  /// for an adapter that answers later, the factory does not wait, and they are there when it has answered. What goes
  /// wrong is dealt with when the request is resumed. Costs each request a visit to another thread.
  public var makesRequestsAtOnce: Bool = false

  /// Whether a `GET` may carry a body. Default: `false`, such a request fails with
  /// `AFError.urlRequestValidationFailed`.
  public var allowsBodyInGETRequests: Bool = false
  /// Whether a credential that the request has, or that its URL or ``netrcFile`` has for it, is sent at once as Basic
  /// (RFC 7617), before the server asks; some servers never ask. The password is then sent to any server that answers, over
  /// `http` in the clear. Default: `false`, credentials answer challenges, and go with later requests for what they
  /// have been good for.
  public var preemptiveBasicAuthentication: Bool = false
  /// The path of a file with names and passwords by host, as ftp, git and curl keep them: `machine`, `login`,
  /// `password`, `default`. It is read anew for each request, which fails with the error of a file (such as
  /// `URLError.fileDoesNotExist`) when it cannot be; `~/` stands for the home folder. It answers challenges of the
  /// host of the request itself, not of one that it is redirected to, when the request has no credential of its
  /// own and the session's storage has none. Default: `nil`, no file.
  public var netrcFile: String?
  /// Names of header fields that, like `Authorization` and `Cookie`, are not sent on to another
  /// origin by a redirect.
  public var protectedHeaders: Set<String> = []

  /// Whether requests that are the same and run at the same time share one transfer: data requests by GET, without
  /// a body, with the same URL, header fields and options, in one session. Each gets the whole response; one that is
  /// cancelled leaves the transfer to the others, and one that is suspended does not hold them up. The timeouts are
  /// those of the request that came first, the metrics those of the transfer. One that starts when another of the
  /// session has been answered that may have changed something, a `POST` for instance, shares nothing with those that
  /// started before. Default: `false`.
  public var sharesIdenticalRequests: Bool = false

  /// Makes the default options.
  public init() {}
}
