public import Foundation
import HTTPSystem

// The functions of Apple's Security framework that session delegates call to pin certificates and keys, over
// ``ServerTrust``, ``Certificate`` and ``PublicKey``. Types of Core Foundation, which Linux lacks, are replaced by the
// types of Swift and Foundation that Apple's systems bridge them to.

/// Apple's name for `Data`, where C functions accept it.
public typealias CFData = Data
/// Apple's name for `String`, where C functions accept it.
public typealias CFString = String
/// Apple's name for an array, where C functions accept it.
public typealias CFArray = [Any]
/// Apple's name for `NSError`, where functions in C return it.
public typealias CFError = NSError
/// Apple's name for a value of any type, where C functions accept it.
public typealias CFTypeRef = Any
/// Apple's name for `Int`, where functions in C count.
public typealias CFIndex = Int

/// The type of the allocators that C functions accept on Apple's systems. Linux has no such allocators: pass `nil`.
public enum CFAllocator: Sendable {}

/// The allocator that functions in C use without one: `nil`.
public let kCFAllocatorDefault: CFAllocator? = nil

/// The ``OSStatus`` of a parameter that cannot be used.
public let errSecParam: OSStatus = -50

/// The ``OSStatus`` of a function that does not exist for these parameters.
public let errSecUnimplemented: OSStatus = -4

// MARK: Trust

/// Makes a value for the certificates of a server.
///
/// ```swift
/// var trust: SecTrust?
/// let policy = SecPolicyCreateSSL(true, "example.com")
/// let status = SecTrustCreateWithCertificates([leaf, issuer], policy, &trust)
/// ```
///
/// - Parameters:
///   - certificates: A ``Certificate``, or an array of them: the server's own first, then others in any order.
///   - policies: A ``TrustPolicy``, or an array of them; `nil` asks for no host. ``ServerTrust/host`` is the one that
///     a policy requires, otherwise empty.
///   - trust: Receives the value, or `nil`.
/// - Returns: ``errSecSuccess``, or ``errSecParam`` without a certificate, or with something else among them.
@discardableResult
public func SecTrustCreateWithCertificates(
  _ certificates: CFTypeRef, _ policies: CFTypeRef?, _ trust: UnsafeMutablePointer<SecTrust?>
) -> OSStatus {
  trust.pointee = nil
  let chain = (certificates as? SecCertificate).map { [$0] } ?? certificates as? [SecCertificate] ?? []
  let requirements: [SecPolicy]
  switch policies {
  case nil: requirements = [.default]
  case let policy as SecPolicy: requirements = [policy]
  case let policies as [SecPolicy]: requirements = policies
  default: return errSecParam
  }
  guard !chain.isEmpty else { return errSecParam }
  let new = SecTrust(certificates: chain, host: requirements.lazy.compactMap(\.host).first ?? "")
  new.policies = requirements
  trust.pointee = new
  return errSecSuccess
}

/// Verifies a server as ``ServerTrust/evaluate()`` does, with its policies and anchors. Blocks its thread if a policy
/// asks about revocation over the network.
///
/// Delegates that were written for Apple's Security framework compile:
///
/// ```swift
/// func isPinned(_ trust: SecTrust, certificate: Data) -> Bool {
///   var error: CFError?
///   guard SecTrustEvaluateWithError(trust, &error) else { return false }
///   let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []
///   return chain.contains { SecCertificateCopyData($0) as Data == certificate }
/// }
/// ```
///
/// - Parameters:
///   - trust: The server.
///   - error: Receives the reason if it is not trusted: an error of `NSOSStatusErrorDomain` with the code
///     ``ServerTrust/Failure/status``; the failure is its underlying error. Stored as `nil` if it is trusted.
/// - Returns: Whether it is trusted.
@discardableResult
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
  do {
    try trust.evaluate()
    error?.pointee = nil
    return true
  } catch let failure {
    error?.pointee = NSError(
      domain: NSOSStatusErrorDomain, code: Int(failure.status),
      userInfo: [
        NSLocalizedDescriptionKey: failure.localizedDescription, NSUnderlyingErrorKey: failure as any Error,
      ])
    return false
  }
}

/// Verifies a server as ``ServerTrust/evaluate()`` does. Deprecated on Apple's systems in favour of
/// ``SecTrustEvaluateWithError(_:_:)``.
///
/// - Parameters:
///   - trust:  The server.
///   - result: Receives ``ServerTrust/Failure/result``, or `unspecified` if it is trusted.
/// - Returns: ``errSecSuccess``, trusted or not.
@discardableResult
public func SecTrustEvaluate(
  _ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>
) -> OSStatus {
  do {
    try trust.evaluate()
    result.pointee = .unspecified
  } catch {
    result.pointee = error.result
  }
  return errSecSuccess
}

