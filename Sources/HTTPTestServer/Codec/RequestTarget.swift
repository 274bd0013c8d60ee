/// The target of a request line, taken apart (RFC 9112 §3.2).
struct RequestTarget: Equatable, Sendable {
  /// The path as it was sent; `*` for the asterisk form.
  let path: String
  /// The text after the first `?`, without a fragment.
  let query: String

  /// Reads the origin form (`/a?b`), the absolute form that a proxy gets (`http://host/a?b`), and
  /// takes anything else as a path.
  init(_ target: String) {
    var rest = target.prefix { $0 != "#" }
    if !rest.hasPrefix("/"), let scheme = rest.firstRange(of: "://") {
      let authorityAndPath = rest[scheme.upperBound...]
      let start = authorityAndPath.firstIndex { $0 == "/" || $0 == "?" } ?? authorityAndPath.endIndex
      rest = authorityAndPath[start...]
    }
    let path = rest.prefix { $0 != "?" }
    self.path = path.isEmpty ? "/" : String(path)
    query = String(rest.dropFirst(path.count + 1))
  }
}
