public import Foundation
import HTTPSystem

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
        "This is no public key; it has to be DER (SubjectPublicKeyInfo), or PEM (-----BEGIN PUBLIC KEY-----)."
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
      errorDescription = "\"\(text.prefix(80))\" is no pin of a public key: \(message)."
    }
  }

  /// The pin in its written form, `sha256/…`.
  public var description: String { Self.prefix + digest.base64EncodedString() }

  private static let prefix = "sha256/"
}

extension PublicKeyPin.Invalid: NSErrorConvertible {}
