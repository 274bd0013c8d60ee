import Alamofire
import Foundation
import Glibc

/// Cookies in a text file of Netscape's format, which curl and browsers' tools read too: a line a cookie, seven
/// fields with tabs between them.
enum CookieJar {
  private static let header = "# Netscape HTTP Cookie File\n"

  /// Returns the cookies of a file; none if there is no file yet.
  static func read(_ path: String) throws(UsageError) -> [HTTPCookie] {
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    guard let text = String(data: try LocalFile.content(path), encoding: .utf8) else {
      throw UsageError("The cookies in '\(path)' are not text.")
    }
    return text.split(whereSeparator: \.isNewline).compactMap { cookie(String($0)) }
  }

  /// Returns the lines of cookies, in a fixed order.
  static func lines(_ cookies: [HTTPCookie]) -> [String] {
    cookies.sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) }.map(line)
  }

  static func cookie(_ line: String) -> HTTPCookie? {
    let isHTTPOnly = line.hasPrefix("#HttpOnly_")
    let text = isHTTPOnly ? String(line.dropFirst("#HttpOnly_".count)) : line
    let fields = text.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    guard fields.count == 7, !text.hasPrefix("#") else { return nil }
    let bare = fields[0].hasPrefix(".") ? String(fields[0].dropFirst()) : fields[0]
    var properties: [HTTPCookiePropertyKey: Any] = [
      .domain: fields[1] == "TRUE" ? ".\(bare)" : bare, .path: fields[2], .name: fields[5], .value: fields[6],
    ]
    if fields[3] == "TRUE" { properties[.secure] = "TRUE" }
    if isHTTPOnly { properties[HTTPCookiePropertyKey("HttpOnly")] = "TRUE" }
    if let seconds = Double(fields[4]), seconds > 0 {
      properties[.expires] = Date(timeIntervalSince1970: seconds)
    }
    return HTTPCookie(properties: properties)
  }

  /// Writes a file that only its owner can read.
  static func write(_ cookies: [HTTPCookie], to path: String) throws(UsageError) {
    try PrivateFile.write(Data((header + lines(cookies).map { $0 + "\n" }.joined()).utf8), to: path)
  }

  private static func line(_ cookie: HTTPCookie) -> String {
    let isDomain = cookie.domain.hasPrefix(".")
    let expiry = cookie.expiresDate.map { "\(Int64($0.timeIntervalSince1970))" } ?? "0"
    let fields = [
      (cookie.isHTTPOnly ? "#HttpOnly_" : "") + cookie.domain, isDomain ? "TRUE" : "FALSE", cookie.path,
      cookie.isSecure ? "TRUE" : "FALSE", expiry, cookie.name, cookie.value,
    ]
    return fields.joined(separator: "\t")
  }
}

/// Files with secrets, which only their owner may read.
enum PrivateFile {
  static func write(_ data: Data, to path: String) throws(UsageError) {
    // A device or a pipe is written to, because a new file would take its place.
    if FileManager.default.fileExists(atPath: path), !LocalFile.isRegular(path) {
      guard let file = FileHandle(forWritingAtPath: path), (try? file.write(contentsOf: data)) != nil else {
        throw UsageError("'\(path)' cannot be written.")
      }
      return
    }
    let new = "\(path).\(UUID().uuidString.prefix(8))"
    let isMade = FileManager.default.createFile(
      atPath: new, contents: data, attributes: [.posixPermissions: 0o600])
    guard isMade, rename(new, path) == 0 else {
      unlink(new)
      throw UsageError("'\(path)' cannot be written.")
    }
  }
}
