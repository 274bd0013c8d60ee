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
