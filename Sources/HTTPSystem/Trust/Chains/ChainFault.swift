import COpenSSL
package import HTTPWire

/// The reason why a chain of certificates is not trusted.
package struct ChainFault: Error, Sendable, Equatable {
  package let kind: TransportFailure.FailureKind
  /// OpenSSL's error (`X509_V_ERR_…`), or 0 if it is none of these.
  package let code: Int32
  /// The position of the certificate that is not trusted. The server's own certificate is 0.
  package let depth: Int
  /// The message, with `{host}` for the host.
  private let template: String

  package init(kind: TransportFailure.FailureKind, code: Int32 = 0, depth: Int = 0, message: String) {
    self.kind = kind
    self.code = code
    self.depth = depth
    template = message
  }

  /// Returns the message, with the fault in the certificates of `host` and an advice.
  package func message(for host: String) -> String { template.replacing("{host}", with: host) }

  package var isHostMismatch: Bool {
    code == X509_V_ERR_HOSTNAME_MISMATCH || code == X509_V_ERR_IP_ADDRESS_MISMATCH
  }
  /// Whether the certificate or an authority of its path is not valid for a host.
  package var isAboutName: Bool {
    isHostMismatch || code == X509_V_ERR_PERMITTED_VIOLATION || code == X509_V_ERR_EXCLUDED_VIOLATION
  }
  package var isRevocation: Bool { code == X509_V_ERR_CERT_REVOKED }
  package var isRevocationUnknown: Bool { code == X509_V_ERR_UNABLE_TO_GET_CRL }

  /// Makes the fault of trusted certificates that could not be read.
  ///
  /// - Parameter advice: The advice, as the rest of a sentence.
  static func unreadable(_ what: String, advice: String = "check that the PEM is complete") -> ChainFault {
    ChainFault(
      kind: .certificateUntrusted,
      message: "The trusted certificates could not be read from \(what); \(advice).")
  }

  /// Makes the fault of a machine without trusted certificates.
  static func noAuthorities(in place: String?) -> ChainFault {
    ChainFault(
      kind: .certificateHasUnknownRoot,
      message:
        "The certificate of {host} cannot be verified: this machine has no trusted certificates"
        + (place.map { " in \($0)" } ?? "")
        + ". Install the package ca-certificates, or name a trust store (TransportOptions.trustStore).")
  }

  static let noMemory = ChainFault(
    kind: .resourceUnavailable, message: "There is not enough memory to verify the certificate.")

  /// Returns the fault of a certificate with a forbidden form.
  static func malformed(_ reason: String, depth: Int) -> ChainFault {
    ChainFault(
      kind: .certificateUntrusted, depth: depth,
      message:
        "The certificate of {host} is not trusted: certificate \(depth) of its chain is malformed, \(reason)."
    )
  }

  static func revoked(depth: Int) -> ChainFault { verdict(X509_V_ERR_CERT_REVOKED, depth: depth) }

  /// Returns the fault of a certificate on a list that cannot be used. The list may be right, so the certificate is
  /// refused.
  static func listed(_ reason: String, depth: Int) -> ChainFault {
    ChainFault(
      kind: .certificateUntrusted, code: X509_V_ERR_CERT_REVOKED, depth: depth,
      message:
        "A list (CRL) revokes certificate \(depth) of {host}, but cannot be used: \(reason). Give a full list, or remove this one."
    )
  }

  /// Returns the fault of a certificate with an unknown revocation status, although the status is required.
  static func revocationUnknown(_ reason: String, depth: Int) -> ChainFault {
    ChainFault(
      kind: .certificateUntrusted, code: X509_V_ERR_UNABLE_TO_GET_CRL, depth: depth,
      message:
        "The revocation status of certificate \(depth) of {host} is required, but unknown: \(reason).")
  }

  /// Returns the fault for an error of OpenSSL.
  static func verdict(_ code: Int32, depth: Int) -> ChainFault {
    let (kind, advice) = meaning(of: code)
    let said = String(cString: X509_verify_cert_error_string(Int(code)))
    return ChainFault(
      kind: kind, code: code, depth: depth,
      message: "\(advice) (OpenSSL \(code), certificate \(depth): \(said))")
  }

  private static func meaning(of code: Int32) -> (TransportFailure.FailureKind, String) {
    switch code {
    case X509_V_ERR_CERT_NOT_YET_VALID:
      (
        .certificateNotYetValid,
        "The certificate of {host} is not valid yet; check the clock of this machine."
      )
    case X509_V_ERR_CERT_HAS_EXPIRED: (.certificateHasBadDate, "The certificate of {host} has expired.")
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
      X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      (
        .certificateHasUnknownRoot,
        "The certificate of {host} does not lead to a trusted root; add its authority to the trust store if it is yours."
      )
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
      (
        .certificateUntrusted,
        "The certificate of {host} is not valid for this host: none of its alternative names (SAN) is the one in the URL."
      )
    case X509_V_ERR_CERT_REVOKED: (.certificateUntrusted, "The certificate of {host} has been revoked.")
    case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_NOT_YET_VALID:
      (
        .certificateUntrusted,
        "The revocation status of the certificate of {host} is unknown: there is no valid list (CRL)."
      )
    case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION:
      (
        .certificateUntrusted,
        "An authority in the chain of {host} may not issue certificates for it (name constraints)."
      )
    case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
      (.certificateUntrusted, "A key or signature of the certificate chain of {host} is too weak.")
    case X509_V_ERR_OUT_OF_MEM:
      (.resourceUnavailable, "There is not enough memory to verify the certificate.")
    default: (.certificateUntrusted, "The certificate of {host} is not trusted.")
    }
  }
}
