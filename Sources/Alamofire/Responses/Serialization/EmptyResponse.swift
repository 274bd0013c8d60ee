/// A type that has a value for a response without a body.
///
/// ```swift
/// extension Reply: EmptyResponse {
///   static func emptyValue() -> Reply { Reply(items: []) }
/// }
/// ```
@preconcurrency
public protocol EmptyResponse: Sendable {
  /// The value for a response without a body.
  static func emptyValue() -> Self
}

/// The type to ask for when a response has no body, or when the body does not matter.
///
/// It can be decoded from any JSON object too.
///
/// ```swift
/// _ = try await AF.request(url, method: .delete).serializingDecodable(Empty.self).value
/// ```
public struct Empty: Hashable, Codable, Sendable, EmptyResponse {
  /// The only value there is.
  public static let value = Empty()

  /// ``value``.
  public static func emptyValue() -> Empty { value }
}
