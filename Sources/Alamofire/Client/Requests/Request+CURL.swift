import Foundation
import FoundationNetworking
import HTTPWire

extension Request {
  /// The text that replaces the command of a request that has not been created.
  static let missingCommand = "$ curl command could not be created"

  /// Returns the request as a cURL command: method, credentials, cookies, header fields in the order in which they are
  /// sent, body, URL. Before the request has been created, returns a sentence that begins with `$ curl`.
  ///
  /// Every value is quoted, so that a POSIX shell gives it to curl unchanged. A body that is not text in UTF-8, or has
  /// a NUL, cannot be written as an argument; its other bytes become U+FFFD.
  ///
  /// The credential is the one passed to ``authenticate(with:)``; without one, all credentials in the session's storage
  /// for the host are used. The cookies come from the request's `Cookie` field; without one, they are the cookies that
  /// the session would add. A TRACE request has only what its own fields contain, because its response repeats it.
  ///
  /// The command leaves out the bodies of uploads and streams, `TransportOptions.repeatedHeaders`, credentials of a
  /// netrc file, and other options of the transport, such as the proxy, the client identity and the trust store.
  ///
  /// The text holds the secrets of the request; do not write it to a log that others read. See
  /// ``cURLDescription(redacting:)``.
  public func cURLDescription() -> String { command(redacting: nil) }

  /// Returns the request as a cURL command with secrets masked, for logs.
  ///
  /// The credential and the values of cookies are always masked. Header fields, the body and the query of the URL are
  /// masked by the rules.
  ///
  /// ```swift
  /// let command = request.cURLDescription(redacting: .standard)
  /// ```
  public func cURLDescription(redacting redaction: Redaction) -> String { command(redacting: redaction) }

  /// Returns the command; its secrets are masked if there are rules.
  func command(redacting rules: Redaction?) -> String {
    let redaction = rules.map { self.redaction($0) }
    guard let request = lastRequest, let url = request.url, let host = url.host(),
      let method = request.httpMethod
    else { return Self.missingCommand }
    var parts = ["$ curl -v", "-X \(ShellWord.plain(method))"]
    parts += credentials(of: request, for: url, host: host).map {
      "-u \(ShellWord.plain(redaction == nil ? $0 : Redaction.mask))"
    }
    let fields = session.settings.fields(named: request.allHTTPHeaderFields)
    let cookies = cookies(of: request, fields, url).map { redaction == nil ? $0 : $0.withMaskedValue }
    if !cookies.isEmpty {
      let pairs = cookies.joined(separator: ";")
      // curl interprets a text without `=` as the name of a file.
      parts.append(
        pairs.utf8.contains(UInt8(ascii: "="))
          ? "-b \(ShellWord.quoted(pairs))" : "-H \(ShellWord.quoted("Cookie: \(pairs)"))")
    }
    for field in fields where !FieldName.equal(field.name, "Cookie") {
      let value = redaction?.value(field.value, ofHeaderField: field.name) ?? field.value
      let isBlank = value.allSatisfy { $0 == " " || $0 == "\t" }
      // curl leaves out a field without a value unless it ends in a semicolon.
      parts.append("-H \(ShellWord.quoted(isBlank ? "\(field.name);" : "\(field.name): \(value)"))")
    }
    if let body = request.httpBody {
      var text = String(decoding: body, as: UTF8.self)
      if let redaction { text = redaction.body(text, contentType: request.headers["Content-Type"]) }
      // Otherwise curl adds the type of a form.
      if !fields.contains(where: { FieldName.equal($0.name, "Content-Type") }) {
        parts.append("-H \"Content-Type:\"")
      }
      // `-d` reads a file if the text begins with `@`.
      let isPath = text.utf8.first == UInt8(ascii: "@")
      parts.append("\(isPath ? "--data-raw" : "-d") \(ShellWord.quoted(text))")
    }
    let text = redaction?.url(url.absoluteString) ?? url.absoluteString
    parts.append(Self.form(of: text) + ShellWord.quoted(text))
    return parts.joined(separator: " \\\n\t")
  }

  /// Returns the options without which curl would change a URL.
  private static func form(of url: String) -> String {
    let path = url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/", omittingEmptySubsequences: false)
    let hasDots = path.contains { ["%2e", "%2e%2e", ".", "..", ".%2e", "%2e."].contains($0.lowercased()) }
    let hasBrackets = url.utf8.contains { "[]{}".utf8.contains($0) }
    return (hasDots ? "--path-as-is " : "") + (hasBrackets ? "--globoff " : "")
  }

  /// Returns the request's own credential, or else the credentials for the host in the session's storage.
  private func credentials(of request: URLRequest, for url: URL, host: String) -> [String] {
    guard request.httpMethod != "TRACE" else { return [] }
    var all = [core.credential(for: url)].compactMap { $0 }
    if all.isEmpty, let storage = session.configuration.urlCredentialStorage {
      let space = URLProtectionSpace(
        host: host, port: url.port ?? 0, protocol: url.scheme, realm: host,
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
      all = storage.credentials(like: space).sorted { ($0.user ?? "") < ($1.user ?? "") }
    }
    return all.compactMap { credential in
      guard let user = credential.user, let password = credential.password else { return nil }
      return "\(user):\(password)"
    }
  }

  /// Returns the pairs of the `Cookie` field, or those that the session adds to a request without one.
  private func cookies(of request: URLRequest, _ fields: [HTTPHeader], _ url: URL) -> [String] {
    if let own = fields.first(where: { FieldName.equal($0.name, "Cookie") }) {
      return own.value.unicodeScalars.split(separator: ";").map {
        String($0).trimmingCharacters(in: .whitespaces)
      }
    }
    guard request.httpShouldHandleCookies, request.httpMethod != "TRACE" else { return [] }
    return session.cookies?.cookies(for: url).map(\.pair) ?? []
  }
}

extension String {
  /// A pair of a cookie without its value. A cookie without a name is masked as a whole.
  fileprivate var withMaskedValue: String {
    guard let equals = unicodeScalars.firstIndex(of: "="), equals != startIndex else { return Redaction.mask }
    return self[..<equals] + "=" + Redaction.mask
  }
}

/// Words of a command for a POSIX shell (IEEE Std 1003.1, Shell Command Language §2.2).
package enum ShellWord {
  /// Returns a text in single quotes, in which a shell replaces nothing.
  package static func literal(_ text: String) -> String {
    "'" + ScalarText.replacing(in: text) { $0 == "'" ? #"'\''"# : nil } + "'"
  }

  /// Returns a text with a backslash before each of some characters.
  package static func escaping(_ scalars: [Unicode.Scalar], in text: String) -> String {
    ScalarText.replacing(in: text) { scalars.contains($0) ? #"\\#($0)"# : nil }
  }

  /// Returns a text in double quotes, in which `"`, `\`, `$` and a backquote are escaped. A text with `!` is in single
  /// quotes, because an interactive shell would replace it by an earlier command.
  static func quoted(_ text: String) -> String {
    if text.utf8.contains(UInt8(ascii: "!")) { return literal(text) }
    return "\"" + escaping(["\"", "\\", "$", "`"], in: text) + "\""
  }

  /// Returns a text unchanged if every shell reads it literally, otherwise in double quotes.
  static func plain(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
      default: "-._:@%+,/".utf8.contains(byte)
      }
    }
    return isPlain && !text.isEmpty ? text : quoted(text)
  }
}
