import Alamofire
import Foundation
import Glibc

/// The calls of the system that report lost bytes; tests use their own.
package struct FileCalls: Sendable {
  /// Waits until the bytes of a file are on the disk.
  package var flush: @Sendable (Int32) -> Int32 = { fdatasync($0) }
  package var close: @Sendable (Int32) -> Int32 = { Glibc.close($0) }
  /// The bytes after which a file is flushed to the disk, in the background.
  package var flushInterval: Int64 = 64 << 20

  package init() {}
}

/// A file to which the body of a response is written.
final class SavedFile: Sendable {
  /// The reason why a file could not be written.
  struct Failure: Error {
    let sentence: String

    init(_ path: String, code: Int32 = errno) {
      sentence = "'\(path)' cannot be written: \(String(cString: strerror(code)))."
    }

    static func changed(_ path: String) -> Failure {
      Failure(sentence: "'\(path)' has changed since the request was sent; nothing was written.")
    }

    static func inUse(_ path: String) -> Failure {
      Failure(sentence: "Another download writes '\(path)'; nothing was written.")
    }

    private init(sentence: String) { self.sentence = sentence }
  }

  private struct State {
    var size: Int64 = 0
    /// The size at the last flush.
    var flushedSize: Int64 = 0
    /// Whether the journal next to the file, if there is one, belongs to this file.
    var ownsJournal: Bool
    /// Whether lines may be appended to it.
    var hasJournal = false
    /// Whether bytes were lost, because a flush has failed.
    var hasLostBytes = false
    var isClosed = false
  }

  /// The path as it is shown.
  let path: String
  /// The path to which the links of `path` lead.
  private let location: String
  private let descriptor: Int32
  private let calls: FileCalls
  /// The flushes that run in the background.
  private let flushes = DispatchGroup()
  /// Locked because a flush in the background ends while bytes are written.
  private let state: Mutex<State>

  private var journal: JournalFile { JournalFile(beside: location) }

  /// Opens a file that the user has named. The earlier content of the file is replaced, unless the file is continued.
  ///
  /// - Parameters:
  ///   - location:    The path to which the links of `path` lead, if it is known.
  ///   - part:        The file as it was before the request was sent; `nil` if it does not matter. A file that differs
  ///                  from it is left alone, unless it is empty.
  ///   - isContinued: Whether `part` is continued.
  init(
    path: String, location: String? = nil, seen part: FilePart? = nil, isContinued: Bool = true,
    calls: FileCalls = FileCalls()
  ) throws(Failure) {
    let earlier = isContinued ? part?.journal : nil
    let location = location ?? PrivateFile.destination(of: path)
    self.path = path
    self.calls = calls
    self.location = location
    // The journal of an earlier run, if there is one.
    state = Mutex(State(size: earlier?.offset ?? 0, ownsJournal: true))
    descriptor = open(location, O_WRONLY | O_CLOEXEC | (earlier == nil ? O_CREAT : O_APPEND), 0o666)
    guard descriptor >= 0 else { throw Failure(path) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Failure(path) }
    // Pipes and devices have no size, and several programs may write to them.
    let isRegular = status.st_mode & S_IFMT == S_IFREG
    guard isRegular || part == nil else { throw Failure(path, code: EINVAL) }
    guard isRegular else { return }
    if !locks() { throw .inUse(path) }
    guard fstat(descriptor, &status) == 0 else { throw Failure(path) }
    // Another run may have written it since then.
    // An empty file has nothing to lose.
    let isNew = earlier == nil && status.st_size == 0
    if let part, !isNew, FilePart(size: Int64(status.st_size), journal: journal) != part {
      throw .changed(path)
    }
    // Later bytes do not count.
    guard ftruncate(descriptor, off_t(earlier?.offset ?? 0)) == 0 else { throw Failure(path) }
    guard let earlier else { return }
    guard !journal.isAbsent else { return }
    let isWritten = journal.write(earlier, isAppended: true)
    state.withLock { $0.hasJournal = isWritten }
  }

  /// Makes a new file in a folder, by default the current one. The name from the server is used without its path. It is
  /// never used for a file that exists, nor next to one that has the name of its journal.
  init(suggestedName: String?, folder: String = ".", calls: FileCalls = FileCalls()) throws(Failure) {
    self.calls = calls
    let name = Self.safe(suggestedName ?? "")
    let dot = name.unicodeScalars.lastIndex(of: ".") ?? name.endIndex
    var candidate = name
    var opened: Int32 = -1
    errno = EEXIST
    for number in 1...1000 {
      let target = "\(folder)/\(candidate)"
      if JournalFile(beside: target).isAbsent {
        opened = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        if opened >= 0 || errno != EEXIST { break }
      }
      candidate = "\(name[..<dot])-\(number)\(name[dot...])"
    }
    path = candidate
    location = "\(folder)/\(candidate)"
    state = Mutex(State(ownsJournal: false))
    descriptor = opened
    guard descriptor >= 0 else { throw Failure(candidate) }
    // Another program that continues the file by its name may have been faster.
    if !locks() { throw .inUse(candidate) }
  }

