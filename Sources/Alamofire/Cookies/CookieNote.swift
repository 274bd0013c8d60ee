import HTTPWire

/// The attributes that Foundation does not write to its file, as text for the comment of a cookie, which it does
/// write. A note can only make a cookie stricter, so a comment written by other code does no harm.
struct CookieNote: Equatable {
  var isSecure = false
  var isHTTPOnly = false
  var sameSite: Cookie.SameSite?
  /// In microseconds since the beginning of 1970.
  var creation: Int64?

  init(_ cookie: Cookie) {
    isSecure = cookie.isSecure
    isHTTPOnly = cookie.isHTTPOnly
    sameSite = cookie.sameSite
    creation = cookie.creation
  }

  /// Parses a comment; `nil` if it is no note.
  init?(_ comment: String) {
    let parts = comment.split(separator: "; ")
    guard parts.first == Self.mark else { return nil }
    for part in parts.dropFirst() {
      switch part {
      case "Secure": isSecure = true
      case "HttpOnly": isHTTPOnly = true
      default:
        let pair = part.split(separator: "=", maxSplits: 1)
        guard pair.count == 2 else { continue }
        if pair[0] == "SameSite" { sameSite = Cookie.SameSite(rawValue: String(pair[1])) }
        if pair[0] == "Created" { creation = Int64(pair[1]) }
      }
    }
  }

  var text: String {
    var parts = [String(Self.mark)]
    if isSecure { parts.append("Secure") }
    if isHTTPOnly { parts.append("HttpOnly") }
    if let sameSite { parts.append("SameSite=\(sameSite.rawValue)") }
    if let creation { parts.append("Created=\(creation)") }
    return parts.joined(separator: "; ")
  }

  private static let mark: Substring = "Alamofire"
}
