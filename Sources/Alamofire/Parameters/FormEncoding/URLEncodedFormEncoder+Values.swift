public import Foundation

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
