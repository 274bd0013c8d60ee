/// A cipher suite of TLS, as its number on the wire (RFC 8446 §B.4, RFC 5246 §A.5).
///
/// Has the names of `tls_ciphersuite_t` on Apple's systems, so that
/// `metrics.negotiatedTLSCipherSuite == .AES_256_GCM_SHA384` means the same here. A suite without a name there has only
/// its number.
public struct TLSCipherSuite: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number of the suite in a handshake: 0x1301 is `AES_128_GCM_SHA256`.
  public let rawValue: UInt16

  /// Makes a suite of any number.
  public init(rawValue: UInt16) {
    self.rawValue = rawValue
  }

  /// The registered name, such as `TLS_AES_256_GCM_SHA384`, or the number of a suite without a name here.
  public var description: String {
    Self.names[self].map { "TLS_\($0)" } ?? "TLS cipher suite 0x\(String(rawValue, radix: 16))"
  }

  private static let names: [TLSCipherSuite: String] = [
    .AES_128_GCM_SHA256: "AES_128_GCM_SHA256",
    .AES_256_GCM_SHA384: "AES_256_GCM_SHA384",
    .CHACHA20_POLY1305_SHA256: "CHACHA20_POLY1305_SHA256",
    .ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    .ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: "ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    .ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    .ECDHE_RSA_WITH_AES_128_GCM_SHA256: "ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    .ECDHE_RSA_WITH_AES_256_GCM_SHA384: "ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    .ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    .ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: "ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    .ECDHE_ECDSA_WITH_AES_256_CBC_SHA384: "ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",
    .ECDHE_RSA_WITH_AES_128_CBC_SHA256: "ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    .ECDHE_RSA_WITH_AES_256_CBC_SHA384: "ECDHE_RSA_WITH_AES_256_CBC_SHA384",
    .ECDHE_ECDSA_WITH_AES_128_CBC_SHA: "ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    .ECDHE_ECDSA_WITH_AES_256_CBC_SHA: "ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    .ECDHE_RSA_WITH_AES_128_CBC_SHA: "ECDHE_RSA_WITH_AES_128_CBC_SHA",
    .ECDHE_RSA_WITH_AES_256_CBC_SHA: "ECDHE_RSA_WITH_AES_256_CBC_SHA",
    .ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA: "ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA",
    .ECDHE_RSA_WITH_3DES_EDE_CBC_SHA: "ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    .RSA_WITH_AES_128_GCM_SHA256: "RSA_WITH_AES_128_GCM_SHA256",
    .RSA_WITH_AES_256_GCM_SHA384: "RSA_WITH_AES_256_GCM_SHA384",
    .RSA_WITH_AES_128_CBC_SHA256: "RSA_WITH_AES_128_CBC_SHA256",
    .RSA_WITH_AES_256_CBC_SHA256: "RSA_WITH_AES_256_CBC_SHA256",
    .RSA_WITH_AES_128_CBC_SHA: "RSA_WITH_AES_128_CBC_SHA",
    .RSA_WITH_AES_256_CBC_SHA: "RSA_WITH_AES_256_CBC_SHA",
    .RSA_WITH_3DES_EDE_CBC_SHA: "RSA_WITH_3DES_EDE_CBC_SHA",
  ]
}

/// Apple's name for ``TLSCipherSuite``.
public typealias tls_ciphersuite_t = TLSCipherSuite

// MARK: TLS 1.3

extension TLSCipherSuite {
  /// `TLS_AES_128_GCM_SHA256` (RFC 8446).
  public static let AES_128_GCM_SHA256 = TLSCipherSuite(rawValue: 0x1301)
  /// `TLS_AES_256_GCM_SHA384` (RFC 8446).
  public static let AES_256_GCM_SHA384 = TLSCipherSuite(rawValue: 0x1302)
  /// `TLS_CHACHA20_POLY1305_SHA256` (RFC 8446).
  public static let CHACHA20_POLY1305_SHA256 = TLSCipherSuite(rawValue: 0x1303)
}

// MARK: TLS 1.2

