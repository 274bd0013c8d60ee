import CLinux
import Glibc

/// Moves a file so that the target is either missing or complete at every moment, even if the process is killed.
package enum FileMove {
  package enum MoveOutcome: Equatable, Sendable {
    case moved
    /// The move failed and changed nothing. The value is the number of the error.
    case failed(Int32)
  }

  /// Moves `source` to `target`, which must not exist unless it is replaced. Between two file systems, the bytes are
  /// first copied into a file without a name. If the system has no such files, or cannot name them, `hasNamelessFiles`
  /// is false, or the target is replaced, that file is beside the target, and its name begins with `.Alamofire_`. A
  /// file with a name stays if the process is killed before the end. The copy and its name are on the disk before
  /// `source` is removed.
  ///
  /// - Parameters:
  ///   - isShared: Whether the file gets the mode that the umask gives to new files, once it is at its target.
  ///     Default: it keeps its mode, and a copy has 0600.
  ///   - isReplacing: Whether a file at the target is replaced. If only the new name cannot be flushed, the new file
  ///     stays there. Default: no.
  ///   - descriptors: The folder with the links of open files. Some containers lack it.
  ///   - flush: Flushes a file or a folder to the disk. Returns the number of the error, or 0.
  package static func move(
    _ source: String, to target: String, isShared: Bool = false, isReplacing: Bool = false,
    hasNamelessFiles: Bool = true, descriptors: String = "/proc/self/fd",
    flush: (Int32) -> Int32 = { fsync($0) == 0 ? 0 : errno }
  ) -> MoveOutcome {
    var status = stat()
    guard isReplacing || lstat(target, &status) != 0 else { return .failed(EEXIST) }
    // Opened before, because another file may have the name afterwards.
    let shared = isShared ? open(source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1
    defer { if shared >= 0 { close(shared) } }
    let code = rename(source, to: target, isReplacing: isReplacing)
    if code == EXDEV {
      return copy(source, to: target, isShared, isReplacing, hasNamelessFiles ? descriptors : nil, flush)
    }
    guard code == 0 else { return .failed(code) }
    if shared >= 0 { FileMode.apply(to: shared) }
    return .moved
  }

  /// Whether a regular file at `target` stays if `source`, which has another path, is removed.
  package static func isIndependent(_ target: String, of source: String) -> Bool {
    var (own, other) = (stat(), stat())
    guard lstat(source, &own) == 0, lstat(target, &other) == 0, other.st_mode & S_IFMT == S_IFREG else {
      return false
    }
    return own.st_ino != other.st_ino || own.st_dev != other.st_dev || other.st_nlink > 1
  }

  /// The entry at the target of an earlier move.
  package enum TargetEntry: Sendable {
    /// The moved file has gone: nothing is there, or a link or a folder that only this user can have put there.
    case missing
    /// A file that may be the moved one.
    case file
    /// An entry that is not the moved file, and that others may have put there.
    case other
  }

  /// Returns the entry at `target`, where a file was moved. All users may make files in a folder such as `/tmp`: there
  /// the moved one is a file of this user.
  package static func entry(at target: String) -> TargetEntry {
    var (file, parent) = (stat(), stat())
    guard lstat(target, &file) == 0 else { return .missing }
    let isOwn = file.st_uid == geteuid()
    let hasParent = stat(folder(of: target), &parent) == 0
    switch file.st_mode & S_IFMT {
    case S_IFREG:
      // In a folder without the sticky bit, anyone could replace the file anyway, and some file systems have no owners.
      return !isOwn && hasParent && parent.st_mode & 0o1002 == 0o1002 ? .other : .file
    case S_IFLNK, S_IFDIR:
      // A handler that has moved the file away may have left a link to it, or a folder with its content.
      return isOwn && hasParent && parent.st_mode & 0o022 == 0 ? .missing : .other
    default: return .other
    }
  }

  private static func folder(of target: String) -> String {
    target.utf8.lastIndex(of: 0x2F).map { $0 == target.startIndex ? "/" : String(target[..<$0]) } ?? "."
  }

  /// The errors of a file without a name that gets none: `/proc` is missing, or the file system cannot do it.
  private static let namelessErrors = [ENOENT, EXDEV, EOPNOTSUPP, EPERM, EACCES]

  /// Moves a file to another file system.
  ///
  /// - Parameter descriptors: The folder with the links of open files; `nil` if a copy without a name is not tried.
  private static func copy(
    _ source: String, to target: String, _ isShared: Bool, _ isReplacing: Bool, _ descriptors: String?,
    _ flush: (Int32) -> Int32
  ) -> MoveOutcome {
    // A file without a name does not get a name that is taken.
    let isNameless = descriptors != nil && !isReplacing
    let input = open(source, O_RDONLY | O_CLOEXEC)
    guard input >= 0 else { return .failed(errno) }
    defer { close(input) }
    let folder = folder(of: target)
    let output = isNameless ? open(folder, namelessFile | O_WRONLY | O_CLOEXEC, 0o600) : -1
    let isUnknown = output < 0 && (!isNameless || [EOPNOTSUPP, EISDIR, EINVAL].contains(errno))
    guard output >= 0 || isUnknown else { return .failed(errno) }
    if isShared, output >= 0 { FileMode.apply(to: output) }
    var failure: Int32?
    if let descriptors, output >= 0 {
      failure = copy(input, to: target, by: output, descriptors, flush)
    }
    if isUnknown || failure.map(namelessErrors.contains) == true {
      failure =
        lseek(input, 0, SEEK_SET) == 0
        ? copy(input, beside: target, in: folder, isShared, isReplacing, flush) : errno
    }
    if let failure { return .failed(failure) }
    if let failure = flushName(in: folder, flush) {
      if !isReplacing { unlink(target) }
      return .failed(failure)
    }
    unlink(source)
    return .moved
  }

  /// Renames a file. Unless it replaces another one, the new name must not be taken, also by a file that has just
  /// appeared. Returns the number of the error, or 0. If the file system has no such operation, the file gets a second
  /// name first.
  private static func rename(
    _ source: UnsafePointer<CChar>, to target: UnsafePointer<CChar>, isReplacing: Bool
  ) -> Int32 {
    if isReplacing { return Glibc.rename(source, target) == 0 ? 0 : errno }
    if linux_rename_to_new_name(source, target) == 0 { return 0 }
    guard errno == EINVAL || errno == ENOSYS else { return errno }
    if link(source, target) == 0 {
      unlink(source)
      return 0
    }
    // Without links, nothing better is left. The caller has looked before.
    guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(errno) else { return errno }
    return Glibc.rename(source, target) == 0 ? 0 : errno
  }

  /// `O_TMPFILE`, a macro that Swift does not import: a file without a name in the opened folder.
  private static let namelessFile = 0o20_000_000 | O_DIRECTORY

  /// Copies the file and gives the copy its name at the end. Returns the number of the error, if there is one.
  private static func copy(
    _ input: Int32, to target: String, by output: Int32, _ descriptors: String, _ flush: (Int32) -> Int32
  ) -> Int32? {
    defer { close(output) }
    if let code = copy(input, to: output, flush) { return code }
    let isDone = linkat(AT_FDCWD, "\(descriptors)/\(output)", AT_FDCWD, target, AT_SYMLINK_FOLLOW) == 0
    return isDone ? nil : errno
  }

  private static func copy(
    _ input: Int32, beside target: String, in folder: String, _ isShared: Bool, _ isReplacing: Bool,
    _ flush: (Int32) -> Int32
  ) -> Int32? {
    var name = Array("\(folder)/.Alamofire_XXXXXX".utf8CString)
    let output = mkstemp(&name)
    guard output >= 0 else { return errno }
    _ = fcntl(output, F_SETFD, FD_CLOEXEC)
    if isShared { FileMode.apply(to: output) }
    var failure = copy(input, to: output, flush)
    if close(output) != 0, failure == nil { failure = errno }
    if failure == nil, case let code = rename(name, to: target, isReplacing: isReplacing), code != 0 {
      failure = code
    }
    if failure != nil { unlink(name) }
    return failure
  }

  private static func copy(_ input: Int32, to output: Int32, _ flush: (Int32) -> Int32) -> Int32? {
    while true {
      let count = sendfile(output, input, nil, 1 << 26)
      if count == 0 { break }
      if count < 0, errno != EINTR { return errno }
    }
    let code = flush(output)
    return code == 0 ? nil : code
  }

  /// Flushes a folder: a new name is on the disk when its folder is. Returns the number of the error, if there is one.
  static func flushName(in folder: String, _ flush: (Int32) -> Int32) -> Int32? {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    // A folder that may only be written to cannot be opened.
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    let code = flush(descriptor)
    return code == 0 || code == EINVAL ? nil : code
  }
}

/// Locks of files (`flock`), which belong to an open file and all copies of its descriptor.
package enum FileLock {
  /// Closes a descriptor. Returns the number of the error, or 0. Linux closes it also if a signal interrupts that.
  package static func closeFile(_ descriptor: Int32) -> Int32 {
    Glibc.close(descriptor) == 0 || errno == EINTR ? 0 : errno
  }

  /// Closes a file that may be locked. Returns the number of the error, or 0.
  ///
  /// The lock is released before, because a process that is being started has a copy of the descriptor until its
  /// program begins.
  ///
  /// - Parameter close: Closes a descriptor. Returns the number of the error, or 0.
  @discardableResult static func close(
    _ descriptor: Int32, by close: (Int32) -> Int32 = FileLock.closeFile
  ) -> Int32 {
    flock(descriptor, LOCK_UN)
    return close(descriptor)
  }
}

/// The permissions of files.
enum FileMode {
  /// The mode that the umask of the process gives to a new file; `nil` if the kernel does not report the umask.
  ///
  /// It is read from `/proc`, because `umask()` changes the value for all threads while it reads it.
  static var ofNewFiles: mode_t? {
    let descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return nil }
    let lines = buffer[..<count].split(separator: UInt8(ascii: "\n"))
    guard let line = lines.first(where: { $0.starts(with: "Umask:".utf8) }),
      let umask = mode_t(String(decoding: line.dropFirst(6).filter { $0 > 0x20 }, as: UTF8.self), radix: 8)
    else { return nil }
    return 0o666 & ~umask
  }

  /// Returns the permissions of a regular file; `nil` if there is none. The bits that let others act as its owner or
  /// its group are left out, because they are for the content of this file alone.
  static func ofFile(at path: String) -> mode_t? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return status.st_mode & 0o777
  }

  /// Gives an open file the mode of a new file. A file system without modes is not an error.
  static func apply(to descriptor: Int32) {
    if let mode = ofNewFiles { fchmod(descriptor, mode) }
  }
}

extension stat {
  /// Whether a file is a regular file of this user, and has no second name.
  var isOwnFile: Bool { st_mode & S_IFMT == S_IFREG && st_uid == geteuid() && st_nlink == 1 }
}
