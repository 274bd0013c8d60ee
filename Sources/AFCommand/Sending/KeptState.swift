import Alamofire
import Foundation

/// The state that is kept from one run of the command to the next: a session, a cookie jar, or both.
struct KeptState {
  private var session: NamedSession?
  private var sessionPath: String?
  private let jarPath: String?
  /// The cookies of both.
  private(set) var cookies: [HTTPCookie] = []

  init(_ invocation: Invocation, variables: [String: String]) throws(UsageError) {
    jarPath = invocation.cookieJar
    if let name = invocation.session {
      let url = URLComponents(string: invocation.url)
      let host = (url?.host ?? "") + (url?.port.map { "_\($0)" } ?? "")
      let path = try NamedSession.path(name, host: host, variables: variables)
      let kept = try NamedSession(path: path)
      cookies += kept.cookies.compactMap { CookieJar.cookie($0) }
      session = kept
      sessionPath = invocation.isSessionReadOnly ? nil : path
    }
    if let jarPath { cookies += try CookieJar.read(jarPath) }
  }

  func applied(to invocation: Invocation) -> Invocation { session?.applied(to: invocation) ?? invocation }

  /// Stores what was typed, and the cookies that are there after the response.
  func store(_ cookies: [HTTPCookie], _ invocation: Invocation) throws(UsageError) {
    if var session, let sessionPath {
      session.remember(invocation)
      session.cookies = CookieJar.lines(cookies)
      try session.write(to: sessionPath)
    }
    if let jarPath { try CookieJar.write(cookies, to: jarPath) }
  }
}
