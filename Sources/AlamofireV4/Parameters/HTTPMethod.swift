/// The methods of a request (RFC 9110 §9).
///
/// The list is closed, as it was in this generation. For another method, set `httpMethod` of a `URLRequest`.
public enum HTTPMethod: String, Sendable {
  /// What can be done there.
  case options = "OPTIONS"
  /// Read it.
  case get = "GET"
  /// Read its header fields.
  case head = "HEAD"
  /// Have it processed.
  case post = "POST"
  /// Replace it.
  case put = "PUT"
  /// Change a part of it (RFC 5789).
  case patch = "PATCH"
  /// Remove it.
  case delete = "DELETE"
  /// Show what arrives.
  case trace = "TRACE"
  /// Make a tunnel.
  case connect = "CONNECT"
}

/// Header fields by name. Names that differ only in case are different keys here, and the same field on the
/// wire: which one is sent is then not said.
public typealias HTTPHeaders = [String: String]
