public import Foundation

extension ServerTrust {
  /// The reason why a server is not trusted.
  ///
  /// It is the error of `AFError.ServerTrustFailureReason.trustEvaluationFailed(error:)`:
  ///
  /// ```swift
  /// if let failure = response.error?.underlyingError as? ServerTrust.Failure, failure.kind == .expired {
  ///   show(failure.localizedDescription)
  /// }
  /// ```
  public struct Failure: LocalizedError, Sendable, Hashable {
    /// The kind of a failure. Later versions may add kinds.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
      /// The name of the kind, such as `expired`.
      public let description: String

      /// The certificate is for other hosts, or has no subject alternative name (SAN).
      public static let hostMismatch = Kind(description: "hostMismatch")
      /// A certificate has expired.
      public static let expired = Kind(description: "expired")
      /// A certificate is not valid yet.
      public static let notYetValid = Kind(description: "notYetValid")
      /// No path leads to a trusted certificate.
      public static let unknownRoot = Kind(description: "unknownRoot")
      /// A certificate was revoked.
      public static let revoked = Kind(description: "revoked")
      /// The status of a certificate is unknown, but was required.
      public static let revocationUnknown = Kind(description: "revocationUnknown")
      /// A certificate is too weak, for another purpose, violates a constraint, or is invalid.
      public static let untrusted = Kind(description: "untrusted")
      /// The evaluation failed on this machine, for example because of a lack of memory.
      public static let unavailable = Kind(description: "unavailable")
    }

    /// The kind of the failure.
    public let kind: Kind
    /// The index of the untrusted certificate in the path; 0 is the server's own.
    public let certificateIndex: Int
    /// The error message: the failure and its remedy.
    public let errorDescription: String?

    init(kind: Kind, certificateIndex: Int, message: String) {
      self.kind = kind
      self.certificateIndex = certificateIndex
      errorDescription = message
    }

    init(_ failure: ChainFailure, host: String) {
      self.init(
        kind: Kind(description: failure.kind.rawValue), certificateIndex: failure.certificateIndex,
        message: failure.message(for: host))
    }

    /// The status code of Apple's Security framework.
    public var status: OSStatus {
      switch kind {
      case .hostMismatch: -67602
      case .expired: -67818
      case .notYetValid: -67819
      case .revoked: -67820
      case .revocationUnknown: -67635
      case .unavailable: -108
      default: -67843
      }
    }
  }
}

extension ServerTrust.Failure: NSErrorConvertible {}
