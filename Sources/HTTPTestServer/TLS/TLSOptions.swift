/// The behaviour of the server in TLS handshakes.
///
/// ```swift
/// let options = TLSOptions(maximumVersion: .tls1_2, clientAuthority: authority.certificatePEM)
/// let server = try HTTPTestServer(.tls(.localhost, options))
/// ```
public struct TLSOptions: Sendable, Equatable {
  /// A version of TLS.
  public enum Version: Sendable, Equatable, CaseIterable {
    /// RFC 5246.
    case tls1_2
    /// RFC 8446.
    case tls1_3
  }

  /// The lowest version that is agreed to; TLS 1.2 by default.
  public var minimumVersion: Version
  /// The highest version that is agreed to; TLS 1.3 by default.
  public var maximumVersion: Version
  /// Asks the client for a certificate issued by one of these authorities (PEM); `nil` asks for none.
  public var clientAuthority: String?
  /// Whether the handshake fails if the client presents no certificate; `true` by default, without effect if none is
  /// requested.
  public var requiresClientCertificate: Bool
  /// Whether the issuers of the certificate are sent too, up to the one below the root; `true` by
  /// default.
  public var sendsIntermediates: Bool
  /// Certificates (PEM) that are sent behind those of the identity, whatever they are; none by default.
  public var appendedCertificates: [String] = []
  /// The OCSP response (DER) that is sent to clients that ask for one (RFC 6066 §8); `nil` by default.
  public var stapledResponse: [UInt8]?
  /// The supported application protocols (RFC 7301 §3.2), preferred ones first; only `http/1.1` by default. If the
  /// client offers none of them, the handshake continues without one.
  public var applicationProtocols = ["http/1.1"]
  /// The size to whose multiples the records of TLS 1.3 are padded (RFC 8446 §5.4); 0, the default, pads none.
  public var recordPadding = 0

  /// Makes options; all have the defaults that their documentation names.
  public init(
    minimumVersion: Version = .tls1_2, maximumVersion: Version = .tls1_3,
    clientAuthority: String? = nil, requiresClientCertificate: Bool = true,
    sendsIntermediates: Bool = true
  ) {
    self.minimumVersion = minimumVersion
    self.maximumVersion = maximumVersion
    self.clientAuthority = clientAuthority
    self.requiresClientCertificate = requiresClientCertificate
    self.sendsIntermediates = sendsIntermediates
  }
}
