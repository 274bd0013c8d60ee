extension URLEncodedFormEncoder {
  /// How the name of an item of an array is written.
  public enum ArrayEncoding: Sendable {
    /// `name[]`
    case brackets
    /// `name`
    case noBrackets
    /// `name[0]`, counted from 0.
    case indexInBrackets
    /// As the closure says, given the name and the index, counted from 0.
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

  /// How the name of a nested property is written behind the name of what it is nested in.
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
    /// - Parameter encoding: Gives what stands behind the outer name, for the name of the property.
    @preconcurrency
    public init(encoding: @escaping @Sendable (_ subkey: String) -> String) {
      encode = encoding
    }
  }

  /// What becomes of a name. It is given the whole name as it will be sent, such as `outer[inner]`,
  /// before percent-encoding.
  public enum KeyEncoding: Sendable {
    /// Nothing.
    case useDefaultKeys
    /// Words are separated by `_` and made small: `oneTwoThree` becomes `one_two_three`, `myURLProperty`
    /// becomes `my_url_property`.
    case convertToSnakeCase
    /// Words are separated by `-` and made small: `oneTwoThree` becomes `one-two-three`.
    case convertToKebabCase
    /// The first letter is made a capital.
    case capitalized
    /// All letters are made capitals.
    case uppercased
    /// All letters are made small.
    case lowercased
    /// As the closure says.
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

    /// A capital begins a word behind a small letter or a digit, and at the end of a run of capitals
    /// when a small letter follows (`URLProperty` is `URL` and `Property`).
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
