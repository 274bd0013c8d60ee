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

  private struct Allowed: Sendable {
    /// The default characters. Shared, because their table costs a fifth of a request.
    static let byDefault = Allowed(.afURLQueryAllowed)

    static func of(_ characters: CharacterSet) -> Allowed {
      characters == .afURLQueryAllowed ? byDefault : Allowed(characters)
    }

    let characters: CharacterSet
    let encoding: PercentEncoding

    private init(_ characters: CharacterSet) {
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
      let changed = Allowed.of(newValue)
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
    allowed = Mutex(Allowed.of(allowedCharacters))
  }

  /// Makes an encoder with the default options. It does not compare the characters with the default ones, which costs
  /// half of a request.
  init(byDefault: Void) {
    alphabetizeKeyValuePairs = true
    alphabetizeArrayItems = true
    arrayEncoding = .brackets
    boolEncoding = .numeric
    dataEncoding = .base64
    dateEncoding = .deferredToDate
    keyEncoding = .useDefaultKeys
    keyPathEncoding = .brackets
    nilEncoding = .dropKey
    absentEncoding = .dropKey
    spaceEncoding = .percentEscaped
    allowed = Mutex(Allowed.byDefault)
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

extension URLEncodedFormEncoder {
  /// The encoding of the name of an array item.
  public enum ArrayEncoding: Sendable {
    /// `name[]`
    case brackets
    /// `name`
    case noBrackets
    /// `name[0]`, counted from 0.
    case indexInBrackets
    /// The result of the closure for the name and the index, counted from 0.
    @preconcurrency
    case custom(@Sendable (_ key: String, _ index: Int) -> String)

    func encode(_ key: String, atIndex index: Int) -> String {
      switch self {
      case .brackets: "\(key)[]"
      case .noBrackets: key
      case .indexInBrackets: "\(key)[\(index)]"
      case .custom(let encoding): encoding(key, index)
      }
    }
  }

  /// The encoding of the name of a nested property, after the name of the outer one.
  ///
  /// ```swift
  /// let encoder = URLEncodedFormEncoder(
  ///   keyPathEncoding: URLEncodedFormEncoder.KeyPathEncoding { "-\($0)" })  // outer-inner=…
  /// ```
  public struct KeyPathEncoding: Sendable {
    /// `outer[inner]`
    public static let brackets = KeyPathEncoding { "[\($0)]" }
    /// `outer.inner`
    public static let dots = KeyPathEncoding { ".\($0)" }

    let encode: @Sendable (_ subkey: String) -> String

    /// Makes an encoding.
    ///
    /// - Parameter encoding: Returns the text after the outer name, for the name of the property.
    @preconcurrency
    public init(encoding: @escaping @Sendable (_ subkey: String) -> String) {
      encode = encoding
    }
  }

  /// The transformation of a whole name, such as `outer[inner]`, before percent-encoding.
  public enum KeyEncoding: Sendable {
    /// Names are not changed.
    case useDefaultKeys
    /// Words are lowercased and joined by `_`: `oneTwoThree` becomes `one_two_three`, `myURLProperty` becomes
    /// `my_url_property`.
    case convertToSnakeCase
    /// Words are lowercased and joined by `-`: `oneTwoThree` becomes `one-two-three`.
    case convertToKebabCase
    /// The first letter is uppercased.
    case capitalized
    /// All letters are uppercased.
    case uppercased
    /// All letters are lowercased.
    case lowercased
    /// The result of the closure.
    @preconcurrency
    case custom(@Sendable (String) -> String)

    func encode(_ key: String) -> String {
      switch self {
      case .useDefaultKeys: key
      case .convertToSnakeCase: Self.separateWords(of: key, by: "_")
      case .convertToKebabCase: Self.separateWords(of: key, by: "-")
      case .capitalized: key.prefix(1).uppercased() + key.dropFirst()
      case .uppercased: key.uppercased()
      case .lowercased: key.lowercased()
      case .custom(let encoding): encoding(key)
      }
    }

    /// Separates the words of a key. An uppercase letter begins a word after a lowercase letter or a digit. In a run of
    /// uppercase letters, the last one begins a word if a lowercase letter follows (`URLProperty` is `URL` and
    /// `Property`).
    private static func separateWords(of key: String, by separator: Character) -> String {
      let characters = Array(key)
      var separated = ""
      for (index, character) in characters.enumerated() {
        if index > 0, character.isUppercase {
          let previous = characters[index - 1]
          let nextIsSmall = index + 1 < characters.count && characters[index + 1].isLowercase
          if previous.isLowercase || previous.isNumber || (previous.isUppercase && nextIsSmall) {
            separated.append(separator)
          }
        }
        separated.append(character)
      }
      return separated.lowercased()
    }
  }
}

extension URLEncodedFormEncoder {
  /// The encoding of a bool.
  public enum BoolEncoding: Sendable {
    /// `1` and `0`.
    case numeric
    /// `true` and `false`.
    case literal

    func encode(_ value: Bool) -> String {
      switch self {
      case .numeric: value ? "1" : "0"
      case .literal: value ? "true" : "false"
      }
    }
  }

  /// The encoding of data.
  public enum DataEncoding: Sendable {
    /// The encoding of `Data` itself: an array of its bytes.
    case deferredToData
    /// Base64 (RFC 4648 §4).
    case base64
    /// The result of the closure.
    @preconcurrency
    case custom(@Sendable (Data) throws -> String)

    /// Returns the text, or `nil` when the data is to encode itself.
    func encode(_ data: Data) throws -> String? {
      switch self {
      case .deferredToData: nil
      case .base64: data.base64EncodedString()
      case .custom(let encoding): try encoding(data)
      }
    }
  }

  /// The encoding of a date.
  public enum DateEncoding: Sendable {
    /// The encoding of `Date` itself: seconds since the beginning of 2001, with a fraction.
    case deferredToDate
    /// Seconds since the beginning of 1970, with a fraction.
    case secondsSince1970
    /// Milliseconds since the beginning of 1970, with a fraction.
    case millisecondsSince1970
    /// ISO 8601 and RFC 3339 in UTC, whole seconds: `2001-01-01T00:02:03Z`.
    case iso8601
    /// The text of the formatter.
    case formatted(DateFormatter)
    /// The result of the closure.
    @preconcurrency
    case custom(@Sendable (Date) throws -> String)

    /// Returns the text, or `nil` when the date is to encode itself.
    func encode(_ date: Date) throws -> String? {
      switch self {
      case .deferredToDate: nil
      case .secondsSince1970: String(date.timeIntervalSince1970)
      case .millisecondsSince1970: String(date.timeIntervalSince1970 * 1000)
      case .iso8601: date.formatted(.iso8601)
      case .formatted(let formatter): formatter.string(from: date)
      case .custom(let encoding): try encoding(date)
      }
    }
  }

  /// The encoding of `nil`.
  ///
  /// ```swift
  /// let encoder = URLEncodedFormEncoder(nilEncoding: URLEncodedFormEncoder.NilEncoding { "none" })
  /// ```
  public struct NilEncoding: Sendable {
    /// The pair is omitted.
    public static let dropKey = NilEncoding { nil }
    /// The name with an empty value: `name=`.
    public static let dropValue = NilEncoding { "" }
    /// `name=null`
    public static let null = NilEncoding { "null" }

    let encode: @Sendable () -> String?

    /// Makes an encoding.
    ///
    /// - Parameter encoding: Gives the value to write, or `nil` to leave out the pair.
    @preconcurrency
    public init(encoding: @escaping @Sendable () -> String?) {
      encode = encoding
    }
  }

  /// The encoding of a space.
  public enum SpaceEncoding: Sendable {
    /// `%20`
    case percentEscaped
    /// `+`, as browsers write it in forms; a plus sign is written as `%2B`.
    case plusReplaced
  }
}
