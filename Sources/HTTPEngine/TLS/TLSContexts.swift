import COpenSSL
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

  /// Makes the settings of connections. Those of a request are for its server; a proxy gets neither the identity of
  /// the client nor a choice of versions and ciphers.
  init(_ options: TransportOptions, isForProxy: Bool) {
    minimumVersion = isForProxy ? .tls12 : options.minimumTLSVersion
    maximumVersion = isForProxy ? .tls13 : options.maximumTLSVersion ?? .tls13
    ciphers = isForProxy ? nil : options.tls12Ciphers
    cipherSuites = isForProxy ? nil : options.tls13CipherSuites
    identity = isForProxy ? nil : options.clientIdentity
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

  /// Forgets the contexts. Sessions have references of their own.
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
    if let ciphers = settings.ciphers, SSL_CTX_set_cipher_list(context, ciphers) != 1 {
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
