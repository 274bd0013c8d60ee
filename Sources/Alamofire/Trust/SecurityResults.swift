/// A status code of Apple's Security framework; 0 is success.
public typealias OSStatus = Int32

/// The ``OSStatus`` of success.
public let errSecSuccess: OSStatus = 0

/// The result type of an evaluation in Apple's Security framework.
public enum SecTrustResultType: UInt32, Sendable {
  /// Not evaluated.
  case invalid = 0
  /// Trusted by decision of the user.
  case proceed = 1
  /// Not trusted by decision of the user.
  case deny = 3
  /// Trusted.
  case unspecified = 4
  /// Not trusted; other options could change that.
  case recoverableTrustFailure = 5
  /// Not trusted, whatever the options.
  case fatalTrustFailure = 6
  /// Not evaluated, because of another error.
  case otherError = 7
}

extension OSStatus: AlamofireExtended {}
extension SecTrustResultType: AlamofireExtended {}

extension AlamofireExtension where ExtendedType == OSStatus {
  /// Whether the code is success.
  public var isSuccess: Bool { type == errSecSuccess }
}

extension AlamofireExtension where ExtendedType == SecTrustResultType {
  /// Whether the server is trusted: `unspecified` or `proceed`.
  public var isSuccess: Bool { type == .unspecified || type == .proceed }
}

extension ServerTrust.Failure {
  /// The result type that Apple's Security framework would return.
  public var result: SecTrustResultType {
    switch kind {
    case .unavailable: .otherError
    case .revoked: .fatalTrustFailure
    default: .recoverableTrustFailure
    }
  }
}
