public import FoundationEssentials

/// A table of the policies of hosts, in memory or in a file as well, for any number of threads.
package protocol HostPolicyStorage<Table>: Sendable {
  associatedtype Table: HostPolicyTable

  /// The error of the file, or of its last writing; `nil` without one, and without a file.
  var error: HostStorageError? { get }
  /// Reads the table at the current time, in seconds since 1970.
  func read<Value: Sendable>(_ body: (Table, Int64) -> Value) -> Value
  /// Changes the table at the current time. `body` returns whether the change has to be written to the file. A write
  /// that failed may be repeated without a change.
  func change(_ body: (inout Table, Int64) -> Bool)
  /// Writes all changes to the file before it returns.
  func save() throws(HostStorageError)
}

/// The policies of hosts, as a text of lines.
package protocol HostPolicyTable: Sendable {
  /// The first line, which identifies the kind of table.
  static var title: String { get }
  /// Returns the entries that have not expired.
  func lines(now: Int64) -> [String]
  /// Adds the entry of a line. Returns false if the line is invalid.
  mutating func read(_ line: Substring) -> Bool
}

extension HostPolicyTable {
  package func text(now: Int64) -> String {
    ([Self.title] + lines(now: now)).joined(separator: "\n") + "\n"
  }

  /// Adds the entries of a text. If one line is invalid, adds no entry at all.
  package mutating func read(text: String) throws(HostStorageError) {
    // Unicode scalars, because CR and LF are one character.
    let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      Substring(line.last == "\r" ? line.dropLast() : line)
    }
    guard lines.first.map({ $0 == Self.title }) == true else { throw .otherFile }
    var copy = self
    for (index, line) in lines.dropFirst().enumerated() where !line.isEmpty {
      guard copy.read(line) else { throw .brokenLine(index + 2) }
    }
    self = copy
  }
}

/// An error of the file of host policies.
public enum HostStorageError: Error, Sendable, Equatable, LocalizedError {
  /// Its folder belongs to another user, or other users may write to it and so change the file.
  case folderNotOurs
  /// The file is there and cannot be read, or is too large to be one.
  case unreadable
  /// The file holds something else, and is left unchanged.
  case otherFile
  /// A line of the file is invalid; lines count from 1. The next write replaces the file.
  case brokenLine(Int)
  /// The file could not be written, or would have more than 16 MiB.
  case notWritten

  /// The cause, and the remedy.
  public var errorDescription: String? {
    switch self {
    case .folderNotOurs:
      "The folder of the file belongs to another user, or others may write to it; choose one of your own."
    case .unreadable: "The file cannot be read; check its permissions."
    case .otherFile: "The file holds something else and is not touched; choose another name."
    case .brokenLine(let number):
      "Line \(number) of the file is broken, and nothing of it is used; it will be replaced."
    case .notWritten:
      "The file could not be written; check the permissions of its folder, the space left and the number of hosts."
    }
  }
}

/// The name of a host with a policy: ASCII, lower case, without the dot at its end.
package struct HostPolicyName: Hashable, Sendable {
  package let name: String

  /// Makes the name of a host; `nil` for an address, which does not identify a server, and for an invalid host.
  ///
  /// - Parameter host: A host of a URL, or one in another alphabet, which is encoded (RFC 3492).
  package init?(_ host: String) {
    guard let authority = Authority(host), authority.userInfo == nil, authority.port == nil, !authority.isIPv6
    else { return nil }
    var name = Substring(authority.host)
    if name.hasSuffix(".") { name.removeLast() }
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    guard let last = labels.last, labels.allSatisfy({ !$0.isEmpty }), !Self.isNumber(last) else { return nil }
    self.name = String(name)
  }

  private init(name: String) { self.name = name }

  /// The parent domain; `nil` for a single label.
  var parent: HostPolicyName? {
    guard let dot = name.utf8.firstIndex(of: UInt8(ascii: ".")) else { return nil }
    return HostPolicyName(name: String(name[name.utf8.index(after: dot)...]))
  }

  /// Whether a host with such a last label is an IPv4 address in one of its spellings: `127.1`, `0x7f.1`.
  private static func isNumber(_ label: Substring) -> Bool {
    if label.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) { return true }
    guard label.hasPrefix("0x") else { return false }
    return label.dropFirst(2).utf8.allSatisfy { byte in
      (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x66)
    }
  }
}

/// A strict scanner for fields with parameters: tokens, quoted strings, delimiters (RFC 9110 §5.6). Invalid fields
/// are refused as a whole, unlike challenges and `Cache-Control`, which have lenient scanners.
struct StrictScanner {
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = Substring(text).utf8 }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func skipSpace() {
    while let byte = rest.first, byte == 0x20 || byte == 0x09 { rest.removeFirst() }
  }

  /// Takes `byte` if it is the next one.
  mutating func take(_ byte: UInt8) -> Bool {
    guard rest.first == byte else { return false }
    rest.removeFirst()
    return true
  }

  /// Reads the next token; `nil` when there is none.
  mutating func token() -> String? {
    let end = rest.firstIndex { !HeaderFieldRules.isTokenByte($0) } ?? rest.endIndex
    guard end > rest.startIndex else { return nil }
    defer { rest = rest[end...] }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  /// Reads the text of the next quoted string; `nil` when there is none, or one without end.
  mutating func quotedString() -> String? {
    var scan = rest
    guard scan.popFirst() == UInt8(ascii: "\"") else { return nil }
    var text: [UInt8] = []
    while let byte = scan.popFirst() {
      switch byte {
      case UInt8(ascii: "\""):
        rest = scan
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let escaped = scan.popFirst() else { return nil }
        text.append(escaped)
      default: text.append(byte)
      }
    }
    return nil
  }

  /// Reads a token or a quoted string.
  mutating func value() -> String? { token() ?? quotedString() }

  /// Returns a decimal number of seconds, clamped to the largest one. `nil` for any other text.
  static func seconds(_ text: String) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int64(text) ?? .max
  }
}

extension Int64 {
  /// Returns this second plus `seconds`, clamped to the largest one.
  func later(by seconds: Int64) -> Int64 {
    let sum = addingReportingOverflow(seconds)
    return sum.overflow ? .max : sum.partialValue
  }
}
