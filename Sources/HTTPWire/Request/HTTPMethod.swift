/// The method of a request (RFC 9110 §9).
///
/// Any token can be made with ``init(rawValue:)``; comparison is case-sensitive, as methods are
/// (RFC 9110 §9.1), so a value made from `"get"` is not ``get``.
///
/// ```swift
/// let purge = HTTPMethod(rawValue: "PURGE")
/// ```
public struct HTTPMethod: RawRepresentable, Equatable, Hashable, Sendable {
  /// `CONNECT` (RFC 9110 §9.3.6).
  public static let connect = HTTPMethod(rawValue: "CONNECT")
  /// `DELETE` (RFC 9110 §9.3.5).
  public static let delete = HTTPMethod(rawValue: "DELETE")
  /// `GET` (RFC 9110 §9.3.1).
  public static let get = HTTPMethod(rawValue: "GET")
  /// `HEAD` (RFC 9110 §9.3.2).
  public static let head = HTTPMethod(rawValue: "HEAD")
  /// `OPTIONS` (RFC 9110 §9.3.7).
  public static let options = HTTPMethod(rawValue: "OPTIONS")
  /// `PATCH` (RFC 5789).
  public static let patch = HTTPMethod(rawValue: "PATCH")
  /// `POST` (RFC 9110 §9.3.3).
  public static let post = HTTPMethod(rawValue: "POST")
  /// `PUT` (RFC 9110 §9.3.4).
  public static let put = HTTPMethod(rawValue: "PUT")
  /// `QUERY`, a safe method with a body (draft-ietf-httpbis-safe-method-w-body).
  public static let query = HTTPMethod(rawValue: "QUERY")
  /// `TRACE` (RFC 9110 §9.3.8).
  public static let trace = HTTPMethod(rawValue: "TRACE")

  /// The method as it is sent.
  public let rawValue: String

  /// Makes a method of any token. The text is not checked here; a request whose method is not a
  /// token (RFC 9110 §5.6.2) fails before anything is sent.
  public init(rawValue: String) {
    self.rawValue = rawValue
  }
}
