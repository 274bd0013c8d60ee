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
