/// A number that Apple's Security framework answers with; 0 is success.
public typealias OSStatus = Int32

/// The ``OSStatus`` of success.
public let errSecSuccess: OSStatus = 0

/// What Apple's Security framework says about a server.
public enum SecTrustResultType: UInt32, Sendable {
  /// Nothing was evaluated.
  case invalid = 0
  /// Trusted, since the user said so.
  case proceed = 1
  /// Not trusted, since the user said so.
  case deny = 3
  /// Trusted.
  case unspecified = 4
  /// Not trusted; other options could change that.
  case recoverableTrustFailure = 5
  /// Not trusted, whatever the options.
  case fatalTrustFailure = 6
  /// It could not be evaluated.
  case otherError = 7
}

extension OSStatus: AlamofireExtended {}
extension SecTrustResultType: AlamofireExtended {}

extension AlamofireExtension where ExtendedType == OSStatus {
  /// Whether the number stands for success.
  public var isSuccess: Bool { type == errSecSuccess }
}

extension AlamofireExtension where ExtendedType == SecTrustResultType {
  /// Whether the server is trusted: `unspecified` or `proceed`.
  public var isSuccess: Bool { type == .unspecified || type == .proceed }
}

extension ServerTrust.Failure {
  /// What Apple's Security framework would say.
  public var result: SecTrustResultType {
    switch kind {
    case .unavailable: .otherError
    case .revoked: .fatalTrustFailure
    default: .recoverableTrustFailure
    }
  }
}
