public import Foundation

extension ServerTrust {
  /// Why a server is not trusted.
  ///
  /// It is inside of `AFError.ServerTrustFailureReason.trustEvaluationFailed(error:)`:
  ///
  /// ```swift
  /// if let failure = response.error?.underlyingError as? ServerTrust.Failure, failure.kind == .expired {
  ///   show(failure.localizedDescription)
  /// }
  /// ```
  public struct Failure: LocalizedError, Sendable, Hashable {
    /// What is wrong, in terms that a program can act on. There may be more kinds in later versions.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
      /// The name of the kind, such as `expired`.
      public let description: String

      /// The certificate is for other hosts, or has no alternative name (SAN).
      public static let hostMismatch = Kind(description: "hostMismatch")
      /// The time of a certificate is over.
      public static let expired = Kind(description: "expired")
      /// The time of a certificate has not begun.
      public static let notYetValid = Kind(description: "notYetValid")
      /// No path leads to a trusted certificate.
      public static let unknownRoot = Kind(description: "unknownRoot")
      /// A certificate was revoked.
      public static let revoked = Kind(description: "revoked")
      /// It had to be known that no certificate was revoked, and is not.
      public static let revocationUnknown = Kind(description: "revocationUnknown")
      /// A certificate must not be used for this: too weak, for another purpose, against a constraint, or broken.
      public static let untrusted = Kind(description: "untrusted")
      /// It could not be verified for reasons of this machine, such as a lack of memory.
      public static let unavailable = Kind(description: "unavailable")
    }

    /// What is wrong.
    public let kind: Kind
    /// How far from the server's own certificate, which is 0, the one stands that is not trusted.
    public let certificateIndex: Int
    /// Sentences: what is wrong, and what to do about it.
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

    /// The number that Apple's Security framework has for it.
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
