import Alamofire
import Foundation
import Glibc

/// The part of a file that an earlier run has saved.
struct Resumption: Sendable {
  /// The meaning of a response for the partial file.
  enum Finding: Equatable {
    /// The bytes from the first missing one on.
    case rest
    /// No byte is missing.
    case complete
    /// A part that must not be appended, and the reason.
    case refused(String)
    /// The whole file, or no file.
    case unrelated
  }

  static let otherAnswer = "The server sent neither the missing part nor the whole file; nothing was written."
  static let otherPart = "The server sent another part of the file than was asked for; nothing was written."
  static let excess = "The server sent more bytes than the range of its response has; they were not written."

  /// The file as it was when its rest was requested.
  let part: FilePart
  private let path: String
  /// The path to which the links of `path` lead.
  private let location: String

  private var journal: PartialFileJournal { part.journal }

  /// The number of bytes of the file that count. Later ones are replaced.
  var offset: Int64 { journal.offset }

  /// Makes the continuation of a partial file; `nil` if there is nothing to continue, there is no file yet, or none of
  /// its bytes count.
  init?(_ invocation: Invocation) throws(UsageError) {
    guard invocation.isContinued, case .file(let path) = invocation.output else { return nil }
    var information = stat()
    guard stat(path, &information) == 0 else { return nil }
    guard information.st_mode & S_IFMT == S_IFREG else {
      throw UsageError("'\(path)' is not a file that can be continued.")
    }
    location = PrivateFile.destination(of: path)
    part = FilePart(size: Int64(information.st_size), journal: JournalFile(beside: location))
    guard part.journal.offset > 0 else { return nil }
    self.path = path
  }

  /// Adds the fields that ask for the missing part, if the file is the same. Otherwise the server sends all of it.
  func apply(to request: inout URLRequest) {
    request.setValue("bytes=\(offset)-", forHTTPHeaderField: "Range")
    guard let validator = journal.validator, request.value(forHTTPHeaderField: "If-Range") == nil
    else {
      return
    }
    request.setValue(validator, forHTTPHeaderField: "If-Range")
  }

  func finding(_ response: HTTPURLResponse) -> Finding {
    switch response.statusCode {
    case 206:
      switch journal.part(response) {
      case .rest: return .rest
      case .otherPart: return .refused(Self.otherPart)
      case .otherVersion:
        return .refused(
          "The file on the server has changed; nothing was written. Remove '\(path)' to get it again.")
      }
    // A server without the length in its answer may have sent it with the first part.
    case 416:
      let total = response.af.contentRange?.total ?? journal.length
      let isWhole = offset == part.size && total == offset && journal.length ?? offset == offset
      return isWhole ? .complete : .unrelated
    default: return .unrelated
    }
  }

  /// Opens the file to append what is missing, or to replace all of it. Throws if the file has changed since its rest
  /// was requested.
  func open(_ calls: FileCalls, isContinued: Bool) throws(SavedFile.Failure) -> SavedFile {
    try SavedFile(path: path, location: location, seen: part, isContinued: isContinued, calls: calls)
  }

  /// Removes the journal of the file, which is complete. Throws if the file has changed since its rest was requested.
  func complete() throws(SavedFile.Failure) {
    let descriptor = Glibc.open(location, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw SavedFile.Failure(path) }
    defer { close(descriptor) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else { throw .inUse(path) }
    defer { flock(descriptor, LOCK_UN) }
    let journal = JournalFile(beside: location)
    var status = stat()
    guard fstat(descriptor, &status) == 0, FilePart(size: Int64(status.st_size), journal: journal) == part
    else {
      throw .changed(path)
    }
    journal.remove()
  }
}

/// A partial file: its size, and what its journal says about it.
struct FilePart: Sendable, Equatable {
  let size: Int64
  let journal: PartialFileJournal

  /// Makes the part of a file. Without a journal all of its bytes count.
  init(size: Int64, journal: JournalFile) {
    self.size = size
    self.journal = journal.read(fileSize: size) ?? PartialFileJournal(fileSize: size)
  }
}

/// The file next to a partial file, which has its journal. A file that has its name and no journal is the user's: it is
/// neither read, nor replaced, nor removed, and neither is a link. An empty file counts as none, because a full disk
/// leaves one.
struct JournalFile: Sendable {
  private let path: String

  init(beside file: String) { path = FileNames.path(beside: file, suffix: FileNames.journalEnding) }

  /// Whether nothing but an empty file has the name of the journal.
  var isAbsent: Bool {
    var information = stat()
    return lstat(path, &information) != 0 ? errno == ENOENT : Self.isEmpty(information)
  }

  private static func isEmpty(_ information: stat) -> Bool {
    information.st_mode & S_IFMT == S_IFREG && information.st_size == 0
  }

  /// Reads the journal; `nil` if there is none.
  func read(fileSize: Int64) -> PartialFileJournal? {
    let limit = PartialFileJournal.largestSize
    guard let bytes = try? open(O_RDONLY)?.read(upToCount: limit + 1), bytes.count <= limit else {
      return nil
    }
    return PartialFileJournal(bytes, fileSize: fileSize)
  }

  /// Writes a journal. Without one the file can still be continued, so a failure does not fail the download.
  /// Returns whether it was written.
  ///
  /// - Parameter isAppended: Whether the journal continues the one that is there, if that has the form of this version.
  func write(_ journal: PartialFileJournal, isAppended: Bool = false) -> Bool {
    guard let lines = journal.lines else { return false }
    if isAbsent {
      remove()
      return write(lines, O_CREAT | O_EXCL)
    }
    guard read(fileSize: 0) != nil else { return false }
    return write(lines, isAppended && journal.isCurrent ? O_APPEND : O_TRUNC)
  }

  /// Appends that the first bytes of the file are on the disk.
  func note(flushed count: Int64) {
    if let line = PartialFileJournal.line(flushed: count) { _ = write(line, O_APPEND) }
  }

  /// Removes the journal.
  func remove() {
    var information = stat()
    guard lstat(path, &information) == 0 else { return }
    if Self.isEmpty(information) || read(fileSize: 0) != nil { unlink(path) }
  }

  /// Writes lines. New ones reach the disk before bytes of the file count. A part of a line is removed again, because
  /// nothing could follow it, and so is a new file.
  private func write(_ lines: Data, _ flags: Int32) -> Bool {
    guard let handle = open(O_WRONLY | flags), let size = try? handle.seekToEnd() else { return false }
    do {
      try handle.write(contentsOf: lines)
      if flags & O_APPEND == 0 { try handle.synchronize() }
      return true
    } catch {
      try? handle.truncate(atOffset: size)
      if flags & O_EXCL != 0 { unlink(path) }
      return false
    }
  }

  /// Opens a regular file, not what a link points to.
  private func open(_ flags: Int32) -> FileHandle? {
    let descriptor = Glibc.open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { return nil }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    var information = stat()
    guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
    return handle
  }
}
