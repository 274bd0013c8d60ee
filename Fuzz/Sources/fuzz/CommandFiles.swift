import AFFiles
import Foundation
import FoundationNetworking
import HTTPSystem

/// Checks the readers of the files that `af` keeps: cookie jars and sessions. What was read and written is the same
/// when it is read again.
enum CommandFiles {
  static func check(_ bytes: UnsafeRawBufferPointer) {
    let data = Data(bytes)
    checkJar(data)
    if let session = try? NamedSession(data) {
      guard let text = try? session.encoded() else { return }
      precondition((try? NamedSession(text)) == session, "the session is another one the second time")
      for line in session.cookieLines { checkCookie(line) }
    }
  }

  private static func checkJar(_ data: Data) {
    let lines = CookieJarLine.all(in: data)
    for line in lines {
      // Whatever was read is written again.
      precondition(line.text != nil, "\(line) is read and cannot be written")
      checkCookie(line)
    }
    let text = Data(lines.flatMap(\.lines).map { $0 + "\n" }.joined().utf8)
    precondition(CookieJarLine.all(in: text) == lines, "the jar is another one the second time")
    checkForeignFields(data)
  }

  /// Checks that a cookie, whatever a server puts into it, adds one line at most, which is its own.
  private static func checkForeignFields(_ data: Data) {
    let fields = data.split(separator: 0, maxSplits: 3, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard fields.count == 4, var line = CookieJarLine("a.example\tFALSE\t/\tFALSE\t0\tk\tv".utf8) else {
      return
    }
    (line.domain, line.path, line.name, line.value) = (fields[0], fields[1], fields[2], fields[3])
    guard let text = line.text else { return }
    precondition(CookieJarLine.all(in: Data((text + "\n").utf8)) == [line], "\(text) is another cookie")
  }

  private static func checkCookie(_ line: CookieJarLine) {
    guard let cookie = line.cookie else { return }
    _ = CookieJarLine(cookie, sameSite: line.sameSite).lines
  }
}
