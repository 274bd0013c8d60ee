public import FoundationEssentials

/// The options of the transport, in addition to `URLSessionConfiguration`.
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
    /// HTTP/2 if a TLS server selects it (ALPN, RFC 7301), otherwise HTTP/1.1.
    case automatic
    /// HTTP/1.1 only.
    case http1Only
    /// HTTP/2 without negotiation for `http` URLs (prior knowledge, RFC 9113 §3.3), for example within a cluster, and
    /// ``automatic`` for `https` URLs. If a server does not support it, the request fails. `http` requests
    /// that an HTTP proxy forwards use HTTP/1.1.
    case http2PriorKnowledge
  }

  /// The trusted root certificates.
  public enum TrustStore: Sendable, Hashable {
    /// The system's certificates.
    case system
    /// Only the certificates of one PEM file, a regular file of at most 16 MiB. It is read again after it has changed.
    case file(String)
    /// Only the given certificates (PEM).
    case pem(Data)

    /// Whether both are the same store. Paths are compared by their bytes, as the system does.
    public static func == (left: TrustStore, right: TrustStore) -> Bool {
      switch (left, right) {
      case (.system, .system): true
      case (.file(let left), .file(let right)): left.hasBytes(of: right)
      case (.pem(let left), .pem(let right)): left == right
      case (.system, _), (.file, _), (.pem, _): false
      }
    }
  }

  /// Another target for the connections to a host (`--connect-to` of curl). The `Host` field, the name in TLS and the
  /// name in the certificate still come from the URL. An HTTP proxy is asked for a tunnel to the target, also for
  /// `http` URLs.
  public struct HostOverride: Sendable, Hashable {
    /// The host of the URL.
    public var host: String
    /// The port of the URL; `nil` matches every port.
    public var port: Int?
    /// The host name or address of the connection.
    public var target: String
    /// The port of the connection; `nil` stands for the URL's port.
    public var targetPort: Int?

    /// Makes an override; hosts are written without brackets.
    public init(host: String, port: Int? = nil, target: String, targetPort: Int? = nil) {
      self.host = host
      self.port = port
      self.target = target
      self.targetPort = targetPort
    }
  }

  /// The addresses to which connections may go.
  public enum AddressFamily: Sendable, Hashable {
    /// Addresses of both families.
    case any
    /// IPv4 addresses only.
    case ipv4
    /// IPv6 addresses only.
    case ipv6
  }

  /// A version of TLS.
  public enum TLSVersion: Int, Sendable, Comparable {
    /// TLS 1.2 (RFC 5246).
    case tls12 = 12
    /// TLS 1.3 (RFC 8446).
    case tls13 = 13

    /// Whether the left version is the older one.
    public static func < (left: TLSVersion, right: TLSVersion) -> Bool {
      left.rawValue < right.rawValue
    }
  }

  /// The versions of HTTP that may be used. Default: ``HTTPVersions/automatic``.
  public var httpVersions: HTTPVersions = .automatic
  /// The limit for name look-up, connection and TLS handshake together. Default: `nil`, only ``timeLimits`` and the
  /// timeouts of the request apply. The shorter limit ends the request.
  public var connectTimeout: Duration?
  /// The limits of the phases of a request. Default: none.
  public var timeLimits = TimeLimits()
  /// The limits of the number of requests. Default: none.
  public var requestLimits = RequestLimits()
  /// The bandwidth of each request. Default: no limits.
  public var requestBandwidth = Bandwidth()
  /// The bandwidth of all requests of the session together. A request cannot have another one than its session.
  /// Default: no limits.
  public var sessionBandwidth = Bandwidth()
  /// The proxy of requests. Default: ``Proxy/environment``. If the proxy cannot be reached or refuses the request,
  /// the request fails. The response of an HTTP proxy to an `http` request, such as status 407, is delivered like any
  /// other.
  public var proxy: Proxy = .environment
  /// The trusted root certificates. Default: ``TrustStore/system``.
  public var trustStore: TrustStore = .system
  /// Lists of revoked certificates (CRL, RFC 5280 §5), each as DER, or as PEM with one or several. A listed
  /// certificate is refused wherever a chain is verified, and by pins without validation. A list has to be signed by
  /// the issuer of the certificate, if the server sent the issuer or the trust store contains it. An expired list
  /// still revokes its certificates. So does an unusable one: a delta or indirect list, one with an unknown critical
  /// extension, or one by an issuer that must not sign lists. Unreadable lists refuse every server. Default: none.
  ///
  /// To ask the issuers themselves, see `RevocationTrustEvaluator`.
  public var certificateRevocationLists: [Data] = []
  /// The client identity, for servers that request a certificate. Default: `nil`; if a server requires one, the
  /// request fails with `URLError.clientCertificateRequired`.
  public var clientIdentity: ClientIdentity?
  /// The oldest TLS version. Default: ``TLSVersion/tls12``.
  public var minimumTLSVersion: TLSVersion = .tls12
  /// The newest TLS version. Default: `nil`, the newest of OpenSSL. If the newest version is older than
  /// ``minimumTLSVersion``, every request fails with `URLError.secureConnectionFailed`.
  public var maximumTLSVersion: TLSVersion?
  /// The offered ciphers of TLS 1.2, in OpenSSL's notation. Default: `nil`, the ciphers of OpenSSL. If the list has no
  /// known cipher, every request fails with `URLError.secureConnectionFailed`.
  public var tls12Ciphers: String?
  /// The offered cipher suites of TLS 1.3, separated by colons. Default and failure are as with ``tls12Ciphers``.
  public var tls13CipherSuites: String?
  /// A regular file to which the secrets of every TLS connection are appended, in the NSS key log format, which
  /// Wireshark reads. Nothing is written to pipes and devices. Readers of the file can decrypt all traffic. Default:
  /// `nil`, none; the environment variable `SSLKEYLOGFILE` works too, and is read once, when the first connection is
  /// secured.
  ///
  /// Set it for a session rather than for a request. Requests share connections, so the file may have the secrets of
  /// other requests, and has none for a connection that was open before.
  public var tlsKeyLogFile: String?
  /// The allowed schemes of URLs and redirects, in lower case; others fail with `URLError.unsupportedURL`. Default:
  /// `nil`, which allows `http`, `https`, `file`, `data`, and the schemes of the session's `URLProtocol` classes. A
  /// program that requests URLs from other parties should allow only `["http", "https"]`, because `file:` reads files
  /// of its machine.
  public var allowedSchemes: Set<String>?
  /// The path of a Unix-domain socket for every connection. The host of the URL stays in the `Host` field and in TLS.
  /// A proxy of ``proxy`` or of a `connectionProxyDictionary` is reached at the socket. The proxies of the environment
  /// are not used. Default: `nil`.
  public var unixSocket: String?
  /// Hosts with another target for connections. The first matching override is used. Default: none.
  public var hostOverrides: [HostOverride] = []
  /// The `https` URL of a server for name look-ups (DNS over HTTPS, RFC 8484) instead of the system's resolver. The
  /// resolver still looks up that server and proxies. The server is evaluated by the trust store and evaluators of the
  /// session, and reached through the same proxy. The answers are cached until they expire, for an hour at most.
  /// Addresses, `localhost`, and names that a proxy looks up are not looked up there. For downloads about revocation,
  /// the service is evaluated by the trust store alone. A name and a password in the URL are not sent. Default: `nil`.
  public var nameServiceURL: String?
  /// The hosts that require TLS (HSTS, RFC 6797), by their header fields or preloaded by the program. Default: `nil`,
  /// so that `http` URLs are requested unchanged.
  public var strictTransportSecurity: StrictTransportSecurity?
  /// The alternative services of servers (`Alt-Svc`, RFC 7838). Default: `nil`, none.
  public var alternativeServices: AlternativeServices?
  /// The local network interface, address or host name for connections. Default: `nil`, the system chooses.
  public var localInterface: String?
  /// The addresses to which connections may go (`--ipv4` and `--ipv6` of curl). With a proxy, its addresses are
  /// meant, even if it is asked for addresses of servers (SOCKS). A host without such an address fails with
  /// `URLError.cannotFindHost` or `cannotConnectToHost`. It has no effect on ``unixSocket``. Default:
  /// ``AddressFamily/any``.
  public var addressFamily: AddressFamily = .any
  /// The time for which only the first address family of a host is tried, before the other one is tried as well (RFC
  /// 8305). Default: `nil`, 200 milliseconds.
  public var happyEyeballsDelay: Duration?
  /// Whether non-public addresses are refused: private, loopback, link-local and reserved ones. The option is for
  /// programs that request URLs from other parties. The address of each connection is checked, so that neither DNS
  /// changes nor redirects circumvent it; with a proxy, the proxy's address. A proxy of SOCKS4 or SOCKS5 is asked for
  /// public addresses only. Default: `false`.
  public var refusesPrivateAddresses: Bool = false
  /// The maximum number of followed redirects; more fail with `URLError.httpTooManyRedirects`. Default: 20.
  public var redirectLimit: Int = 20
  /// The maximum size of a response's header fields in bytes, including informational responses before it and its
  /// trailers. Default: 256 KiB. Limits above 1 GiB count as 1 GiB. Over HTTP/2, each name and each value has at most
  /// 64 KiB as encoded (RFC 7541), because nghttp2 reads no more; `httpVersions = .http1Only` has no such limit.
  public var headerSizeLimit: Int = 262_144
  /// The maximum size of a response's body after decoding, in bytes; `nil`, the default, means no limit. Of a response
  /// that refuses a WebSocket connection, at most the first MiB is read.
  public var bodySizeLimit: Int64?
  /// The maximum number of decoded bytes for each received byte of a body; `nil`, the default, means no limit. The
  /// limit applies from 64 KiB of decoded bytes on. The ratio of gzip is at most 1,032, and 3 to 10 for text.
  public var decodingRatioLimit: Int?
  /// Whether content codings of bodies are decoded: `gzip`, `deflate`, `br`, `zstd` and lists of them (RFC 9110
  /// §8.4). Default: `true`. The `Content-Encoding` field stays in the response in either case.
  ///
  /// With `false`, bodies are delivered as received, progress counts these bytes, and ``decodingRatioLimit`` has no
  /// effect. The cache is neither read nor written, because it holds decoded bodies. The default `Accept-Encoding`
  /// field is still sent; set it to `identity` for a body without coding.
  ///
  /// ```swift
  /// var options = TransportOptions()
  /// options.decodesContent = false
  /// let session = Session(transportOptions: options)
  /// let response = await session.request(url).serializingData().response
  /// let codings = response.response?.headers.value(for: "Content-Encoding")
  /// ```
  ///
  /// A body with an unknown coding, alone or in a list, is delivered as received. More than five codings fail with
  /// `URLError.cannotDecodeContentData`.
  public var decodesContent: Bool = true
  /// Whether a request is created before the function that creates it returns, so that its `URLRequest`, its task and
  /// its cURL command exist then. Default: `false`. The option has an effect for a session only, not for a request.
  ///
  /// The request is sent when it is resumed. User code such as adapters runs during the call. If an adapter completes
  /// later, the function does not wait. Errors are handled when the request is resumed. Each request needs one more
  /// thread hop.
  public var makesRequestsAtOnce: Bool = false

  /// Whether a `GET` may have an `httpBody`. Default: `false`, such a request fails with
  /// `AFError.urlRequestValidationFailed`.
  ///
  /// As in Alamofire on Apple's systems, only the `httpBody` of the request is looked at, before and after its
  /// adapters. The body of an upload, an `httpBodyStream`, and a body that a redirect handler has set are sent with any
  /// method.
  public var allowsBodyInGETRequests: Bool = false
  /// Whether the credential of the request, of its URL or of ``netrcFile`` is sent preemptively as Basic (RFC 7617).
  /// Some servers require that because they do not send a challenge. Every server then receives the password, over
  /// `http` in clear text. Default: `false`: credentials answer challenges, and are sent preemptively to protection
  /// spaces that accepted them.
  public var preemptiveBasicAuthentication: Bool = false
  /// The path of a netrc file with credentials by host: `machine`, `login`, `password`, `default`. A leading `~/` is
  /// the home folder. The file is read for each request, which fails with the error of the file (such as
  /// `URLError.fileDoesNotExist`, or `dataLengthExceedsMaximum` for more than 16 MiB). If neither the request nor the
  /// session's storage has a credential, the file answers challenges of the request's own host. After a redirect to
  /// another host the file is not used. Default: `nil`, no file.
  public var netrcFile: String?
  /// Header fields that are sent after the request's fields, each as a separate field. A `URLRequest` has one value for
  /// a name, so this option sends a name several times (RFC 9110 §5.3), as some servers require. The fields follow
  /// redirects under the same rules as others. They are in the metrics and logs of the transfer, but not in
  /// `Request.request` and `cURLDescription()`. `Host` and the framing fields, such as `Content-Length`, are left out.
  /// Default: none.
  public var repeatedHeaders: [HTTPHeader] = []
  /// Header and trailer fields that, like `Authorization` and `Cookie`, are not sent to another origin after a
  /// redirect.
  public var protectedHeaders: Set<String> = []

  /// Whether identical concurrent requests share one transfer: data requests by GET without a body, with the same URL,
  /// header fields and options, in one session. Each gets the whole response; cancelling or suspending one does not
  /// affect the others. The timeouts of the first request apply, and the highest priority of all; the metrics describe
  /// the shared transfer. After the response to an unsafe request of the session, such as `POST`, later requests do not
  /// join earlier transfers. Default: `false`.
  public var sharesIdenticalRequests: Bool = false

  /// Makes the default options.
  public init() {}
}

