package import Foundation
package import FoundationNetworking

/// The state of a session of the command, from one request to the next: header fields, credentials and cookies. It is
/// stored as JSON.
package struct NamedSession: Codable, Equatable, Sendable {
  package struct Field: Codable, Equatable, Sendable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  package struct Credentials: Codable, Equatable, Sendable {
    package var type: String
    package var user: String
    package var password: String

    package init(type: String, user: String, password: String) {
      self.type = type
      self.user = user
      self.password = password
    }
  }

  package var headers: [Field] = []
  package var credentials: Credentials?
  /// Lines of a cookie jar.
  package var cookies: [String] = []

  package init() {}

  /// Decodes a session. Throws for any other content, a session of HTTPie among it: its login would not be used, and
  /// would be lost when the file is written.
  package init(_ data: Data) throws {
    let decoder = JSONDecoder()
    let foreign = try decoder.decode(ForeignMembers.self, from: data)
    guard foreign.metadata == nil, foreign.login == nil else { throw NotASession() }
    self = try decoder.decode(NamedSession.self, from: data)
  }

  private struct NotASession: Error {}

  /// The members that only sessions of HTTPie have; their values do not matter.
  private struct ForeignMembers: Decodable {
    enum CodingKeys: String, CodingKey {
      case metadata = "__meta__"
      case login = "auth"
    }

    /// Any value.
    struct Value: Decodable {
      init(from decoder: any Decoder) {}
    }

    let metadata: Value?
    let login: Value?
  }

  /// Returns the content of the file.
  package func encoded() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return try encoder.encode(self)
  }

  /// The lines that are cookies. Any other line is left out.
  package var cookieLines: [CookieJarLine] {
    // A line feed in an entry would divide a line that looks like one cookie.
    CookieJarLine.all(cookies.filter { !$0.utf8.contains(0x0A) }.map(\.utf8))
  }
}

