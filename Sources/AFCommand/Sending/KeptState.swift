import Alamofire
import Foundation
import Glibc

/// The state that is kept from one run of the command to the next: a session, a cookie jar, or both.
final class KeptState: Sendable {
  private let named: NamedSession?
  private let path: String?
  private let jarPath: String?
  private let storeFailure = Mutex<String?>(nil)
  /// The cookies of both.
  let cookies: [HTTPCookie]
  /// The reason if the state could not be stored.
  var failure: String? { storeFailure.withLock { $0 } }

  init(_ invocation: Invocation, variables: [String: String]) throws(UsageError) {
    jarPath = invocation.cookieJar
    var cookies: [HTTPCookie] = []
    if let name = invocation.session {
      let url = URLComponents(string: invocation.url)
      let host = (url?.host ?? "") + (url?.port.map { "_\($0)" } ?? "")
      let path = try NamedSession.path(name, host: host, variables: variables)
      let kept = try NamedSession(path: path)
      cookies += kept.cookieLines.compactMap(\.cookie)
      named = kept
      self.path = invocation.isSessionReadOnly ? nil : path
    } else {
      (named, path) = (nil, nil)
    }
    if let jarPath { cookies += try CookieJar.read(jarPath) }
    self.cookies = cookies
  }

  /// Returns the cookies of the session that a request gets.
  func sessionCookies(for url: URL?) -> [HTTPCookie] {
    let storage = URLSessionConfiguration.ephemeral.httpCookieStorage
    for cookie in named?.cookieLines.compactMap(\.cookie) ?? [] { storage?.setCookie(cookie) }
    return url.flatMap { storage?.cookies(for: $0) } ?? []
  }

  func applied(to invocation: Invocation) -> Invocation { named?.applied(to: invocation) ?? invocation }

  /// Checks the files, so that one that cannot be written is found before a request is sent.
  func checkFiles() throws(UsageError) {
    for file in [path, jarPath].compactMap({ $0 }) {
      var isFolder: ObjCBool = false
      let exists = FileManager.default.fileExists(atPath: file, isDirectory: &isFolder)
      if isFolder.boolValue { throw UsageError(SavedFile.Failure(file, code: EISDIR).sentence) }
      if exists, !LocalFile.isRegular(file) { continue }
      // A new file is made beside the earlier one.
      let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
      guard access(folder, W_OK) == 0 else { throw UsageError(SavedFile.Failure(file).sentence) }
    }
  }

  /// Stores what was typed, and the cookies that are there after the response.
  func store(from session: Session, _ invocation: Invocation) {
    let cookies = session.sessionConfiguration.httpCookieStorage?.cookies ?? []
    if var named, let path {
      named.remember(invocation)
      named.cookies = CookieJar.lines(cookies)
      note { () throws(UsageError) in try named.write(to: path) }
    }
    if let jarPath { note { () throws(UsageError) in try CookieJar.write(cookies, to: jarPath) } }
  }

  /// Writes one of the files.
  static func write(_ data: Data, to path: String) throws(UsageError) {
    do throws(PrivateFile.Failure) {
      try PrivateFile.write(data, to: path)
    } catch {
      throw UsageError(SavedFile.Failure(path, code: error.code).sentence)
    }
  }

  private func note(_ write: () throws(UsageError) -> Void) {
    do throws(UsageError) { try write() } catch { storeFailure.withLock { $0 = $0 ?? error.message } }
  }
}