extension TransportOptions {
  /// The limits of the number of requests. A request that exceeds one waits in the queue of its session.
  ///
  /// ```swift
  /// var options = TransportOptions()
  /// options.requestLimits.perHost = 4
  /// options.requestLimits.perSession = 20
  /// options.requestLimits.ratePerHost = .init(perSecond: 10, burst: 5)
  /// let session = Session(transportOptions: options)
  /// ```
  ///
  /// Of the requests that may be sent, the one with the highest priority is next, and the oldest one of equal priority.
  /// A host is an origin: scheme, host and port. Limits below one count as one.
  public struct RequestLimits: Sendable, Hashable {
    /// A rate of requests.
    public struct Rate: Sendable, Hashable {
      /// The number of requests in a second, on average.
      public var perSecond: Double
      /// The number of requests that may be sent at once after a time without requests.
      public var burst: Int

      /// Makes a rate. Rates that are not positive count as one request in a day.
      public init(perSecond: Double, burst: Int = 1) {
        self.perSecond = perSecond
        self.burst = burst
      }
    }

    /// The number of requests to one host that are in flight at a time, over all of its connections. Default: `nil`,
    /// only `httpMaximumConnectionsPerHost` limits them.
    public var perHost: Int?
    /// The number of requests of the session that are in flight at a time. A request cannot have another limit than its
    /// session. Default: `nil`, no limit.
    public var perSession: Int?
    /// The rate at which requests to one host begin. Redirects, challenges and retries count. Default: `nil`, no limit.
    public var ratePerHost: Rate?

