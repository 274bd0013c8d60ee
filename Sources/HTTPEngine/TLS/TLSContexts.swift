import COpenSSL
import FoundationEssentials
import Glibc
import HTTPSystem
import HTTPWire

/// The settings of TLS that connections have in common.
struct TLSSettings: Hashable {
  let minimumVersion: TransportOptions.TLSVersion
  let maximumVersion: TransportOptions.TLSVersion
  let ciphers: String?
  let cipherSuites: String?
  let identity: ClientIdentity?

  /// Makes the settings of connections. A request's settings are for its server; a proxy gets neither the identity of
  /// the client nor a choice of versions and ciphers.
  init(_ options: TransportOptions, isForProxy: Bool) {
    minimumVersion = isForProxy ? .tls12 : options.minimumTLSVersion
    maximumVersion = isForProxy ? .tls13 : options.maximumTLSVersion ?? .tls13
    ciphers = isForProxy ? nil : options.tls12Ciphers
    cipherSuites = isForProxy ? nil : options.tls13CipherSuites
    identity = isForProxy ? nil : options.clientIdentity
  }

  /// The versions and ciphers of which a server has to speak one, with the options that have chosen them.
  var requirement: String {
    let versions =
      if minimumVersion == .tls13 {
        "TLS 1.3 (minimumTLSVersion)"
      } else if maximumVersion == .tls12 {
        "TLS 1.2 (maximumTLSVersion)"
      } else {
        "TLS 1.2 or later"
      }
    var lists: [String] = []
    if ciphers != nil, minimumVersion == .tls12 { lists.append("tls12Ciphers") }
    if cipherSuites != nil, maximumVersion == .tls13 { lists.append("tls13CipherSuites") }
    return lists.isEmpty ? versions : "\(versions) with a cipher of \(lists.joined(separator: " or "))"
  }
}

/// The contexts of OpenSSL of one loop: one for each set of settings, because making one costs more than a connection
/// does. A context knows nothing of a connection; the callbacks find theirs by its session. Belongs to the loop's
/// thread.
final class TLSContexts {
  private static let capacity = 64

  @exclusivity(unchecked) private var contexts: [TLSSettings: OpaquePointer] = [:]

  deinit { removeAll() }

  /// Returns the context for some settings; it lives as long as a session of it or this object.
  func context(for settings: TLSSettings) -> Result<OpaquePointer, TransportFailure> {
    if let known = contexts[settings] { return .success(known) }
    ERR_clear_error()
    guard openssl_stays_until_the_end() == 1, let context = SSL_CTX_new(TLS_client_method()) else {
      return .failure(Self.noMemory)
    }
    if let failure = Self.prepare(context, settings) {
      SSL_CTX_free(context)
      return .failure(failure)
    }
    if contexts.count >= Self.capacity { removeAll() }
    contexts[settings] = context
    return .success(context)
  }

  /// Forgets the contexts. Sessions have their own references.
  private func removeAll() {
    for context in contexts.values { SSL_CTX_free(context) }
    contexts.removeAll()
  }

  static var noMemory: TransportFailure {
    TransportFailure(.resourceUnavailable, "There is not enough memory for TLS.")
  }

  private static func prepare(_ context: OpaquePointer, _ settings: TLSSettings) -> TransportFailure? {
    openssl_prepare_client(context)
    guard settings.maximumVersion >= settings.minimumVersion,
      openssl_set_min_version(context, number(settings.minimumVersion)) == 1,
      openssl_set_max_version(context, number(settings.maximumVersion)) == 1
    else {
      return TransportFailure(.secureConnectionFailed, "maximumTLSVersion is older than minimumTLSVersion.")
    }
    // Suites without a certificate or without encryption are never offered, also if the list has "ALL".
    if let ciphers = settings.ciphers, SSL_CTX_set_cipher_list(context, ciphers + ":!aNULL:!eNULL") != 1 {
      return TransportFailure(.secureConnectionFailed, "The list of ciphers cannot be used (tls12Ciphers).")
    }
    if let suites = settings.cipherSuites, SSL_CTX_set_ciphersuites(context, suites) != 1 {
      return TransportFailure(
        .secureConnectionFailed, "The list of cipher suites cannot be used (tls13CipherSuites).")
    }
    TLSConnection.setCallbacks(of: context)
    return settings.identity.flatMap { $0.use(in: context) }
  }

  private static func number(_ version: TransportOptions.TLSVersion) -> Int32 {
    version == .tls13 ? TLS1_3_VERSION : TLS1_2_VERSION
  }
}

/// The peer of a handshake, and the code that decides about it.
struct TLSPeer {
  let origin: Origin
  let profile: ConnectionProfile
  /// The proxy, if the handshake is with one. A proxy has its own name and trust store.
  let proxy: ProxyServer?
  /// The protocols that are offered, the best one first (RFC 7301); empty to offer none.
  let protocols: [String]

