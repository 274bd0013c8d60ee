package import Foundation

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

  /// Decodes a session. Throws for any other content.
  package init(_ data: Data) throws {
    self = try JSONDecoder().decode(NamedSession.self, from: data)
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
    cookies.filter { !$0.utf8.contains(0x0A) }.compactMap { CookieJarLine($0.utf8) }
  }
}
