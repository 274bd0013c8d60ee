import Alamofire

/// The methods of a request (RFC 9110 §9, RFC 5789).
///
/// The list is closed, as it was in this generation. For another method, set `httpMethod` of a `URLRequest`.
public enum HTTPMethod: String, Sendable {
  case options = "OPTIONS"
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case patch = "PATCH"
  case delete = "DELETE"
  case trace = "TRACE"
  case connect = "CONNECT"
}

/// Header fields by name. Names that differ only in case are different keys here, and the same field on the
/// wire: which one is sent is then not said.
public typealias HTTPHeaders = [String: String]
