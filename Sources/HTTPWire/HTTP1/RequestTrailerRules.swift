/// The rules for the trailer fields of requests, in all versions of HTTP.
enum RequestTrailerRules {
  /// Fields of framing, routing, authentication and content, and request modifiers. A server needs them before it reads
  /// the content, or must not take them from a trailer section (RFC 9110 §6.5.1).
  private static let forbidden: [String] = [
    "Transfer-Encoding", "Content-Length", "Host", "Trailer", "TE", "Connection", "Keep-Alive",
    "Proxy-Connection", "Upgrade", "HTTP2-Settings", "Expect", "Content-Encoding", "Content-Type",
    "Content-Range", "Authorization", "Proxy-Authorization", "Proxy-Authenticate", "WWW-Authenticate",
    "Cookie", "Set-Cookie", "Cache-Control", "Pragma", "Max-Forwards", "Range", "If-Match", "If-None-Match",
    "If-Modified-Since", "If-Unmodified-Since", "If-Range",
  ]

  /// Throws if the fields cannot be sent after the content.
  static func check(_ fields: [HTTPHeader]) throws(RequestHeadViolation) {
    do throws(HeaderFieldRules.Violation) {
      try HeaderFieldRules.validate(method: "POST", fields: fields)
    } catch {
      throw .field(error)
    }
    for field in fields { try checkName(field.name) }
    let size = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    guard size <= RequestHeadWriter.largestHead else { throw .tooLarge }
  }

  /// Returns the names that the field `Trailer` of a request lists; none if the caller has given such a field.
  static func announcedNames(of request: WireRequest) -> [String] {
    guard request.sendsTrailers, let names = request.trailers?.names, !names.isEmpty,
      !request.fields.contains(where: { FieldName.equal($0.name, "Trailer") })
    else { return [] }
    return names
  }

  /// Returns the field `Trailer` with these names.
  static func announcement(of names: [String]) throws(RequestHeadViolation) -> HTTPHeader {
    for name in names {
      guard HeaderFieldRules.isToken(name) else { throw .field(.name(name)) }
      try checkName(name)
    }
    return HTTPHeader(name: "Trailer", value: names.joined(separator: ", "))
  }

  private static func checkName(_ name: String) throws(RequestHeadViolation) {
    if forbidden.contains(where: { FieldName.equal($0, name) }) { throw .trailer(name) }
  }
}
