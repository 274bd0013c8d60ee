/// A requirement for a server besides a chain to a trusted certificate: the counterpart of Apple's `SecPolicy`.
///
/// ```swift
/// let policy = TrustPolicy.hostname("example.com")
/// try trust.af.evaluate(afterApplying: policy)
/// ```
public struct TrustPolicy: Sendable, Hashable, CustomStringConvertible {
  enum Requirement: Hashable {
    case server(host: String?)
    case revocation(RevocationTrustEvaluator.Options)
  }

  let requirement: Requirement

  /// The host that is required.
  var host: String? {
    guard case .server(let host) = requirement else { return nil }
    return host
  }

  /// The certificates are those of a server, with any name.
  public static let `default` = TrustPolicy(requirement: .server(host: nil))

  /// Requires a certificate that is valid for `host`, a name or an address without brackets (RFC 9525), by a subject
  /// alternative name (SAN). A leading `*.` stands for one label. The common name is not used.
  public static func hostname(_ host: String) -> TrustPolicy {
    TrustPolicy(requirement: .server(host: host))
  }

  /// Requires that no certificate of the chain is revoked; see ``RevocationTrustEvaluator``.
  public static func revocation(options: RevocationTrustEvaluator.Options) -> TrustPolicy {
    TrustPolicy(requirement: .revocation(options))
  }

  /// The name of the policy.
  public var description: String {
    switch requirement {
    case .server(nil): "TrustPolicy.default"
    case .server(let host?): "TrustPolicy.hostname(\(host))"
    case .revocation(let options): "TrustPolicy.revocation(\(options.rawValue))"
    }
  }
}

/// Apple's name for ``TrustPolicy``.
public typealias SecPolicy = TrustPolicy

extension TrustPolicy: AlamofireExtended {}

extension AlamofireExtension where ExtendedType == SecPolicy {
  /// ``TrustPolicy/default``.
  public static var `default`: SecPolicy { .default }

  /// Makes ``TrustPolicy/hostname(_:)``.
  public static func hostname(_ hostname: String) -> SecPolicy { .hostname(hostname) }

  /// Makes ``TrustPolicy/revocation(options:)``. Never throws; on Apple's systems it may.
  public static func revocation(options: RevocationTrustEvaluator.Options) throws -> SecPolicy {
    .revocation(options: options)
  }
}
