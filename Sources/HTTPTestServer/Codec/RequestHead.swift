import HTTPWire

/// The first line and the fields of a request (RFC 9112 §3, §5), as they came.
struct RequestHead: Equatable, Sendable {
  var method: String
  var target: String
  /// 0 for HTTP/1.0, 1 for HTTP/1.1.
  var minorVersion: Int
  var headers: [HTTPHeader]

  /// Returns the value of the first field of this name.
  func value(_ name: String) -> String? {
    headers.first { FieldName.equal($0.name, name) }?.value
  }

  /// Whether one of the fields of this name lists this token (RFC 9110 §5.6.1).
  func lists(_ token: String, in name: String) -> Bool {
    headers.contains { header in
      FieldName.equal(header.name, name)
        && header.value.split(separator: ",").contains { FieldName.equal(trimmed($0), token) }
    }
  }

  /// Whether the client lets the connection live on after this exchange (RFC 9112 §9.3).
  var keepsConnection: Bool {
    if lists("close", in: "Connection") { return false }
    return minorVersion >= 1 || lists("keep-alive", in: "Connection")
  }

  /// Whether the client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1).
  var expectsContinue: Bool {
    minorVersion >= 1 && lists("100-continue", in: "Expect")
  }
}

/// Returns a text without the spaces and tabs around it.
func trimmed(_ text: some StringProtocol) -> String {
  let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
  var rest = text.drop(while: isSpace)
  while let last = rest.last, isSpace(last) { rest = rest.dropLast() }
  return String(rest)
}

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

/// The range of a `Range` field (RFC 9110 §14.2). Several ranges are answered with the whole body.
enum ByteRange: Equatable {
  case whole
  case part(Range<Int>)
  case unsatisfiable

  static func parse(_ field: String?, of length: Int) -> ByteRange {
    guard let field, field.lowercased().hasPrefix("bytes=") else { return .whole }
    let spec = trimmed(field.dropFirst(6))
    let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return .whole }
    switch (RequestBodyDecoder.decimal(ends[0]), RequestBodyDecoder.decimal(ends[1])) {
    case (let first?, let last?):
      guard first <= last else { return .whole }
      return first < length ? .part(first..<min(last, length - 1) + 1) : .unsatisfiable
    case (let first?, nil) where ends[1].isEmpty:
      return first < length ? .part(first..<length) : .unsatisfiable
    case (nil, let count?) where ends[0].isEmpty:
      return count > 0 && length > 0 ? .part(max(0, length - count)..<length) : .unsatisfiable
    default:
      return .whole
    }
  }
}
