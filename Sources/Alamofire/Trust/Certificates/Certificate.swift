public import Foundation

/// A certificate (X.509, RFC 5280): what `SecCertificate` is on Apple's systems. Two are equal when their bytes are.
///
/// ```swift
/// let certificate = try Certificate.all(in: Data(contentsOf: file)).first
/// ```
public struct Certificate: Sendable, Hashable, CustomStringConvertible {
  let parsed: ParsedCertificate

  init(_ parsed: ParsedCertificate) { self.parsed = parsed }

  /// Reads one certificate as DER; `nil` when `data` is none, or has something behind it.
  public init?(data: Data) {
    guard let parsed = ParsedCertificate(der: data) else { return nil }
    self.parsed = parsed
  }

  /// The certificate as DER.
  public var data: Data { parsed.der }
  /// Whom it is for, on one line (RFC 2253).
  public var subject: String { parsed.subject }
  /// Who issued it, on one line (RFC 2253).
  public var issuer: String { parsed.issuer }
  /// The number that its issuer gave it, as hexadecimal digits.
  public var serialNumber: String { parsed.serialNumber }
  /// From when to when it is valid; `nil` when that cannot be read.
  public var validity: ClosedRange<Date>? { parsed.validity }
  /// The host names that it is valid for (SAN), wildcards included.
  public var hostNames: [String] { parsed.hostNames }
  /// The IP addresses that it is valid for (SAN).
  public var addresses: [String] { parsed.addresses }
  /// Whether it was signed with its own key.
  public var isSelfSigned: Bool { parsed.isSelfSigned }
  /// Its public key; `nil` when there is none that can be read.
  public var publicKey: PublicKey? { parsed.publicKey.flatMap { PublicKey(unchecked: $0) } }

  /// Whom it is for.
  public var description: String { "Certificate(\(subject))" }
}

/// Apple's name for ``Certificate``.
public typealias SecCertificate = Certificate

extension Certificate {
  /// Why certificates or keys could not be read.
  public struct ReadingError: LocalizedError, Sendable, Equatable {
    /// The file, if it was one.
    public let path: String?
    /// What is wrong with it, and what would be right.
    public let errorDescription: String?

    init(path: String? = nil, _ message: String) {
      self.path = path
      errorDescription = path.map { "\($0): \(message)" } ?? message
    }

    static let noCertificate =
      "This is no certificate; it has to be DER, or PEM (-----BEGIN CERTIFICATE-----)."
  }

  /// All certificates of a PEM text (RFC 7468), in its order, or the one of DER bytes. Text around them, and keys, are
  /// passed over.
  ///
  /// - Throws: ``ReadingError`` when there is none, or one of them is broken.
  public static func all(in data: Data) throws -> [Certificate] {
    guard let certificates = ParsedCertificate.all(in: data), !certificates.isEmpty else {
      throw ReadingError(ReadingError.noCertificate)
    }
    return certificates.map { Certificate($0) }
  }

  /// All certificates of a file; see ``all(in:)-(Data)``.
  ///
  /// - Throws: ``ReadingError``.
  public static func all(contentsOf file: URL) throws -> [Certificate] {
    let data: Data
    do {
      data = try Data(contentsOf: file)
    } catch {
      throw ReadingError(path: file.path, error.localizedDescription)
    }
    guard let certificates = ParsedCertificate.all(in: data), !certificates.isEmpty else {
      throw ReadingError(path: file.path, ReadingError.noCertificate)
    }
    return certificates.map { Certificate($0) }
  }

  /// All certificates of the files `*.cer`, `*.crt`, `*.der` and `*.pem` of a folder, by the names of the files. Folders
  /// in it are not looked into.
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
    let wanted = names.filter { CertificateFiles.endings.contains(($0 as NSString).pathExtension) }.sorted()
    return try wanted.flatMap { try all(contentsOf: folder.appendingPathComponent($0)) }
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

  /// The public keys of those that have one that can be read.
  public var publicKeys: [SecKey] { type.compactMap(\.publicKey) }
}

extension Bundle: AlamofireExtended {}

extension AlamofireExtension where ExtendedType: Bundle {
  /// The certificates in the files `*.cer`, `*.crt`, `*.der` and `*.pem` of the bundle, each DER or PEM, by their paths.
  /// Files that hold none are passed over; `Certificate.all(inFolder:)` tells of them.
  public var certificates: [SecCertificate] {
    paths(forResourcesOfTypes: CertificateFiles.endings).flatMap { path -> [SecCertificate] in
      guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return [] }
      return (try? Certificate.all(in: data)) ?? []
    }
  }

  /// The public keys of `certificates`.
  public var publicKeys: [SecKey] { certificates.compactMap(\.publicKey) }

  /// The paths of all resources with one of these endings, sorted, each once.
  public func paths(forResourcesOfTypes types: [String]) -> [String] {
    Set(types.flatMap { type.paths(forResourcesOfType: $0, inDirectory: nil) }).sorted()
  }
}

extension Certificate.ReadingError: NSErrorConvertible {}