    /// Makes limits.
    public init(perHost: Int? = nil, perSession: Int? = nil, ratePerHost: Rate? = nil) {
      self.perHost = perHost
      self.perSession = perSession
      self.ratePerHost = ratePerHost
    }
  }
}

extension TransportOptions {
  /// Limits of the speed at which bodies are sent and received, in bytes in a second.
  ///
  /// ```swift
  /// var options = TransportOptions()
  /// options.sessionBandwidth = .init(download: 1_000_000, upload: 250_000)
  /// let session = Session(transportOptions: options)
  /// ```
  ///
  /// The bytes are those on the wire, before they are decoded. Heads do not count. Buffers of the system may receive
  /// more before the server has to wait. Limits below one count as one. WebSocket connections and byte streams have no
  /// limit, and do not count for the session's.
  public struct Bandwidth: Sendable, Hashable {
    /// The limit of bodies of responses. Default: `nil`, no limit.
    public var download: Int?
    /// The limit of bodies of requests. Default: `nil`, no limit.
    public var upload: Int?

    /// Makes limits.
    public init(download: Int? = nil, upload: Int? = nil) {
      self.download = download
      self.upload = upload
    }

    package var isLimited: Bool { download != nil || upload != nil }
  }
}

/// The limits of the requests to one host; requests with the same ones share a queue.
package struct HostLimits: Sendable, Hashable {
  /// The number of requests in flight.
  package let inFlight: Int
  package let rate: TransportOptions.RequestLimits.Rate?

  /// Returns `nil` without limits.
  package init?(_ limits: TransportOptions.RequestLimits) {
    guard limits.perHost != nil || limits.ratePerHost != nil else { return nil }
    inFlight = limits.perHost.map { max(1, $0) } ?? .max
    // A rate that is not a number would not equal itself, so that each request would have its own queue.
    rate = limits.ratePerHost.map { .init(perSecond: $0.perSecond > 0 ? $0.perSecond : 0, burst: $0.burst) }
  }
}

