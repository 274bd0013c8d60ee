package import Alamofire
import Foundation

/// The equivalent command of curl. Every word is quoted for the shell, so that it cannot interpret a value.
package struct CurlCommand {
  private let invocation: Invocation
  private let request: URLRequest
  private let headers: HTTPHeaders

  /// - Parameters:
  ///   - request: The request that is sent.
  ///   - headers: The fields that the session adds.
  package init(_ invocation: Invocation, request: URLRequest, headers: HTTPHeaders) {
    self.invocation = invocation
    self.request = request
    self.headers = headers
  }

  /// The command, a part a line.
  package var text: String {
    let parts =
      [["curl"] + method] + options + fields + body + [[Self.quoted(request.url?.absoluteString ?? "")]]
    return parts.filter { !$0.isEmpty }.map { $0.joined(separator: " ") }.joined(separator: " \\\n  ") + "\n"
  }

  /// Redirects may change the method unless `-X` holds it, so it is left out where curl knows it.
  private var method: [String] {
    switch (request.httpMethod ?? "GET", invocation.hasBody) {
    case ("GET", false), ("POST", true): []
    case ("HEAD", _): ["--head"]
    case (let method, _): ["-X", Self.quoted(method)]
    }
  }

  private var options: [[String]] {
    var options: [[String]] = []
    switch invocation.redirects {
    case .follow(let limit): options.append(["--location", "--max-redirs", "\(limit ?? 20)"])
    case .show: break
    }
    if let credentials = invocation.credentials {
      options.append(["--user", Self.quoted("\(credentials.user):\(credentials.password)")])
    }
    if let timeout = invocation.timeout {
      options.append(["--speed-limit", "1", "--speed-time", "\(max(1, Int(timeout.rounded(.up))))"])
    }
    if let file = invocation.trustFile { options.append(["--cacert", Self.quoted(file)]) }
    if invocation.isHTTP1Only { options.append(["--http1.1"]) }
    return options
  }

  private var fields: [[String]] {
    var all = headers
    for header in request.headers.sorted() { all.update(header) }
    return all.compactMap { header in
      switch header.name.lowercased() {
      case "accept-encoding": ["--compressed"]
      case "authorization" where invocation.credentials != nil: nil
      // curl leaves out a field without a value unless it ends in a semicolon.
      default: ["-H", Self.quoted(header.value.isEmpty ? "\(header.name);" : header.description)]
      }
    }
  }

  private var body: [[String]] {
    if invocation.rawBody == .standardInput { return [["--data-binary", "@-"]] }
    guard let body = request.httpBody else { return [] }
    return [["--data-raw", Self.quoted(String(decoding: body, as: UTF8.self))]]
  }

  /// Returns a word that POSIX shells read back unchanged.
  package static func quoted(_ word: String) -> String {
    let plain = word.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "-._/:@%+=,".utf8.contains(byte)
      }
    }
    if plain, !word.isEmpty { return word }
    return "'" + word.replacingOccurrences(of: "'", with: #"'\''"#) + "'"
  }
}
