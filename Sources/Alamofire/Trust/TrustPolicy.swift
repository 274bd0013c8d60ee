/// What a server has to fulfil besides a chain to a trusted certificate: what `SecPolicy` is on Apple's systems.
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

  /// That the certificates are those of a server, of whatever name.
  public static let `default` = TrustPolicy(requirement: .server(host: nil))

  /// That the server's certificate is valid for `host`, a name or an address without brackets (RFC 9525): by one of
  /// its alternative names (SAN), of which `*.` at the front stands for one label. The common name does not count.
  public static func hostname(_ host: String) -> TrustPolicy {
    TrustPolicy(requirement: .server(host: host))
  }

  /// That no certificate of the chain is revoked; see ``RevocationTrustEvaluator``.
  public static func revocation(options: RevocationTrustEvaluator.Options) -> TrustPolicy {
    TrustPolicy(requirement: .revocation(options))
  }

  /// What is asked for.
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

  /// ``TrustPolicy/hostname(_:)``.
  public static func hostname(_ hostname: String) -> SecPolicy { .hostname(hostname) }

  /// ``TrustPolicy/revocation(options:)``. Throws nothing here; Apple's systems may fail to make it.
  public static func revocation(options: RevocationTrustEvaluator.Options) throws -> SecPolicy {
    .revocation(options: options)
  }
}
