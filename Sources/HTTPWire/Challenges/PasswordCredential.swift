import FoundationEssentials

/// A name and a password, neither of which is in the description.
package struct PasswordCredential: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  package let user: String
  package let password: String

  package init(user: String, password: String) {
    self.user = user
    self.password = password
  }

  /// Compares bytes, because strings with different bytes can be equal in Swift, but not to a server.
  package static func == (left: Self, right: Self) -> Bool {
    left.user.hasBytes(of: right.user) && left.password.hasBytes(of: right.password)
  }

  package var description: String { "PasswordCredential(…)" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Whether it is valid in a field: control characters are not (RFC 7617 §2, RFC 7616 §3.4).
  package var isSendable: Bool {
    func isAllowed(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F }
    return user.utf8.allSatisfy(isAllowed) && password.utf8.allSatisfy(isAllowed)
  }

  /// The value of `Authorization` with Basic credentials (RFC 7617 §2), always in UTF-8; `nil` when there is none: a
  /// colon would end the name.
  package var basicField: String? {
    guard isSendable, !user.utf8.contains(UInt8(ascii: ":")) else { return nil }
    return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
  }
}

/// For which targets of an origin a credential is sent unasked.
package enum ProtectionDomain {
  /// Returns the protection space of a challenged target: all targets in the folder of its path (RFC 7617 §2.2).
  package static func ofBasic(target: String) -> String {
    let path = target.prefix { $0 != "?" }
    guard let slash = path.lastIndex(of: "/") else { return "/" }
    return String(path[...slash])
  }

  /// Returns the `domain` of a Digest challenge as prefixes of targets (RFC 7616 §3.3); without one it is all of the
  /// origin. URIs of other origins are left out, because those origins have to send their own challenges.
  package static func ofDigest(_ domain: String?, origin: Origin) -> [String] {
    let words = (domain ?? "").split { $0 == " " || $0 == "\t" }
    guard !words.isEmpty else { return ["/"] }
    return words.prefix(64).compactMap { word in
      if word.hasPrefix("/"), !word.hasPrefix("//") { return String(word) }
      guard Origin(url: String(word)) == origin else { return nil }
      return target(of: String(word))
    }
  }

  /// Returns path and query of an absolute URL, as in a request line (RFC 9112 §3.2.1).
  package static func target(of url: String) -> String {
    var url = url
    return url.withUTF8 { bytes in
      guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return "/" }
      var rest = bytes[(colon + 1)...]
      if rest.starts(with: "//".utf8) { rest = rest.dropFirst(2).drop { !endsAuthority($0) } }
      let target = rest.prefix { $0 != UInt8(ascii: "#") }
      let text = String(decoding: target, as: UTF8.self)
      return target.first == UInt8(ascii: "/") ? text : "/" + text
    }
  }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }
}

/// Names and passwords by host, as ftp, git and curl keep them in `~/.netrc`.
///
/// The words `machine host`, `default`, `login`, `password`, `account` and `macdef` are supported. Words may be
/// quoted; a word that begins with `#` begins a comment up to the end of the line. Unknown words are ignored.
package struct Netrc: Sendable, Equatable {
  private struct Entry: Sendable, Equatable {
    /// In lower case; `nil` matches all hosts.
    let host: String?
    var login: String?
    var password: String?
  }

  private var entries: [Entry] = []

  package init(_ text: String) {
    var words = NetrcWords(text)
    var entry: Entry?
    while let word = words.next() {
      // As in curl, keywords in capitals count as well.
      switch word.lowercased() {
      case "machine":
        keep(entry)
        entry = words.next(isValue: true).map { Entry(host: $0.lowercased()) }
      case "default":
        keep(entry)
        entry = Entry(host: nil)
      case "login": entry?.login = words.next(isValue: true)
      case "password": entry?.password = words.next(isValue: true)
      case "account": _ = words.next(isValue: true)
      case "macdef": words.skipMacro()
      default: break
      }
    }
    keep(entry)
  }

  private mutating func keep(_ entry: Entry?) {
    if let entry, entry.login != nil || entry.password != nil { entries.append(entry) }
  }

  /// Returns the first entry for a host, or the default entry if there is none.
  package func credential(host: String) -> PasswordCredential? {
    let host = host.lowercased()
    let entry = entries.first { $0.host == host } ?? entries.first { $0.host == nil }
    guard let entry else { return nil }
    return PasswordCredential(user: entry.login ?? "", password: entry.password ?? "")
  }
}

/// The words of a netrc file.
private struct NetrcWords {
  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// Returns the next word; a value may begin with `#`.
  mutating func next(isValue: Bool = false) -> String? {
    while position < bytes.count {
      if Self.isSpace(bytes[position]) {
        position += 1
      } else if bytes[position] == UInt8(ascii: "#"), !isValue {
        while position < bytes.count, bytes[position] != 0x0A { position += 1 }
      } else {
        return bytes[position] == UInt8(ascii: "\"") ? quoted() : plain()
      }
    }
    return nil
  }

  /// Skips a macro, which goes to the next empty line.
  mutating func skipMacro() {
    var isEmptyLine = false
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      guard byte == 0x0A else {
        if byte != 0x0D { isEmptyLine = false }
        continue
      }
      if isEmptyLine { return }
      isEmptyLine = true
    }
  }

  private mutating func plain() -> String {
    let start = position
    while position < bytes.count, !Self.isSpace(bytes[position]) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func quoted() -> String {
    var content: [UInt8] = []
    position += 1
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      var byte = bytes[position]
      if byte == UInt8(ascii: "\\"), position + 1 < bytes.count {
        position += 1
        byte = Self.unescaped(bytes[position])
      }
      content.append(byte)
      position += 1
    }
    position += 1
    return String(decoding: content, as: UTF8.self)
  }

  private static func unescaped(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: byte
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }
}