  init(
    _ origin: Origin, _ profile: ConnectionProfile, proxy: ProxyServer? = nil, protocols: [String] = []
  ) {
    self.protocols = protocols
    self.origin = origin
    self.profile = profile
    self.proxy = proxy
  }

  /// The name for which the certificate has to hold.
  var host: String { proxy?.host ?? origin.host }

  /// The name in messages.
  var description: String { proxy.map { "the proxy \($0.host)" } ?? origin.host }

  var settings: TLSSettings { TLSSettings(profile.options, isForProxy: proxy != nil) }

  /// The name that is asked for (RFC 6066 §3); `nil` for addresses, which are not sent.
  var serverName: String? {
    guard HostLookup.addresses(of: host, literalsOnly: true).isEmpty else { return nil }
    return host.hasSuffix(".") ? String(host.dropLast()) : host
  }

  /// Whether the evaluator needs the stapled response.
  var requestsStapledResponse: Bool {
    guard proxy == nil else { return false }
    return profile.evaluator?.requestsStapledResponse(ofHost: origin.host) ?? false
  }

  /// Whether the identity of the client is chosen when the server asks for it.
  var choosesIdentity: Bool {
    guard proxy == nil, profile.choosesIdentity, profile.options.clientIdentity == nil else { return false }
    return profile.evaluator?.choosesIdentity(forHost: origin.host, port: origin.port) ?? false
  }

  /// Returns the failure if the peer is not accepted; `.trustUndecided` if code outside of the handshake has to decide.
  func failure(of certificates: [X509Certificate], stapled: Data?) -> TransportFailure? {
    guard let proxy else {
      return ServerEvaluation(profile: profile, host: origin.host, port: origin.port)
        .failure(of: certificates, stapled: stapled)
    }
    let verdict = TrustAnchors.of(proxy.trustStore).flatMap { anchors in
      RevocationLists.of(profile.options.certificateRevocationLists).flatMap { lists in
        var verifier = ChainVerifier(anchors: anchors, host: proxy.host)
        verifier.revocationLists = lists
        return verifier.verify(certificates)
      }
    }
    guard case .failure(let fault) = verdict else { return nil }
    return TransportFailure(fault.kind, fault.message(for: description))
  }
}

/// The TLS sessions of one loop that may be resumed (RFC 8446 §2.2, RFC 5077). Belongs to the loop's thread.
///
/// OpenSSL verifies no certificate when a session is resumed. So the owner of a handshake evaluates the chain of a
/// session again before it is offered.
final class TLSSessions {
  /// The number of keys beyond which the sessions of all are forgotten.
  private static let capacity = 256
  /// The number of sessions of one key. A server of TLS 1.3 sends two tickets, each of which is used once.
  private static let sessionsPerKey = 2

  @exclusivity(unchecked) private var sessions: [AnyHashable: [OpaquePointer]] = [:]

  deinit { removeAll() }

  /// Keeps a session, of which the caller gives up its reference.
  func keep(_ session: OpaquePointer, for key: AnyHashable) {
    if sessions[key] == nil, sessions.count >= Self.capacity { removeAll() }
    var kept = sessions[key] ?? []
    kept.append(session)
    if kept.count > Self.sessionsPerKey { SSL_SESSION_free(kept.removeFirst()) }
    sessions[key] = kept
  }

  /// Calls `use` with the newest session of the key, if there is one. A session of TLS 1.3 is used once, so that
  /// observers of the network cannot link two connections by it (RFC 8446 §C.4).
  func withSession(for key: AnyHashable, _ use: (OpaquePointer) -> Void) {
    guard let session = sessions[key]?.last else { return }
    use(session)
    guard SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION else { return }
    sessions[key]?.removeLast()
    SSL_SESSION_free(session)
  }

  private func removeAll() {
    for session in sessions.values.joined() { SSL_SESSION_free(session) }
    sessions.removeAll()
  }
}

/// The file with the secrets of TLS connections, for the analysis of recorded traffic.
enum TLSKeyLog {
  /// The file that the environment of the process names for every program with TLS. It is read only once, because
  /// reading the environment while another thread changes it is not safe.
  private static let usual: String? = getenv("SSLKEYLOGFILE").flatMap { name in
    let file = String(cString: name)
    return file.isEmpty ? nil : file
  }

  /// Appends one line to a file and to the one that the environment names.
  static func append(_ line: UnsafePointer<CChar>, to file: String?) {
    if let file { write(line, to: file) }
    if let usual, usual != file { write(line, to: usual) }
  }

  /// Appends one line to the file, if it is a regular one. A pipe without a reader would block the loop.
  private static func write(_ line: UnsafePointer<CChar>, to file: String) {
    let descriptor = open(
      file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return }
    // One write, so that lines of several processes do not mix.
    let text = String(cString: line) + "\n"
    _ = text.utf8CString.withUnsafeBufferPointer { Glibc.write(descriptor, $0.baseAddress, $0.count - 1) }
  }
}
