public import Foundation
import HTTPSystem
public import HTTPWire

/// A certificate (X.509, RFC 5280), the counterpart of Apple's `SecCertificate`. Two are equal if their bytes are.
///
/// ```swift
/// let certificate = try Certificate.all(in: Data(contentsOf: file)).first
/// ```
public struct Certificate: Sendable, Hashable, CustomStringConvertible {
  let parsed: X509Certificate

  init(_ parsed: X509Certificate) { self.parsed = parsed }

  /// Reads one certificate as DER; `nil` if `data` is not one, or has bytes after it. For PEM, see ``all(in:)-(Data)``.
  public init?(data: Data) {
    guard let parsed = X509Certificate(der: data) else { return nil }
    self.parsed = parsed
  }

  /// The certificate as DER.
  public var data: Data { parsed.der }
  /// The subject, on one line (RFC 2253).
  public var subject: String { parsed.subject }
  /// The issuer, on one line (RFC 2253).
  public var issuer: String { parsed.issuer }
  /// The serial number, as hexadecimal digits.
  public var serialNumber: String { parsed.serialNumber }
  /// The validity period; `nil` if it cannot be read.
  public var validity: ClosedRange<Date>? {
    parsed.validity.map { seconds in
      Date(
        timeIntervalSince1970: Double(seconds.lowerBound))...Date(
          timeIntervalSince1970: Double(seconds.upperBound))
    }
  }
  /// The host names of the subject alternative name (SAN), including wildcards.
  public var hostNames: [String] { parsed.hostNames }
  /// The IP addresses of the subject alternative name (SAN).
  public var addresses: [String] { parsed.addresses }
  /// Whether it was signed with its own key.
  public var isSelfSigned: Bool { parsed.isSelfSigned }
  /// The public key; `nil` if it cannot be read.
  public var publicKey: PublicKey? { parsed.publicKey.flatMap { PublicKey(unchecked: $0) } }

  /// The subject.
  public var description: String { ReadableText.line("Certificate(\(subject))") }
}

/// Apple's name for ``Certificate``.
public typealias SecCertificate = Certificate

extension Certificate {
  /// The error of reading certificates or keys.
  public struct ReadingError: LocalizedError, Sendable, Equatable {
    /// The path, if they were read from a file.
    public let path: String?
    /// The fault, and the expected format.
    public let errorDescription: String?

    init(path: String? = nil, _ message: String) {
      self.path = path
      errorDescription = path.map { "\($0): \(message)" } ?? message
    }

    static let noCertificate =
      "This is not a certificate; it has to be DER, or PEM (-----BEGIN CERTIFICATE-----)."
  }

  /// Returns all certificates of a PEM text (RFC 7468) in their order, or the single one in DER bytes. Other text, and
  /// keys, are ignored.
  ///
  /// - Throws: ``ReadingError`` if there is none, or one of them is invalid.
  public static func all(in data: Data) throws -> [Certificate] {
    guard let certificates = X509Certificate.all(in: data), !certificates.isEmpty else {
      throw ReadingError(ReadingError.noCertificate)
    }
    return certificates.map { Certificate($0) }
  }

  /// Reads all certificates of a file; see ``all(in:)-(Data)``.
  ///
  /// The file may have at most 16 MiB. A pipe is read until its writer closes it, and the call blocks until then; a
  /// pipe without a writer is an error.
  ///
  /// - Throws: ``ReadingError``, also for a folder.
  public static func all(contentsOf file: URL) throws -> [Certificate] {
    let data: Data
    do throws(FileReadingFailure) {
      data = Data(try BoundedFile.content(of: file.path))
    } catch {
      throw ReadingError(path: file.path, "This file cannot be read (\(error.reason)).")
    }
    guard let certificates = X509Certificate.all(in: data), !certificates.isEmpty else {
      throw ReadingError(path: file.path, ReadingError.noCertificate)
    }
    return certificates.map { Certificate($0) }
  }

  /// Reads all certificates of the files `*.cer`, `*.crt`, `*.der` and `*.pem` of a folder, by the names of the files.
  /// Its subfolders are ignored.
  ///
  /// - Throws: ``ReadingError`` when the folder or one of these files cannot be read, or a file holds no
  ///   certificate.
  public static func all(inFolder folder: URL) throws -> [Certificate] {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch {
      throw ReadingError(path: folder.path, error.localizedDescription)
    }
    let files = names.filter { CertificateFiles.endings.contains(($0 as NSString).pathExtension) }.sorted()
      .map { folder.appendingPathComponent($0) }
    return try files.filter { !isFolder($0) }.flatMap { try all(contentsOf: $0) }
  }

  private static func isFolder(_ file: URL) -> Bool {
    var isFolder: ObjCBool = false
    return FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder) && isFolder.boolValue
  }
}

/// Names of files that hold certificates.
enum CertificateFiles {
  static let endings = ["cer", "CER", "crt", "CRT", "der", "DER", "pem", "PEM"]
}

extension Certificate: AlamofireExtended {}

extension AlamofireExtension where ExtendedType == SecCertificate {
  /// ``Certificate/publicKey``.
  public var publicKey: SecKey? { type.publicKey }
}