/// A cookie as a line of a cookie jar. The format is Netscape's, which curl and browsers' tools read too: seven fields
/// with tabs between them.
package struct CookieJarLine: Equatable, Sendable {
  /// The values of `SameSite` that keep a cookie from requests that another site has caused.
  package enum SameSite: String, CaseIterable, Sendable {
    case strict = "Strict"
    case lax = "Lax"

    /// The line before the line of the cookie.
    fileprivate var comment: String { "# SameSite=\(rawValue)" }

    /// Parses a line without its line feed. Returns `nil` for any other line.
    fileprivate init?(comment line: some Collection<UInt8>) {
      let bytes = Array(line)
      let text = bytes.last == 0x0D ? bytes.dropLast() : bytes[...]
      guard let value = Self.allCases.first(where: { text.elementsEqual($0.comment.utf8) }) else {
        return nil
      }
      self = value
    }
  }

  /// The domain without a leading dot.
  package var domain: String
  package var includesSubdomains: Bool
  package var path: String
  package var isSecure: Bool
  package var isHTTPOnly: Bool
  /// The second since 1970 in which the cookie expires; `nil` if it ends with the session.
  package var expiry: Int64?
  package var name: String
  package var value: String
  /// The attribute `SameSite`. The format has no field for it, so it is a comment on the line before the cookie's.
  package var sameSite: SameSite?

  /// The end of the year 9999. Foundation's calendar and other programs do not know later ones.
  package static let latestExpiry: Int64 = 253_402_300_799
  private static let httpOnlyMark = "#HttpOnly_"

  /// Parses a line without its line feed. Returns `nil` for a comment, and for any line that is not a cookie.
  ///
  /// Only the value may have tabs, because it is the last field. curl skips such a line.
  package init?(_ line: some Collection<UInt8>) {
    // Files that were edited on Windows have a carriage return there.
    let bytes = Array(line)
    var rest = bytes.last == 0x0D ? bytes.dropLast() : bytes[...]
    isHTTPOnly = rest.starts(with: Self.httpOnlyMark.utf8)
    if isHTTPOnly { rest = rest.dropFirst(Self.httpOnlyMark.utf8.count) }
    let parts = rest.split(separator: 0x09, maxSplits: 6, omittingEmptySubsequences: false)
    guard parts.count == 7, rest.first != UInt8(ascii: "#"),
      rest.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
    else { return nil }
    let fields = parts.compactMap { String(validating: $0, as: UTF8.self) }
    guard fields.count == 7 else { return nil }
    let hasDot = fields[0].utf8.first == UInt8(ascii: ".")
    domain = hasDot ? String(decoding: fields[0].utf8.dropFirst(), as: UTF8.self) : fields[0]
    includesSubdomains = fields[1].uppercased() == "TRUE"
    path = fields[2]
    isSecure = fields[3].uppercased() == "TRUE"
    expiry = Self.expiry(fields[4])
    (name, value) = (fields[5], fields[6])
    guard let first = domain.utf8.first, !".#".utf8.contains(first), path.utf8.first == UInt8(ascii: "/"),
      !name.isEmpty || !value.isEmpty
    else { return nil }
  }

  /// The line without its line feed, and without ``sameSite``. `nil` for a cookie that could not be read back
  /// unchanged: a tab in a name or a path, or any line break, would make it another cookie.
  package var text: String? {
    let fields = [
      (isHTTPOnly ? Self.httpOnlyMark : "") + (includesSubdomains ? "." : "") + domain,
      includesSubdomains ? "TRUE" : "FALSE", path, isSecure ? "TRUE" : "FALSE",
      expiry.map { String($0) } ?? "0", name, value,
    ]
    let text = fields.joined(separator: "\t")
    guard !text.utf8.contains(0x0A), var found = CookieJarLine(text.utf8) else { return nil }
    found.sameSite = sameSite
    return found == self ? text : nil
  }

  /// The lines of a jar from which ``all(in:)`` reads the cookie; none for a cookie without ``text``.
  package var lines: [String] {
    guard let text else { return [] }
    return [sameSite?.comment, text].compactMap { $0 }
  }

  /// Reads all lines of a jar, which are divided only by line feeds.
  package static func all(in jar: Data) -> [CookieJarLine] { all(jar.split(separator: 0x0A)) }

  /// Returns whether a text is a jar: it has a cookie, or begins as a jar does, or has nothing but comments.
  package static func isJar(_ text: Data) -> Bool {
    let lines = text.split(separator: 0x0A)
    let heads = ["# Netscape HTTP Cookie File", "# HTTP Cookie File"]
    if let first = lines.first, heads.contains(where: { first.starts(with: $0.utf8) }) { return true }
    let isBlank = lines.allSatisfy { line in
      line.first { !" \t\r".utf8.contains($0) }.map { $0 == UInt8(ascii: "#") } ?? true
    }
    return isBlank || lines.contains { CookieJarLine($0) != nil }
  }

  /// Reads lines without their line feeds. Those that are not cookies are skipped.
  package static func all<Line: Collection<UInt8>>(_ lines: [Line]) -> [CookieJarLine] {
    var cookies: [CookieJarLine] = []
    var sameSite: SameSite?
    for line in lines {
      if var cookie = CookieJarLine(line) {
        cookie.sameSite = sameSite
        cookies.append(cookie)
      }
      sameSite = SameSite(comment: line)
    }
    return cookies
  }

  /// Returns the seconds of a field, which some programs write with a fraction; `nil` for none, and for 0.
  private static func expiry(_ text: String) -> Int64? {
    guard let seconds = Double(text), seconds >= 1 else { return nil }
    return seconds < Double(latestExpiry) ? Int64(seconds) : latestExpiry
  }
}

extension CookieJarLine {
  /// Makes the line of a cookie. Foundation does not know its `SameSite`.
  package init(_ cookie: HTTPCookie, sameSite: SameSite?) {
    includesSubdomains = cookie.domain.hasPrefix(".")
    domain = includesSubdomains ? String(cookie.domain.dropFirst()) : cookie.domain
    path = cookie.path
    isSecure = cookie.isSecure
    isHTTPOnly = cookie.isHTTPOnly
    expiry = cookie.expiresDate.map { date in
      let seconds = date.timeIntervalSince1970
      return seconds < Double(Self.latestExpiry) ? Int64(max(0, seconds)) : Self.latestExpiry
    }
    (name, value) = (cookie.name, cookie.value)
    self.sameSite = sameSite
  }

  /// The cookie of the line; `nil` if Foundation makes none of it.
  package var cookie: HTTPCookie? {
    var properties: [HTTPCookiePropertyKey: Any] = [
      .domain: (includesSubdomains ? "." : "") + domain, .path: path, .name: name, .value: value,
    ]
    if isSecure { properties[.secure] = "TRUE" }
    if isHTTPOnly { properties[HTTPCookiePropertyKey("HttpOnly")] = "TRUE" }
    if let expiry { properties[.expires] = Date(timeIntervalSince1970: TimeInterval(expiry)) }
    // Foundation keeps a comment, and no property for the attribute. So this is where the library looks for it.
    if let sameSite { properties[.comment] = "Alamofire; SameSite=\(sameSite.rawValue)" }
    return HTTPCookie(properties: properties)
  }
}