extension TLSCipherSuite {
  /// `TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256` (RFC 5289).
  public static let ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = TLSCipherSuite(rawValue: 0xC02B)
  /// `TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384` (RFC 5289).
  public static let ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = TLSCipherSuite(rawValue: 0xC02C)
  /// `TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256` (RFC 7905).
  public static let ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = TLSCipherSuite(rawValue: 0xCCA9)
  /// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` (RFC 5289).
  public static let ECDHE_RSA_WITH_AES_128_GCM_SHA256 = TLSCipherSuite(rawValue: 0xC02F)
  /// `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` (RFC 5289).
  public static let ECDHE_RSA_WITH_AES_256_GCM_SHA384 = TLSCipherSuite(rawValue: 0xC030)
  /// `TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256` (RFC 7905).
  public static let ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = TLSCipherSuite(rawValue: 0xCCA8)
  /// `TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256` (RFC 5289).
  public static let ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = TLSCipherSuite(rawValue: 0xC023)
  /// `TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384` (RFC 5289).
  public static let ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = TLSCipherSuite(rawValue: 0xC024)
  /// `TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256` (RFC 5289).
  public static let ECDHE_RSA_WITH_AES_128_CBC_SHA256 = TLSCipherSuite(rawValue: 0xC027)
  /// `TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384` (RFC 5289).
  public static let ECDHE_RSA_WITH_AES_256_CBC_SHA384 = TLSCipherSuite(rawValue: 0xC028)
  /// `TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA` (RFC 8422).
  public static let ECDHE_ECDSA_WITH_AES_128_CBC_SHA = TLSCipherSuite(rawValue: 0xC009)
  /// `TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA` (RFC 8422).
  public static let ECDHE_ECDSA_WITH_AES_256_CBC_SHA = TLSCipherSuite(rawValue: 0xC00A)
  /// `TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA` (RFC 8422).
  public static let ECDHE_RSA_WITH_AES_128_CBC_SHA = TLSCipherSuite(rawValue: 0xC013)
  /// `TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA` (RFC 8422).
  public static let ECDHE_RSA_WITH_AES_256_CBC_SHA = TLSCipherSuite(rawValue: 0xC014)
  /// `TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA` (RFC 8422).
  public static let ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = TLSCipherSuite(rawValue: 0xC008)
  /// `TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA` (RFC 8422).
  public static let ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = TLSCipherSuite(rawValue: 0xC012)
  /// `TLS_RSA_WITH_AES_128_GCM_SHA256` (RFC 5288).
  public static let RSA_WITH_AES_128_GCM_SHA256 = TLSCipherSuite(rawValue: 0x009C)
  /// `TLS_RSA_WITH_AES_256_GCM_SHA384` (RFC 5288).
  public static let RSA_WITH_AES_256_GCM_SHA384 = TLSCipherSuite(rawValue: 0x009D)
  /// `TLS_RSA_WITH_AES_128_CBC_SHA256` (RFC 5246).
  public static let RSA_WITH_AES_128_CBC_SHA256 = TLSCipherSuite(rawValue: 0x003C)
  /// `TLS_RSA_WITH_AES_256_CBC_SHA256` (RFC 5246).
  public static let RSA_WITH_AES_256_CBC_SHA256 = TLSCipherSuite(rawValue: 0x003D)
  /// `TLS_RSA_WITH_AES_128_CBC_SHA` (RFC 5246).
  public static let RSA_WITH_AES_128_CBC_SHA = TLSCipherSuite(rawValue: 0x002F)
  /// `TLS_RSA_WITH_AES_256_CBC_SHA` (RFC 5246).
  public static let RSA_WITH_AES_256_CBC_SHA = TLSCipherSuite(rawValue: 0x0035)
  /// `TLS_RSA_WITH_3DES_EDE_CBC_SHA` (RFC 5246).
  public static let RSA_WITH_3DES_EDE_CBC_SHA = TLSCipherSuite(rawValue: 0x000A)
}

/// A version of TLS, as its number on the wire.
///
/// Has the names of `tls_protocol_version_t` on Apple's systems, so that
/// `metrics.negotiatedTLSProtocolVersion == .TLSv13` means the same here.
public struct TLSProtocolVersion: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// TLS 1.0 (RFC 2246).
  public static let TLSv10 = TLSProtocolVersion(rawValue: 0x0301)
  /// TLS 1.1 (RFC 4346).
  public static let TLSv11 = TLSProtocolVersion(rawValue: 0x0302)
  /// TLS 1.2 (RFC 5246).
  public static let TLSv12 = TLSProtocolVersion(rawValue: 0x0303)
  /// TLS 1.3 (RFC 8446).
  public static let TLSv13 = TLSProtocolVersion(rawValue: 0x0304)

  /// DTLS 1.0 (RFC 4347). Never negotiated here: TLS runs over TCP.
  public static let DTLSv10 = TLSProtocolVersion(rawValue: 0xFEFF)
  /// DTLS 1.2 (RFC 6347). Never negotiated here: TLS runs over TCP.
  public static let DTLSv12 = TLSProtocolVersion(rawValue: 0xFEFD)

  /// The number of the version in a handshake: 0x0304 is TLS 1.3.
  public let rawValue: UInt16

  /// Makes a version of any number.
  public init(rawValue: UInt16) {
    self.rawValue = rawValue
  }

  init?(openSSLName: String) {
    switch openSSLName {
    case "TLSv1": self = .TLSv10
    case "TLSv1.1": self = .TLSv11
    case "TLSv1.2": self = .TLSv12
    case "TLSv1.3": self = .TLSv13
    default: return nil
    }
  }

  /// `TLS 1.3`, or the number of a version without a name.
  public var description: String {
    switch self {
    case .TLSv10: "TLS 1.0"
    case .TLSv11: "TLS 1.1"
    case .TLSv12: "TLS 1.2"
    case .TLSv13: "TLS 1.3"
    case .DTLSv10: "DTLS 1.0"
    case .DTLSv12: "DTLS 1.2"
    default: "TLS 0x\(String(rawValue, radix: 16))"
    }
  }
}

/// Apple's name for ``TLSProtocolVersion``.
public typealias tls_protocol_version_t = TLSProtocolVersion
