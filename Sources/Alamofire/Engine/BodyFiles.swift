import Foundation
import HTTPSystem
package import HTTPWire

/// Files that bodies come from and go to, and other files that programs name.
package enum BodyFiles {
  /// Opens a file that is sent, or a range of its bytes. Throws when it is missing, too short, or no regular file.
  /// Files of `/proc` and `/sys` are read now.
  package static func source(
    path: String, range: Range<Int64>? = nil
  ) throws(TransportFailure) -> any BodySource {
    try FileSource(path: path, range: range)
  }

  /// Returns a sink that writes a response to a file. `place` chooses the new file at `path`, or the file of an
  /// earlier download.
  package static func sink(
    path: String, place: @escaping @Sendable (ResponseHead) -> Result<DownloadPlace, TransportFailure>
  ) -> any FileBodySink {
    FileSink(path: path) { head in
      place(head).map { place in
        switch place {
        case .new: .new
        case .part(let path, let offset, let end): .part(path: path, offset: offset, end: end)
        }
      }
    }
  }

  /// Returns the path of a new file in the temporary folder that belongs to this process. If the process is killed, a
  /// later process of the user removes the file.
  package static func temporaryPath(in folder: URL, suffix: String) -> String {
    TemporaryFiles.path(in: folder.path, suffix: suffix)
  }

  /// Removes the files of ended processes of this user in a folder; see ``temporaryPath(in:suffix:)``.
  package static func removeOrphans(in folder: URL) { TemporaryFiles.removeOrphans(in: folder.path) }

  /// Removes the file of an earlier download, unless another download is appending to it.
  package static func removePart(_ path: String) { FileSink.removePart(path) }

  /// Moves the first `count` bytes of an earlier download to a place where nothing is. Returns false if that is not
  /// possible, as while another download is appending to it.
  package static func movePart(_ path: String, to target: String, count: Int64) -> Bool {
    FileSink.movePart(path, to: target, count: count)
  }

  /// Moves a file to a place where nothing is, all of it at once. Returns the number of the error if nothing
  /// has happened.
  ///
  /// - Parameter isShared: Whether the file gets the mode that the umask gives to new files. Default: it keeps its
  ///   mode, by which only its owner can read it.
  package static func move(_ source: String, to target: String, isShared: Bool = false) -> Int32? {
    guard case .failed(let code) = FileMove.move(source, to: target, isShared: isShared) else { return nil }
    return code
  }

  /// Reads a file to its end, up to 16 MiB. Blocks until a pipe is closed by its writer; a pipe without a writer is an
  /// error.
  package static func content(of path: String) throws(FileReadingFailure) -> Data {
    Data(try BoundedFile.content(of: path))
  }

  /// Whether the size of a regular file is not the number of its bytes, as in `/proc` and `/sys`.
  package static func isGenerated(_ path: String) -> Bool { GeneratedFile.isGenerated(path) }

  /// Reads a file of `/proc` or `/sys`, up to 16 MiB. Returns `nil` for a file whose size is right.
  package static func generatedContent(of path: String) throws(TransportFailure) -> Data? {
    try GeneratedFile.content(of: path).map { Data($0) }
  }
}

/// The destination of the bytes of a download.
package enum DownloadPlace: Sendable {
  case new
  /// The file of an earlier download, after its first `offset` bytes. The response ends at the size `end` of the file.
  case part(path: String, offset: Int64, end: Int64)
}

/// A file that is written.
package protocol FileBodySink: BodySink {
  /// The path of the file.
  var path: String { get }
  /// The size of the file in bytes.
  var size: Int64 { get }
  /// Locks the file against other transfers, and waits until its bytes are on the disk. Returns their number; `nil` if
  /// the file is not open, or in use.
  func flush() -> Int64?
}

extension FileSink: FileBodySink {}

/// Files that downloads in segments write to.
package enum SegmentFiles {
  /// Opens the partial file of a download, which is locked until it is closed. Returns `nil` if another download has
  /// locked it.
  package static func open(path: String, recordPath: String) throws(TransportFailure) -> (any SegmentFile)? {
    do throws(PartialFile.OpeningFailure) {
      return try PartialFile(path: path, recordPath: recordPath)
    } catch {
      switch error {
      case .inUse: return nil
      case .system(let failure): throw failure
      }
    }
  }

  /// Returns the paths of the partial file and its record for a file that is downloaded.
  package static func paths(for destination: String) -> (partial: String, record: String) {
    let partial = CompanionName.path(beside: destination, suffix: ".alamofire-partial")
    let record = CompanionName.path(
      beside: destination, suffix: ".alamofire-ranges", reserving: PartialFile.recordSuffixLength)
    return (partial, record)
  }

  /// The identifier of the running system; empty if it is unknown.
  package static var boot: String { PartialFile.boot }
}

/// A file that is written in ranges, with a record of these ranges. Its methods block.
package protocol SegmentFile: AnyObject, Sendable {
  /// The size of the file in bytes.
  var size: Int { get }
  /// Discards all bytes and the record, and reserves room for `length` bytes.
  func prepare(length: Int?) -> TransportFailure?
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> TransportFailure?
  /// Waits until the bytes are on the disk. Returns whether they are.
  func flush() -> Bool
  /// Adds all bytes of the file to a hash. Returns false if they cannot be read.
  func read(into hash: any RunningHash) -> Bool
  /// Moves the complete file, with the mode that the umask gives. Returns the number of the error if nothing has
  /// happened.
  func move(to target: String, replacing: Bool) -> Int32?
  /// Removes the file and its record.
  func remove()
  /// Releases the lock of the file.
  func close()
  /// Returns the content of the record; `nil` if there is none.
  func record() -> Data?
  /// Replaces the record. Returns false if that has failed.
  func replaceRecord(by lines: Data) -> Bool
  /// Appends a line to the record, if there is one.
  func append(_ line: Data)
}

extension PartialFile: SegmentFile {}

extension Journal {
  /// The journals of this library.
  package static let standard = Journal(hashes: OpenSSLHashes())
}

/// Folders of background transfers.
package enum BackgroundFolder {
  /// Opens and locks a folder, which is made if it does not exist.
  package static func open(_ path: String) throws(TransferFolderError) -> any TransferFiles {
    try TransferFolder(path: path)
  }

  /// Returns the folder of an identifier: `$XDG_STATE_HOME/alamofire/background/<identifier>`, below `~/.local/state`
  /// without that variable.
  package static func path(of identifier: String) -> String {
    let state = ProcessInfo.processInfo.environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    let base = state ?? FileManager.default.homeDirectoryForCurrentUser.path + "/.local/state"
    return "\(base)/alamofire/background/\(name(of: identifier))"
  }

  /// Returns a name for the folder of an identifier. Different identifiers have different names.
  static func name(of identifier: String) -> String {
    var plain = CharacterSet.alphanumerics
    plain.insert(charactersIn: "-_.")
    let name = identifier.utf8.map { byte -> String in
      let isPlain = byte < 0x80 && plain.contains(Unicode.Scalar(byte))
      return isPlain
        ? String(Unicode.Scalar(byte)) : "%" + String(0x100 + UInt16(byte), radix: 16).dropFirst()
    }.joined()
    // A name that begins with a full stop is hidden, or one of the system's own.
    if name.utf8.count <= 200, !name.isEmpty, !name.hasPrefix(".") { return name }
    return "%" + (OpenSSLHashes().text(.sha256, Array(identifier.utf8)) ?? "")
  }
}
