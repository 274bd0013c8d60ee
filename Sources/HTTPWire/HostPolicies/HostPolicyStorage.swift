public import FoundationEssentials

/// A table of the policies of hosts, in memory or in a file as well, for any number of threads.
package protocol HostPolicyStorage<Table>: Sendable {
  associatedtype Table: HostPolicyTable

  /// The error of the file, or of its last writing; `nil` without one, and without a file.
  var error: HostStorageError? { get }
  /// Reads the table at the current time, in seconds since 1970.
  func read<Value: Sendable>(_ body: (Table, Int64) -> Value) -> Value
  /// Changes the table at the current time. `body` returns whether the change has to be written to the file.
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

  /// Adds the entries of a text. If one line is invalid, nothing is added.
  package mutating func read(text: String) throws(HostStorageError) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
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
  /// The file holds something else, and is left as it is.
  case otherFile
  /// A line of the file is invalid; lines count from 1. The next write replaces the file.
  case brokenLine(Int)
  /// The file could not be written.
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
    case .notWritten: "The file could not be written; check the permissions of its folder and the space left."
    }
  }
}
