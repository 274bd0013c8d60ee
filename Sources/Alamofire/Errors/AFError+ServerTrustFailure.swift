extension AFError {
  /// The reasons why a server was not trusted.
  ///
  /// The evaluators of this library throw `noRequiredEvaluator`, `noCertificatesFound`, `noPublicKeysFound`,
  /// `trustEvaluationFailed`, `certificatePinningFailed` and `publicKeyPinningFailed`; the others come from Apple's
  /// older systems, for your own evaluators.
  public enum ServerTrustFailureReason: Sendable {
    /// The result of an evaluation, in the terms of Apple's Security framework.
    public struct Output: Sendable {
      /// The host of the request.
      public let host: String
      /// The certificates of the server.
      public let trust: SecTrust
      /// The status code of the failure.
      public let status: OSStatus
      /// The result.
      public let result: SecTrustResultType

      /// Makes an output of its parts.
      public init(_ host: String, _ trust: SecTrust, _ status: OSStatus, _ result: SecTrustResultType) {
        self.host = host
        self.trust = trust
        self.status = status
        self.result = result
      }
    }

    /// Every host needs an evaluator, and there is none for this one.
    case noRequiredEvaluator(host: String)
    /// Certificates are to be pinned, but none were found.
    case noCertificatesFound
    /// Public keys are to be pinned, but none were found.
    case noPublicKeysFound
    /// A policy could not be set.
    case policyApplicationFailed(trust: SecTrust, policy: SecPolicy, status: OSStatus)
    /// Anchors could not be set.
    case settingAnchorCertificatesFailed(status: OSStatus, certificates: [SecCertificate])
    /// The policy that checks for revoked certificates could not be created.
    case revocationPolicyCreationFailed
    /// The certificate chain was not accepted; the error is a ``ServerTrust/Failure``.
    case trustEvaluationFailed(error: (any Error)?)
    /// The certificate chain was not accepted, without a check of the host.
    case defaultEvaluationFailed(output: Output)
    /// The certificate chain was not accepted for the host.
    case hostValidationFailed(output: Output)
    /// A certificate was revoked, or it is not known whether one was.
    case revocationCheckFailed(output: Output, options: RevocationTrustEvaluator.Options)
    /// No certificate of the server is one of the pinned ones.
    case certificatePinningFailed(
      host: String, trust: SecTrust, pinnedCertificates: [SecCertificate],
      serverCertificates: [SecCertificate])
    /// No public key of the server is a pinned one. `pinnedKeys` does not contain keys that are pinned by their
    /// digests; ``requiredPins`` and the error description name these.
    case publicKeyPinningFailed(host: String, trust: SecTrust, pinnedKeys: [SecKey], serverKeys: [SecKey])
    /// An evaluator of the user's own refused.
    case customEvaluationFailed(error: any Error)
  }
}

extension AFError.ServerTrustFailureReason {
  /// The pins of which the server's keys had to match one: the pins of a ``PublicKeysTrustEvaluator`` or `pinnedKeys`.
  /// Empty for every reason except `publicKeyPinningFailed`.
  ///
  /// ```swift
  /// if case .serverTrustEvaluationFailed(let reason) = error { print(reason.requiredPins) }
  /// ```
  public var requiredPins: [PublicKeyPin] {
    guard case .publicKeyPinningFailed(_, let trust, let pinnedKeys, _) = self else { return [] }
    // An evaluator of the user's own names only its keys.
    return trust.requiredPins.isEmpty ? pinnedKeys.map(\.pin) : trust.requiredPins
  }

  var underlyingError: (any Error)? {
    switch self {
    case .customEvaluationFailed(let error): error
    case .trustEvaluationFailed(let error): error
    case .noRequiredEvaluator, .noCertificatesFound, .noPublicKeysFound, .policyApplicationFailed,
      .settingAnchorCertificatesFailed, .revocationPolicyCreationFailed, .defaultEvaluationFailed,
      .hostValidationFailed, .revocationCheckFailed, .certificatePinningFailed, .publicKeyPinningFailed:
      nil
    }
  }

  var message: String { "The server was not trusted: " + sentence }

  private var sentence: String {
    switch self {
    case .noRequiredEvaluator(let host):
      "all hosts need an evaluator, and there is none for \(host). "
        + "Add one to the ServerTrustManager, or set allHostsMustBeEvaluated to false."
    case .noCertificatesFound: "no certificates were found to pin."
    case .noPublicKeysFound: "no public keys were found to pin."
    case .policyApplicationFailed(let trust, let policy, let status):
      "\(policy) could not be applied to the certificates of \(trust.host) (status \(status))."
    case .settingAnchorCertificatesFailed(let status, let certificates):
      "\(certificates.count) certificates could not be made its anchors (status \(status))."
    case .revocationPolicyCreationFailed: "the check for revoked certificates could not be set up."
    case .trustEvaluationFailed(let error):
      error?.message ?? "its certificate chain was not accepted."
    case .defaultEvaluationFailed(let output): "its certificate chain was not accepted (\(output.summary))."
    case .hostValidationFailed(let output): "its certificate is not valid for the host (\(output.summary))."
    case .revocationCheckFailed(let output, _):
      "one of its certificates was revoked, or may have been (\(output.summary))."
    case .certificatePinningFailed(let host, _, let pinned, let shown):
      "none of the \(pinned.count) pinned certificates is one of \(host), which has shown: "
        + shown.map(\.subject).joined(separator: "; ") + "."
    case .publicKeyPinningFailed(let host, _, _, let shown):
      "none of the pinned public keys is one of \(host). Pinned: " + Self.list(requiredPins)
        + ". Keys of the server: " + Self.list(shown.map(\.pin)) + "."
    case .customEvaluationFailed(let error): "an evaluator refused it: \(error.message)"
    }
  }

  private static func list(_ pins: [PublicKeyPin]) -> String {
    pins.isEmpty ? "none" : pins.map(\.description).joined(separator: ", ")
  }
}

extension AFError.ServerTrustFailureReason.Output {
  fileprivate var summary: String { "host \(host), status \(status), result \(result)" }
}
