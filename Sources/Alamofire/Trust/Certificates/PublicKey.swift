public import Foundation

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

  /// Reads one key (SubjectPublicKeyInfo) as DER; `nil` when `data` is none, or has something behind it.
  public init?(data: Data) {
    guard PublicKeyBytes.all(in: data) == [data] else { return nil }
    self.data = data
  }

  /// Reads all keys of a PEM text (`-----BEGIN PUBLIC KEY-----`), in its order, or the one of DER bytes. Text around
  /// them is skipped.
  ///
  /// - Throws: ``Certificate/ReadingError`` when there is none, or one of them is broken.
  public static func all(in data: Data) throws -> [PublicKey] {
    guard let keys = PublicKeyBytes.all(in: data), !keys.isEmpty else {
      throw Certificate.ReadingError(
        "This is no public key; it has to be DER (SubjectPublicKeyInfo), or PEM (-----BEGIN PUBLIC KEY-----)."
      )
    }
    return keys.map { PublicKey(unchecked: $0) }
  }

  /// The pin of this key.
  public var pin: PublicKeyPin { PublicKeyPin(of: self) }

  /// Kind and length of the key, and its pin.
  public var description: String { "PublicKey(\(PublicKeyBytes.outline(of: data)), \(pin))" }
}

/// Apple's name for ``PublicKey``.
public typealias SecKey = PublicKey
