public import Foundation

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
