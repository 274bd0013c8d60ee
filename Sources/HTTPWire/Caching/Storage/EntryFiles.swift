package import FoundationEssentials

/// The files of stored responses, each with its own name. Every call may wait for the disk.
///
/// A reader finds the old or the new content of a file, also if the writing process was killed. Several processes may
/// use one folder.
package protocol EntryFiles: Sendable {
  /// The folder. Two objects with one location have the same files.
  var location: String { get }
  /// Returns all files, with their sizes in bytes and the second since 1970 of their last use. `nil` if they cannot
  /// be listed now, for example without a free descriptor.
  func list() -> [EntryFile]?
  /// Removes files that killed processes have not completed.
  func removeLeftovers()
  func read(_ name: String) -> EntryReading
  /// Writes a file, and replaces an older one. Returns whether it succeeded.
  func write(_ name: String, _ bytes: Data) -> Bool
  /// Removes a file. Returns whether its bytes are removed, or did not exist.
  func remove(_ name: String) -> Bool
  /// Records a use of a file.
  func touch(_ name: String)
}

extension EntryFiles {
  package func removeLeftovers() {}
}

/// The result of reading a file.
package enum EntryReading: Sendable {
  case bytes(Data)
  /// There is no such file, or something else in its place.
  case missing
  /// The file cannot be read now, for example without a free descriptor; it may be intact.
  case unavailable

  package var data: Data? {
    switch self {
    case .bytes(let data): data
    case .missing, .unavailable: nil
    }
  }
}

package struct EntryFile: Sendable {
  package let name: String
  package let size: Int
  package let used: Int64

  package init(name: String, size: Int, used: Int64) {
    self.name = name
    self.size = size
    self.used = used
  }
}

/// The identifier of a stored response: the hash of the URL, and that of its selection.
package struct EntryID: Hashable, Sendable {
  package let hash: UInt64
  package let variant: UInt32

  package init(hash: UInt64, variant: UInt32) {
    self.hash = hash
    self.variant = variant
  }

  /// Makes the identity of a response. Both hashes include the URL, with different functions. So URLs with equal
  /// hashes do not collide, and neither do entries of single sessions.
  package init(_ stored: StoredResponse) {
    let url = stored.key.url.utf8.reduce(UInt32(0)) { $0 &* 31 &+ UInt32($1) }
    self.init(hash: stored.key.hash, variant: stored.selection.hash ^ url)
  }

  /// The name of its file: 24 hexadecimal digits and `.response`.
  package var name: String { Self.digits(hash, 16) + Self.digits(UInt64(variant), 8) + Self.suffix }

  /// Reads the identity from a file name; `nil` for a name of another format.
  package init?(name: String) {
    guard name.utf8.count == 33, name.hasSuffix(Self.suffix),
      let hash = UInt64(name.prefix(16), radix: 16),
      let variant = UInt32(name.dropFirst(16).prefix(8), radix: 16)
    else { return nil }
    self.init(hash: hash, variant: variant)
    guard self.name == name else { return nil }
  }

  private static let suffix = ".response"

  private static func digits(_ number: UInt64, _ count: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: count - text.utf8.count) + text
  }
}