/// Returns the certificates that really are the server's, its own first; see ``ServerTrust/serverCertificates``.
/// `nil` if it has shown none.
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? {
  let chain = trust.serverCertificates
  return chain.isEmpty ? nil : chain
}

/// Returns the number of ``ServerTrust/serverCertificates``.
public func SecTrustGetCertificateCount(_ trust: SecTrust) -> CFIndex { trust.serverCertificates.count }

/// Returns one of ``ServerTrust/serverCertificates``; 0 is the server's own. `nil` if there is no such index.
public func SecTrustGetCertificateAtIndex(_ trust: SecTrust, _ ix: CFIndex) -> SecCertificate? {
  let chain = trust.serverCertificates
  return chain.indices.contains(ix) ? chain[ix] : nil
}

/// Returns the public key of the server's own certificate; `nil` if it has none that can be read.
public func SecTrustCopyKey(_ trust: SecTrust) -> SecKey? { trust.certificates.first?.publicKey }

/// Replaces the policies so far.
///
/// - Parameters:
///   - trust:    The server.
///   - policies: A ``TrustPolicy``, or an array of them.
/// - Returns: ``errSecSuccess``, or ``errSecParam`` if `policies` holds something else; then nothing changes.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus {
  if let policy = policies as? SecPolicy {
    trust.policies = [policy]
  } else if let policies = policies as? [SecPolicy] {
    trust.policies = policies
  } else {
    return errSecParam
  }
  return errSecSuccess
}

/// Makes these certificates the only ones that chains may end at.
///
/// - Returns: ``errSecSuccess``, or ``errSecParam`` if the array holds something else; then nothing changes.
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchorCertificates: CFArray?) -> OSStatus {
  let certificates = anchorCertificates?.compactMap { $0 as? SecCertificate }
  guard certificates?.count == anchorCertificates?.count else { return errSecParam }
  trust.anchors = certificates
  return errSecSuccess
}

/// Says whether the trust store counts in addition to the anchors that were set. On Linux the trust store never counts
/// then.
///
/// - Returns: ``errSecSuccess`` for `true`; ``errSecUnimplemented`` for `false` if anchors were set.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(
  _ trust: SecTrust, _ anchorCertificatesOnly: Bool
) -> OSStatus {
  anchorCertificatesOnly || trust.anchors == nil ? errSecSuccess : errSecUnimplemented
}

/// Returns the policy for servers.
///
/// - Parameters:
///   - server: Whether the certificates are a server's. Client certificates are evaluated in the same way.
///   - hostname: The host that the certificate has to be valid for; `nil` is any.
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy {
  hostname.map { SecPolicy.hostname($0) } ?? .default
}

/// Returns the policy that asks for no host.
public func SecPolicyCreateBasicX509() -> SecPolicy { .default }

// MARK: Certificates and keys

/// Reads one certificate as DER; `nil` if `data` is not one.
///
/// - Parameters:
///   - allocator: No meaning here; pass `nil`.
///   - data:      The certificate.
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
  SecCertificate(data: data)
}

/// Returns the certificate as DER.
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { certificate.data }

/// Returns the public key of the certificate; `nil` when there is none that can be read.
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? { certificate.publicKey }

/// Returns the common name of the subject, or the last part of its name if it has none; `nil` if it has no name.
public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> CFString? {
  certificate.parsed.subjectSummary
}

/// Returns the key without its algorithm: PKCS#1 (RFC 8017 §A.1.1) for RSA, the point in the form of ANSI X9.63 for
/// elliptic curves. The pins of ``PublicKeyPin`` are computed from ``PublicKey/data``, which begins with the algorithm.
///
/// - Parameters:
///   - key:   The key.
///   - error: Receives the reason if there is one; the caller releases it.
/// - Returns: `nil` if the key cannot be read.
public func SecKeyCopyExternalRepresentation(
  _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  if let content = X509PublicKey.content(of: key.data) { return content }
  let reason = NSError(
    domain: NSOSStatusErrorDomain, code: Int(errSecParam),
    userInfo: [NSLocalizedDescriptionKey: "The public key cannot be read."])
  error?.pointee = .passRetained(reason)
  return nil
}

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
