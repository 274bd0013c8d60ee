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

  /// Returns the first entry for a host, or, behind all of them, the default one.
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
