public import Foundation
import HTTPWire
import Synchronization

/// Writes `Encodable` values as `name=value` pairs joined by `&`.
///
/// ```swift
/// struct Search: Encodable {
///   var query: String
///   var tags: [String]
///   var exact: Bool
/// }
///
/// let form: String = try URLEncodedFormEncoder().encode(Search(query: "a b", tags: ["x"], exact: true))
/// // exact=1&query=a%20b&tags%5B%5D=x
///
/// let encoder = URLEncodedFormEncoder(
///   arrayEncoding: .noBrackets, boolEncoding: .literal, keyEncoding: .convertToSnakeCase)
/// ```
///
/// Nested values have no standard encoding. The common one is the default: `name[]` for the items of an array,
/// `name[key]` for the properties of a value. By default bools are written as numbers and data as base64. A `URL`
/// encodes itself as an object with the property `relative`; pass its `absoluteString` for text.
///
/// One encoder can be used from several threads at once.
public final class URLEncodedFormEncoder: Sendable {
  /// An error of this encoder.
  public enum Error: Swift.Error {
    /// The root is an array or a single value, which has no names for pairs. Its description is attached.
    case invalidRootObject(String)
  }

  /// Whether pairs are sorted as text at every level. Otherwise they have the order of encoding, which is undefined
  /// for dictionaries.
  public let alphabetizeKeyValuePairs: Bool
  /// Whether the items of an array are sorted too, so that they lose their order. It has no effect if
  /// ``alphabetizeKeyValuePairs`` is false.
  public let alphabetizeArrayItems: Bool
  /// The encoding of the names of array items.
  public let arrayEncoding: ArrayEncoding
  /// The encoding of bools.
  public let boolEncoding: BoolEncoding
  /// The encoding of data.
  public let dataEncoding: DataEncoding
  /// The encoding of dates.
  public let dateEncoding: DateEncoding
  /// The transformation of names.
  public let keyEncoding: KeyEncoding
  /// The encoding of the names of nested properties.
  public let keyPathEncoding: KeyPathEncoding
  /// The encoding of `nil`.
  public let nilEncoding: NilEncoding
  /// The encoding of an optional property without a value, which `encodeIfPresent(_:forKey:)` writes. The conformances
  /// that the compiler makes call it for every optional property. ``nilEncoding`` then remains for
  /// `encodeNil(forKey:)`, for `encode(_:forKey:)` with an optional, and for the items of arrays.
  ///
  /// ```swift
  /// struct Patch: Encodable {
  ///   enum CodingKeys: CodingKey { case name, phone }
  ///   var name: String?  // Left out if there is none.
  ///   var phone: String?  // Removed on the server if there is none.
  ///
  ///   func encode(to encoder: any Encoder) throws {
  ///     var container = encoder.container(keyedBy: CodingKeys.self)
  ///     try container.encodeIfPresent(name, forKey: .name)
  ///     try container.encode(phone, forKey: .phone)
  ///   }
  /// }
  ///
  /// let encoder = URLEncodedFormEncoder(nilEncoding: .null, absentEncoding: .dropKey)
  /// let text: String = try encoder.encode(Patch())  // phone=null
  /// ```
  public let absentEncoding: NilEncoding
  /// The encoding of spaces.
  public let spaceEncoding: SpaceEncoding

  private struct Allowed {
    let characters: CharacterSet
    let encoding: PercentEncoding

    init(_ characters: CharacterSet) {
      self.characters = characters
      // Spaces are encoded by ``spaceEncoding``.
      encoding = PercentEncoding(allowing: { $0 != 0x20 && characters.contains(Unicode.Scalar($0)) })
    }
  }

  /// The characters that are not escaped, for any thread.
  private let allowed: Mutex<Allowed>

  /// The characters that are not percent-encoded. Spaces and members beyond ASCII have no effect.
  public var allowedCharacters: CharacterSet {
    get { allowed.withLock { $0.characters } }
    set {
      let changed = Allowed(newValue)
      allowed.withLock { $0 = changed }
    }
  }

  /// Makes an encoder.
  ///
  /// - Parameters:
  ///   - alphabetizeKeyValuePairs: Whether pairs are sorted as text at every level; `true` by default.
  ///   - arrayEncoding: The encoding of the names of array items; by default `name[]`.
  ///   - boolEncoding: The encoding of bools; by default `1` and `0`.
  ///   - dataEncoding: The encoding of data; by default base64.
  ///   - dateEncoding: The encoding of dates; by default their own, in seconds since 2001.
  ///   - keyEncoding: The transformation of names; by default none.
  ///   - keyPathEncoding: The encoding of the names of nested properties; by default `name[key]`.
  ///   - nilEncoding: The encoding of `nil`; by default the pair is omitted.
  ///   - spaceEncoding: The encoding of spaces; by default `%20`.
  ///   - allowedCharacters: The characters that are not percent-encoded; by default `CharacterSet.afURLQueryAllowed`.
  public convenience init(
    alphabetizeKeyValuePairs: Bool = true,
    arrayEncoding: ArrayEncoding = .brackets,
    boolEncoding: BoolEncoding = .numeric,
    dataEncoding: DataEncoding = .base64,
    dateEncoding: DateEncoding = .deferredToDate,
    keyEncoding: KeyEncoding = .useDefaultKeys,
    keyPathEncoding: KeyPathEncoding = .brackets,
    nilEncoding: NilEncoding = .dropKey,
    spaceEncoding: SpaceEncoding = .percentEscaped,
    allowedCharacters: CharacterSet = .afURLQueryAllowed
  ) {
    self.init(
      alphabetizeKeyValuePairs: alphabetizeKeyValuePairs, arrayEncoding: arrayEncoding,
      boolEncoding: boolEncoding, dataEncoding: dataEncoding, dateEncoding: dateEncoding,
      keyEncoding: keyEncoding, keyPathEncoding: keyPathEncoding, nilEncoding: nilEncoding,
      spaceEncoding: spaceEncoding, allowedCharacters: allowedCharacters, alphabetizeArrayItems: true)
  }

