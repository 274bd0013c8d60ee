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
