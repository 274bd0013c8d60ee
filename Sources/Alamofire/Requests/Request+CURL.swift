import Foundation
import FoundationNetworking
import HTTPWire

extension Request {
  /// The text in place of the command of a request that has not been made.
  static let missingCommand = "$ curl command could not be created"

  /// Returns the request as a cURL command: method, credentials, cookies, header fields in the order in which they are
  /// sent, body, URL. Before the request has been made, returns a sentence that begins with `$ curl`.
  ///
  /// The text holds the secrets of the request; do not write it to a log that others read.
  public func cURLDescription() -> String {
    guard let request = lastRequest, let url = request.url, let host = url.host(),
      let method = request.httpMethod
    else { return Self.missingCommand }
    var parts = ["$ curl -v", "-X \(method)"]
    parts += credentials(for: url, host: host).map { "-u \($0)" }
    let cookies = core.session.cookies?.cookies(for: url) ?? []
    if !cookies.isEmpty { parts.append("-b \"\(cookies.map(\.pair).joined(separator: ";"))\"") }
    for field in core.session.settings.fields(named: request.allHTTPHeaderFields)
    where !FieldName.equal(field.name, "Cookie") {
      parts.append("-H \"\(field.name): \(field.value.replacingOccurrences(of: "\"", with: "\\\""))\"")
    }
    if let body = request.httpBody {
      let text = String(decoding: body, as: UTF8.self)
        .replacingOccurrences(of: "\\\"", with: "\\\\\"").replacingOccurrences(of: "\"", with: "\\\"")
      parts.append("-d \"\(text)\"")
    }
    parts.append("\"\(url.absoluteString)\"")
    return parts.joined(separator: " \\\n\t")
  }

  /// Returns the credentials of the session's storage for the host, or else the request's own.
  private func credentials(for url: URL, host: String) -> [String] {
    guard let storage = core.session.configuration.urlCredentialStorage else { return [] }
    let space = URLProtectionSpace(
      host: host, port: url.port ?? 0, protocol: url.scheme, realm: host,
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    let stored = storage.credentials(like: space).sorted { ($0.user ?? "") < ($1.user ?? "") }
    let all = stored.isEmpty ? [credential].compactMap { $0 } : stored
    return all.compactMap { credential in
      guard let user = credential.user, let password = credential.password else { return nil }
      return "\(user):\(password)"
    }
  }
}