  // Disfavored, so that a call without its own two parameters is not ambiguous.
  /// Makes an encoder with the two options that upstream's initialiser does not have.
  ///
  /// - Parameters:
  ///   - alphabetizeKeyValuePairs: Whether pairs are sorted as text at every level; `true` by default.
  ///   - arrayEncoding: The encoding of the names of array items; by default `name[]`.
  ///   - boolEncoding: The encoding of bools; by default `1` and `0`.
  ///   - dataEncoding: The encoding of data; by default base64.
  ///   - dateEncoding: The encoding of dates; by default their own, in seconds since 2001.
  ///   - keyEncoding: The transformation of names; by default none.
  ///   - keyPathEncoding: The encoding of the names of nested properties; by default `name[key]`.
  ///   - nilEncoding: The encoding of `nil`; by default the pair is omitted.
  ///   - spaceEncoding: The encoding of spaces; by default `%20`.
  ///   - allowedCharacters: The characters that are not percent-encoded; by default `CharacterSet.afURLQueryAllowed`.
  ///   - alphabetizeArrayItems: Whether the items of an array are sorted too; `true` by default.
  ///   - absentEncoding: The encoding of an optional property without a value; by default the encoding of `nil`.
  @_disfavoredOverload
  public init(
    alphabetizeKeyValuePairs: Bool = true,
    arrayEncoding: ArrayEncoding = .brackets,
    boolEncoding: BoolEncoding = .numeric,
    dataEncoding: DataEncoding = .base64,
    dateEncoding: DateEncoding = .deferredToDate,
    keyEncoding: KeyEncoding = .useDefaultKeys,
    keyPathEncoding: KeyPathEncoding = .brackets,
    nilEncoding: NilEncoding = .dropKey,
    spaceEncoding: SpaceEncoding = .percentEscaped,
    allowedCharacters: CharacterSet = .afURLQueryAllowed,
    alphabetizeArrayItems: Bool = true,
    absentEncoding: NilEncoding? = nil
  ) {
    self.alphabetizeKeyValuePairs = alphabetizeKeyValuePairs
    self.alphabetizeArrayItems = alphabetizeArrayItems
    self.arrayEncoding = arrayEncoding
    self.boolEncoding = boolEncoding
    self.dataEncoding = dataEncoding
    self.dateEncoding = dateEncoding
    self.keyEncoding = keyEncoding
    self.keyPathEncoding = keyPathEncoding
    self.nilEncoding = nilEncoding
    self.absentEncoding = absentEncoding ?? nilEncoding
    self.spaceEncoding = spaceEncoding
    allowed = Mutex(Allowed(allowedCharacters))
  }

  /// Encodes a value.
  ///
  /// - Parameter value: The value; its root must have names: a struct, a class or a dictionary.
  /// - Returns: The pairs; an empty string if there are none.
  /// - Throws: ``Error/invalidRootObject(_:)``, `EncodingError`, or the error of the value or a custom encoding.
  public func encode(_ value: any Encodable) throws -> String {
    let root = FormNode()
    try FormEncoder(node: root, codingPath: [], options: self).encode(value)
    switch root.content {
    case .empty, .dropped: return ""
    case .text: throw Error.invalidRootObject("a single value")
    case .items: throw Error.invalidRootObject("an array")
    case .properties(let properties):
      let encoding = allowed.withLock { $0.encoding }
      return FormSerializer(encoder: self, percentEncoding: encoding).serialize(properties.all)
    }
  }

  /// Encodes a value as UTF-8.
  ///
  /// - Parameter value: The value; its root must have names: a struct, a class or a dictionary.
  /// - Returns: The pairs; empty data if there are none.
  /// - Throws: ``Error/invalidRootObject(_:)``, `EncodingError`, or the error of the value or a custom encoding.
  public func encode(_ value: any Encodable) throws -> Data {
    let form: String = try encode(value)
    return Data(form.utf8)
  }
}

extension URLEncodedFormEncoder.Error: LocalizedError {
  /// The error message: the type of the root and the required ones.
  public var errorDescription: String? {
    switch self {
    case .invalidRootObject(let root):
      "A form needs names at its root (a struct, a class or a dictionary), and this is \(root)."
    }
  }
}

extension CharacterSet {
  /// The characters that are not percent-encoded in names and values of a query: letters and digits of ASCII and `- .
  /// _ ~ / ?`.
  ///
  /// These are Foundation's `urlQueryAllowed` without the delimiters of RFC 3986 §2.2, except for `/` and `?`, which
  /// §3.4 allows in a query.
  public static let afURLQueryAllowed = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/?")
}

extension URLEncodedFormEncoder.Error: NSErrorConvertible {}
