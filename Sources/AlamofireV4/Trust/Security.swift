public import Alamofire

/// What a server has shown of itself.
public typealias SecTrust = Alamofire::ServerTrust
/// A certificate.
public typealias SecCertificate = Alamofire::Certificate
/// A public key.
public typealias SecKey = Alamofire::PublicKey
/// What a server has to fulfil besides a chain to a trusted certificate.
public typealias SecPolicy = Alamofire::TrustPolicy

/// A set of bits, as Apple's C interfaces take them.
public typealias CFOptionFlags = UInt

/// Revocation is looked up with OCSP responders (RFC 6960).
public let kSecRevocationOCSPMethod: CFOptionFlags = 1 << 0
/// Revocation is looked up in the issuers' lists (RFC 5280 §5).
public let kSecRevocationCRLMethod: CFOptionFlags = 1 << 1
/// Lists come first.
public let kSecRevocationPreferCRL: CFOptionFlags = 1 << 2
/// A certificate passes only if its issuer says that it was not revoked.
public let kSecRevocationRequirePositiveResponse: CFOptionFlags = 1 << 3
/// Nothing is asked over the network.
public let kSecRevocationNetworkAccessDisabled: CFOptionFlags = 1 << 4
/// OCSP and lists.
public let kSecRevocationUseAnyAvailableMethod: CFOptionFlags =
  kSecRevocationOCSPMethod | kSecRevocationCRLMethod
