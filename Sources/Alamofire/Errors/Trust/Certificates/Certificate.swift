public import Foundation
import HTTPSystem
import HTTPWire

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
      "This is no certificate; it has to be DER, or PEM (-----BEGIN CERTIFICATE-----)."
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