extension Array: AlamofireExtended where Element == SecCertificate {}

extension AlamofireExtension where ExtendedType == [SecCertificate] {
  /// The certificates as DER.
  public var data: [Data] { type.map(\.data) }

  /// The public keys of all certificates, without unreadable ones.
  public var publicKeys: [SecKey] { type.compactMap(\.publicKey) }
}

extension Bundle: AlamofireExtended {}

extension AlamofireExtension where ExtendedType: Bundle {
  /// The certificates in the files `*.cer`, `*.crt`, `*.der` and `*.pem` of the bundle, each DER or PEM, sorted by
  /// path. Files without a certificate are ignored; `Certificate.all(inFolder:)` throws for them.
  public var certificates: [SecCertificate] {
    paths(forResourcesOfTypes: CertificateFiles.endings).flatMap { path in
      (try? Certificate.all(contentsOf: URL(fileURLWithPath: path))) ?? []
    }
  }

  /// The public keys of `certificates`.
  public var publicKeys: [SecKey] { certificates.compactMap(\.publicKey) }

  /// Returns the paths of all resources with one of these endings, sorted, each once.
  public func paths(forResourcesOfTypes types: [String]) -> [String] {
    Set(types.flatMap { type.paths(forResourcesOfType: $0, inDirectory: nil) }).sorted()
  }
}

extension Certificate.ReadingError: NSErrorConvertible {}

/// A public key with its algorithm (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7), the counterpart of Apple's `SecKey`.
/// Two are equal if their bytes are.
///
/// ```swift
/// let key = try PublicKey.all(in: Data(contentsOf: file)).first
/// print(key?.pin ?? "there is none")
/// ```
public struct PublicKey: Sendable, Hashable, CustomStringConvertible {
  /// SubjectPublicKeyInfo as DER.
  public let data: Data

  init(unchecked data: Data) { self.data = data }

  /// Reads one key (SubjectPublicKeyInfo) as DER; `nil` if `data` is not a key, or has bytes after it.
  public init?(data: Data) {
    guard X509PublicKey.all(in: data) == [data] else { return nil }
    self.data = data
  }

  /// Reads all keys of a PEM text (`-----BEGIN PUBLIC KEY-----`), in its order, or the single one in DER bytes. Text
  /// around them is skipped.
  ///
  /// - Throws: ``Certificate/ReadingError`` when there is none, or one of them is broken.
  public static func all(in data: Data) throws -> [PublicKey] {
    guard let keys = X509PublicKey.all(in: data), !keys.isEmpty else {
      throw Certificate.ReadingError(
        "This is not a public key; it has to be DER (SubjectPublicKeyInfo), or PEM (-----BEGIN PUBLIC KEY-----)."
      )
    }
    return keys.map { PublicKey(unchecked: $0) }
  }

  /// The pin of this key.
  public var pin: PublicKeyPin { PublicKeyPin(of: self) }

  /// Kind and length of the key, and its pin.
  public var description: String { "PublicKey(\(X509PublicKey.outline(of: data)), \(pin))" }
}

/// Apple's name for ``PublicKey``.
public typealias SecKey = PublicKey

/// The SHA-256 of a public key with its algorithm (SubjectPublicKeyInfo), as RFC 7469 §2.4 makes it: `sha256/` and
/// 44 characters of Base64.
///
/// ```swift
/// let pin = try PublicKeyPin("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
/// ```
///
/// To find the pin of a server:
///
/// ```sh
/// openssl s_client -connect example.com:443 </dev/null | openssl x509 -pubkey -noout |
///   openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64
/// ```
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
  /// The 32 bytes of the digest.
  public let digest: Data

  /// Makes the pin of a key.
  public init(of key: PublicKey) {
    digest = X509PublicKey.digest(of: key.data)
  }

  /// Reads a pin. `sha256//`, as curl writes it, is the same as `sha256/`.
  ///
  /// - Throws: ``Invalid``.
  public init(_ text: String) throws(Invalid) {
    guard text.hasPrefix(Self.prefix) else {
      throw Invalid(text: text, "it has to begin with sha256/")
    }
    var encoded = text.dropFirst(Self.prefix.count)
    // A digest may begin with a slash too, so that the length decides.
    if encoded.utf8.count == 45, encoded.first == "/" { encoded = encoded.dropFirst() }
    guard encoded.utf8.count == 44, let digest = Data(base64Encoded: String(encoded)), digest.count == 32
    else {
      throw Invalid(text: text, "sha256/ has to be followed by 44 characters of Base64, which are 32 bytes")
    }
    self.digest = digest
  }

  /// The error of an invalid pin.
  public struct Invalid: LocalizedError, Sendable, Equatable {
    /// The invalid text.
    public let text: String
    /// The fault of the text.
    public let errorDescription: String?

    init(text: String, _ message: String) {
      self.text = text
      errorDescription = "\"\(text.prefix(80))\" is not a pin of a public key: \(message)."
    }
  }

  /// The pin in its written form, `sha256/…`.
  public var description: String { Self.prefix + digest.base64EncodedString() }

  private static let prefix = "sha256/"
}

extension PublicKeyPin.Invalid: NSErrorConvertible {}

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
