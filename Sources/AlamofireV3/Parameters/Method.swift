/// The method of a request (RFC 9110 §9).
public enum Method: String, Sendable {
  /// Asks what a resource can do.
  case OPTIONS
  /// Fetches.
  case GET
  /// Fetches the head alone.
  case HEAD
  /// Hands something in.
  case POST
  /// Puts something in the place of a resource.
  case PUT
  /// Changes a part of a resource (RFC 5789).
  case PATCH
  /// Removes a resource.
  case DELETE
  /// Asks for an echo.
  case TRACE
  /// Asks a proxy for a tunnel.
  case CONNECT
}