  /// Returns whether no other program writes to the file. File systems without locks do not tell.
  private func locks() -> Bool { flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK }

  deinit {
    guard descriptor >= 0, !state.withLock({ $0.isClosed }) else { return }
    // The lock is released before, because a process that is being started has a copy of the descriptor until its
    // program begins.
    flock(descriptor, LOCK_UN)
    Glibc.close(descriptor)
  }

  /// Returns a name for the current folder, by the rule of `suggestedFilename`. It leaves room for a number and for the
  /// names of partial files.
  static func safe(_ name: String) -> String { FileNames.component(of: name, longest: 200) ?? "download" }

  /// Writes the journal, until the file is complete. Returns whether what is missing can be appended later. Pipes and
  /// devices are not continued, and neither are encoded bodies.
  func record(_ response: HTTPURLResponse) -> Bool {
    var information = stat()
    guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return false }
    guard let new = PartialFileJournal(response) else {
      removeJournal()
      return true
    }
    let isWritten = journal.write(new)
    state.withLock { state in
      state.hasJournal = isWritten && new.countsNewBytes
      state.ownsJournal = isWritten || state.ownsJournal
    }
    return new.countsNewBytes
  }

  /// Replaces this file with another one of the same folder.
  func replace(with other: String) throws(Failure) {
    guard rename(other, location) == 0 else { throw Failure(location) }
  }

  /// Closes the complete file and removes its journal. Throws if bytes were lost, which the system may report only now.
  func finish() throws(Failure) {
    // A flush that still runs may fail.
    flushes.wait()
    guard !state.withLock({ $0.hasLostBytes }) else { throw Failure(path, code: EIO) }
    // It keeps the lock until nothing of the file is left to be done.
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    defer {
      if copy >= 0 {
        flock(copy, LOCK_UN)
        Glibc.close(copy)
      }
    }
    state.withLock { $0.isClosed = true }
    // Linux closes a file also if a signal interrupts that.
    if calls.close(descriptor) != 0, errno != EINTR {
      let failure = Failure(path)
      // Bytes may be lost, so none of the file counts.
      if copy >= 0 { ftruncate(copy, 0) }
      throw failure
    }
    removeJournal()
  }

  private func removeJournal() {
    state.withLock { state in
      state.hasJournal = false
      if state.ownsJournal { journal.remove() }
    }
  }

  /// Flushes the file to the disk, so that its bytes count after a restart of the machine.
  func flush() {
    let (hasJournal, size) = state.withLock { ($0.hasJournal, $0.size) }
    guard hasJournal else { return }
    let isFlushed = calls.flush(descriptor) == 0
    state.withLock { state in
      guard state.hasJournal else { return }
      if isFlushed { return journal.note(flushed: size) }
      // The kernel reports lost bytes once. None of the file counts then.
      (state.hasJournal, state.hasLostBytes) = (false, true)
      ftruncate(descriptor, 0)
    }
  }

  func write(_ data: Data) throws(Failure) {
    let isDue = try state.withLock { state throws(Failure) in
      guard !state.hasLostBytes else { throw Failure(path, code: EIO) }
      try append(data)
      state.size += Int64(data.count)
      guard state.hasJournal, state.size - state.flushedSize >= calls.flushInterval else { return false }
      state.flushedSize = state.size
      return true
    }
    if isDue { DispatchQueue.global(qos: .utility).async(group: flushes) { self.flush() } }
  }

  private func append(_ data: Data) throws(Failure) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw Failure(path)
      }
    }
  }
}

/// The continuation of a file, of which an earlier run may have saved a part.
struct Resumption: Sendable {
  /// The meaning of a response for the partial file.
  enum Finding: Equatable {
    /// The bytes from the first missing one on, of a file with this length, if it is known.
    case rest(total: Int64?)
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

  /// The file as it was before the request was sent; without bytes if there was none.
  let part: FilePart
  private let path: String
  /// The path to which the links of `path` lead.
  private let location: String

  private var journal: PartialFileJournal { part.journal }

  /// The number of bytes of the file that count. Later ones are replaced.
  var offset: Int64 { journal.offset }

  /// Whether the rest of the file is requested. Otherwise none of its bytes count, and the whole file is requested.
  var requestsRest: Bool { offset > 0 }

  /// Makes the continuation of a file, which need not exist yet; `nil` if the arguments request none.
  init?(_ invocation: Invocation) throws(UsageError) {
    guard invocation.isContinued, case .file(let path) = invocation.output else { return nil }
    var information = stat()
    let exists = stat(path, &information) == 0
    guard !exists || information.st_mode & S_IFMT == S_IFREG else {
      throw UsageError("'\(path)' is not a file that can be continued.")
    }
    location = PrivateFile.destination(of: path)
    let journal = JournalFile(beside: location)
    // Without it all bytes would count, and the rest of another version could be appended to them.
    if exists, information.st_size > 0, journal.isForeign {
      throw UsageError(
        "'\(journal.path)' belongs to another user, so the version of '\(path)' is not known. "
          + "Leave out --continue to get the whole file, or remove the journal to append to any version.")
    }
    // A file that appears while the response is awaited belongs to another run, and is not replaced either.
    part = FilePart(size: exists ? Int64(information.st_size) : 0, journal: journal)
    self.path = path
  }