/// The settings of requests that may share a connection: the options of their session, or of the one request that has
/// its own. Profiles are compared by identity, so that the hot path does not compare options one by one.
package final class ConnectionProfile: Sendable {
  /// The options, with a ``TransportOptions/headerSizeLimit`` that sums cannot exceed.
  package let options: TransportOptions
  /// The most connections that are open to one host at a time; at least 1.
  package let connectionsPerHost: Int
  /// A client has no more ports for the connections to one address.
  private static let mostConnections = 65_535
  private static let largestHeaderSizeLimit = 1 << 30

  /// The evaluator of servers; `nil` leaves the decision to the engine: the trust store, the host, the dates.
  package let evaluator: (any ServerEvaluator)?
  /// Connections and TLS sessions of another partition are not used, because they have another identity or were
  /// accepted by another evaluator.
  package let partition: Int
  /// The proxies of the session's configuration, for options that leave the choice to the environment.
  package let systemProxies: ProxyTable?
  /// The proxies; `nil` leaves the choice to the environment of the process.
  package let proxies: ProxyTable?
  /// Whether names are looked up by requests.
  package let asksForNames: Bool
  /// The limits of the requests to one host; `nil` without any.
  package let hostLimits: HostLimits?
  /// The number of requests of the session that may be in flight at a time.
  package let mostInFlight: Int
  /// The bandwidth of the session.
  package let sessionBandwidth: TransportOptions.Bandwidth
  /// Whether the request or the session has a limited bandwidth.
  package let isThrottled: Bool
  /// The limits of the phases of transfers; `nil` without any.
  package let phaseLimits: PhaseLimits?
  /// Whether anything is remembered of hosts between requests.
  package let hasHostPolicies: Bool
  /// Whether ``proxies`` lead nowhere but straight to the servers; `nil` when that is up to the environment.
  package let isDirect: Bool?

  /// Whether the evaluator may choose the client's identity for a server that asks for one.
  package let choosesIdentity: Bool
  /// The profile of hops after a redirect to another origin, without the client identity of the request; `nil` if it
  /// is the same.
  package let elsewhere: ConnectionProfile?

  package init(
    options: TransportOptions = TransportOptions(), connectionsPerHost: Int = 6,
    evaluator: (any ServerEvaluator)? = nil, systemProxies: ProxyTable? = nil,
    elsewhere: ConnectionProfile? = nil,
    session: ConnectionProfile? = nil, choosesIdentity: Bool = true
  ) {
    self.choosesIdentity = choosesIdentity
    self.elsewhere = elsewhere
    var options = options
    options.headerSizeLimit = min(max(0, options.headerSizeLimit), Self.largestHeaderSizeLimit)
    self.options = options
    self.connectionsPerHost = min(max(1, connectionsPerHost), Self.mostConnections)
    self.evaluator = evaluator
    self.systemProxies = systemProxies
    // The proxies of the environment are not at the socket, and the server there must not receive their passwords.
    let environment: ProxyTable? = options.unixSocket == nil ? nil : ProxyTable()
    proxies = ProxyTable.named(by: options, system: systemProxies ?? environment)
    isDirect = proxies?.isDirect
    asksForNames = options.nameServiceURL != nil
    phaseLimits = PhaseLimits(options.timeLimits)
    sessionBandwidth = session?.sessionBandwidth ?? options.sessionBandwidth
    isThrottled = sessionBandwidth.isLimited || options.requestBandwidth.isLimited
    hostLimits = HostLimits(options.requestLimits)
    mostInFlight = session?.mostInFlight ?? options.requestLimits.perSession.map { max(1, $0) } ?? .max
    hasHostPolicies = options.strictTransportSecurity != nil || options.alternativeServices != nil
    partition = TrustPartition.number(of: options, proxies)
  }
}
