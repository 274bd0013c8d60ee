package import FoundationEssentials

/// The files of the background transfers of one identifier: journals, downloaded files and bodies of uploads. One
/// process at a time has them. Every call may wait for the disk.
package protocol TransferFiles: Sendable {
  /// The path of the folder.
  var location: String { get }
  /// The identifier of the machine's boot.
  var boot: String { get }
  /// Returns the names of all files; `nil` if the folder cannot be read.
  func names() -> [String]?
  /// Returns the content of a file; `nil` if it does not exist or cannot be read.
  func read(_ name: String) -> Data?
  /// Returns the size of a file in bytes; `nil` if it does not exist.
  func size(of name: String) -> Int64?
  /// Returns the second since 1970 in which a file was last changed; `nil` if it does not exist.
  func changed(_ name: String) -> Int64?
  /// Makes a file, which is on the disk afterwards. Returns the number of the error, if there is one.
  func make(_ name: String, _ bytes: Data) -> Int32?
  /// Replaces a file by one with other bytes, which is on the disk when its name is. Returns the number of the error,
  /// if there is one; then nothing has happened.
  func replace(_ name: String, by bytes: Data) -> Int32?
  /// Appends to a file, all bytes or none. Returns the number of the error, if there is one.
  func append(_ bytes: Data, to name: String) -> Int32?
  /// Shortens a file.
  func cut(_ name: String, to length: Int)
  /// Waits until the bytes of a file are on the disk. Returns false if that failed.
  func synchronize(_ name: String) -> Bool
  func remove(_ name: String)
  /// Lets another process, or another session, have the files.
  func unlock()
}

extension TransferFiles {
  package func path(of name: String) -> String { "\(location)/\(name)" }
}

/// The reason why the folder of background transfers cannot be used.
package enum TransferFolderError: Error, Sendable, Equatable {
  /// Another process, or another session of this one, uses it.
  case inUse
  /// Its session has ended.
  case closed
  /// A folder that belongs to another user, or to which other users may write.
  case notOurs
  /// A folder that cannot be made or locked; the text is that of the system.
  case unusable(String)
}