  /// Adds the fields that ask for the missing part, if the file is the same. Otherwise the server sends all of it.
  func apply(to request: inout URLRequest) {
    guard requestsRest else { return }
    request.setValue("bytes=\(offset)-", forHTTPHeaderField: "Range")
    guard let validator = journal.validator, request.value(forHTTPHeaderField: "If-Range") == nil
    else {
      return
    }
    request.setValue(validator, forHTTPHeaderField: "If-Range")
  }

  func finding(_ response: HTTPURLResponse) -> Finding {
    guard requestsRest else { return .unrelated }
    switch response.statusCode {
    case 206:
      switch journal.part(response) {
      case .rest(let total): return .rest(total: total)
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

  /// Opens the file to append what is missing, or to replace all of it. Throws if the file has changed since the
  /// request was sent.
  func open(_ calls: FileCalls, isContinued: Bool) throws(SavedFile.Failure) -> SavedFile {
    try SavedFile(path: path, location: location, seen: part, isContinued: isContinued, calls: calls)
  }

  /// Removes the journal of the file, which is complete. Throws if the file has changed since the request was sent.
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
/// neither read, nor replaced, nor removed, and neither is a link or a file of another user. An empty file counts as
/// none, because a full disk leaves one.
struct JournalFile: Sendable {
  let path: String
  private let file: String
  private let user: uid_t

  /// Makes the journal of a file.
  ///
  /// - Parameter user: The user of the process, whose journals are used; tests use another one.
  init(beside file: String, user: uid_t = geteuid()) {
    path = FileNames.path(beside: file, suffix: FileNames.journalEnding)
    self.file = file
    self.user = user
  }

  /// Whether another user has made what has the name of the journal. In a shared folder that user could claim that the
  /// file is of another version than it is.
  var isForeign: Bool {
    var information = stat()
    return lstat(path, &information) == 0 && !isOwn(information)
  }

  /// Returns whether an entry belongs to the user, or to the owner of the partial file, who may change its bytes
  /// anyway: an administrator continues the files of others, and some file systems show one owner for all files.
  private func isOwn(_ information: stat) -> Bool {
    if information.st_uid == user { return true }
    var beside = stat()
    // A second name may be the one that its owner has given it.
    return information.st_nlink == 1 && lstat(file, &beside) == 0 && beside.st_mode & S_IFMT == S_IFREG
      && beside.st_uid == information.st_uid
  }

  /// Whether nothing but an empty file has the name of the journal.
  var isAbsent: Bool {
    var information = stat()
    return lstat(path, &information) != 0 ? errno == ENOENT : isEmpty(information)
  }

  private func isEmpty(_ information: stat) -> Bool {
    information.st_mode & S_IFMT == S_IFREG && information.st_size == 0 && isOwn(information)
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
    guard isAppended, let size = journal.validSize else { return write(lines, O_TRUNC) }
    return write(lines, O_APPEND, after: size)
  }

  /// Appends that the first bytes of the file are on the disk.
  func note(flushed count: Int64) {
    if let line = PartialFileJournal.line(flushed: count) { _ = write(line, O_APPEND) }
  }

  /// Removes the journal.
  func remove() {
    var information = stat()
    guard lstat(path, &information) == 0 else { return }
    if isEmpty(information) || read(fileSize: 0) != nil { unlink(path) }
  }

  /// Writes lines. New ones reach the disk before bytes of the file count. A part of a line is removed again, because
  /// nothing could follow it, and so is a new file.
  ///
  /// - Parameter validSize: The size of the earlier lines. Bytes after them, which a crash has left, are removed.
  ///   Default: the size of the file.
  private func write(_ lines: Data, _ flags: Int32, after validSize: Int? = nil) -> Bool {
    guard let handle = open(O_WRONLY | flags), let end = try? handle.seekToEnd() else { return false }
    let size = validSize.map { min(UInt64($0), end) } ?? end
    do {
      if size < end { try handle.truncate(atOffset: size) }
      try handle.write(contentsOf: lines)
      if flags & O_APPEND == 0 { try handle.synchronize() }
      return true
    } catch {
      try? handle.truncate(atOffset: size)
      if flags & O_EXCL != 0 { unlink(path) }
      return false
    }
  }

  /// Opens a regular file of this user, not what a link points to. If the file system shows another owner for a new
  /// file, it is removed, because nothing could be appended to it, and the next run would not trust it.
  private func open(_ flags: Int32) -> FileHandle? {
    let descriptor = Glibc.open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { return nil }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    var information = stat()
    guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG, isOwn(information)
    else {
      if flags & O_EXCL != 0 { unlink(path) }
      return nil
    }
    return handle
  }
}
