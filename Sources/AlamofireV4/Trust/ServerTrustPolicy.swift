public import Alamofire
public import Foundation

/// How it is decided whether a server is who it claims to be.
public enum ServerTrustPolicy {
  /// By the trust store and the dates, and by the host if that is asked for.
  case performDefaultEvaluation(validateHost: Bool)
  /// Like that, and no certificate may have been revoked; the flags are those of `kSecRevocation…`.
  case performRevokedEvaluation(validateHost: Bool, revocationFlags: CFOptionFlags)
  /// One of the certificates has to be one of these. With validation of the chain these are the only ones that
  /// it may end at, in the place of the trust store; without it neither dates nor host are looked at.
  case pinCertificates(certificates: [SecCertificate], validateCertificateChain: Bool, validateHost: Bool)
  /// One of the public keys has to be one of these. With validation of the chain, the trust store counts as
  /// well; without it neither dates nor host are looked at.
  case pinPublicKeys(publicKeys: [SecKey], validateCertificateChain: Bool, validateHost: Bool)
  /// Every server is trusted, which is to say that anybody on the way can read and change everything.
  case disableEvaluation
  /// As the closure says. It is called on any thread, and may take its time.
  case customEvaluation((_ serverTrust: SecTrust, _ host: String) -> Bool)

  /// The certificates in the files `*.cer`, `*.crt`, `*.der` and `*.pem` of a bundle; files that hold none are
  /// passed over.
  public static func certificates(in bundle: Bundle = Bundle.main) -> [SecCertificate] {
    bundle.af.certificates
  }

  /// The public keys of ``certificates(in:)``.
  public static func publicKeys(in bundle: Bundle = Bundle.main) -> [SecKey] { bundle.af.publicKeys }

  /// Whether this policy trusts the server. May change the policies and anchors of `serverTrust`, and asks the
  /// network where revocation is looked up.
  public func evaluate(_ serverTrust: SecTrust, forHost host: String) -> Bool {
    do {
      try evaluator.evaluate(serverTrust, forHost: host)
      return true
    } catch {
      return false
    }
  }
}
