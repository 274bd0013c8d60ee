import Foundation
import FoundationNetworking

/// Cookies in a file, a line each (``CookieJarLine``).
enum CookieJar {
  private static let header = "# Netscape HTTP Cookie File\n"

  /// Returns the cookies of a file; none if there is no file yet.
  static func read(_ path: String) throws(UsageError) -> [HTTPCookie] {
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    let content = try LocalFile.content(path, limit: LocalFile.largestSettings)
    guard String(validating: content, as: UTF8.self) != nil else {
      throw UsageError("The cookies in '\(path)' are not text.")
    }
    return CookieJarLine.all(in: content).compactMap(\.cookie)
  }

  /// Returns the lines of cookies, in a fixed order. Cookies that a line cannot hold are left out.
  static func lines(_ cookies: [HTTPCookie]) -> [String] {
    cookies.sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) }
      .compactMap { CookieJarLine($0).text }
  }

  /// Writes a file that only its owner can read.
  static func write(_ cookies: [HTTPCookie], to path: String) throws(UsageError) {
    try KeptState.write(Data((header + lines(cookies).map { $0 + "\n" }.joined()).utf8), to: path)
  }
}
