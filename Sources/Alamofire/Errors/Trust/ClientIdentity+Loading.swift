public import Foundation
import HTTPSystem
public import HTTPWire

extension ClientIdentity {
  /// The reasons why an identity could not be created.
  public enum Failure: Error, Sendable, Equatable, LocalizedError {
    /// The bytes are neither a PKCS#12 file nor PEM; the text is OpenSSL's message.
    case unreadable(String)
    /// The passphrase is wrong, or missing.
    case wrongPassphrase
    /// The bytes contain no certificate.
    case noCertificate
    /// The bytes contain no private key.
    case noPrivateKey
    /// The private key does not belong to the first certificate.
    case keyDoesNotMatch
    /// The certificate is no longer valid.
    case expired
    /// The certificate is not valid yet.
    case notYetValid

    init(_ fault: IdentityFault) {
      self =
        switch fault {
        case .unreadable(let detail): .unreadable(detail)
        case .wrongPassphrase: .wrongPassphrase
        case .noCertificate: .noCertificate
        case .noPrivateKey: .noPrivateKey
        case .keyDoesNotMatch: .keyDoesNotMatch
        case .expired: .expired
        case .notYetValid: .notYetValid
        }
    }

    /// The fault and its remedy.
    public var errorDescription: String? {
      switch self {
      case .unreadable(let detail):
        "The client identity could not be read; it has to be PKCS#12, or PEM. (\(detail))"
      case .wrongPassphrase: "The passphrase of the client identity is wrong, or missing."
      case .noCertificate: "The client identity has no certificate."
      case .noPrivateKey: "The client identity has no private key."
      case .keyDoesNotMatch:
        "The private key of the client identity does not belong to its certificate, which has to be the first one."
      case .expired: "The certificate of the client identity has expired."
      case .notYetValid:
        "The certificate of the client identity is not valid yet; check the clock of this machine."
      }
    }
  }

  /// Reads a PKCS#12 file (RFC 7292; `.p12`, `.pfx`).
  ///
  /// Files with ciphers of before 2010 (RC2, 40 bits) are refused as unreadable where OpenSSL's legacy provider is not
  /// loaded; `openssl pkcs12 -legacy` converts them.
  ///
  /// - Parameters:
  ///   - data: The whole file.
  ///   - passphrase: Its passphrase; empty for a file without one.
  public init(pkcs12 data: Data, passphrase: String) throws(Failure) {
    self = try Self.read(pkcs12: data, passphrase: passphrase).mapError(Failure.init).get()
  }

  /// Reads PEM texts (RFC 7468).
  ///
  /// - Parameters:
  ///   - certificates: The client's certificate, then its issuers' certificates, in one text.
  ///   - privateKey: A text with the private key, PKCS#8 or of an older kind; may be the same one.
  ///   - passphrase: For a key that is encrypted; without meaning for others.
  public init(pem certificates: Data, privateKey: Data, passphrase: String? = nil) throws(Failure) {
    self = try Self.read(certificates: certificates, privateKey: privateKey, passphrase: passphrase)
      .mapError(Failure.init).get()
  }
}
