package import FoundationEssentials
import Glibc

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
  /// Replaces a file by one with other bytes, which are on the disk before the name is. Returns the number of the
  /// error, if there is one; the file is then unchanged.
  func replace(_ name: String, by bytes: Data) -> Int32?
  /// Appends to the first bytes of a file, all bytes or none. Returns the number of the error, if there is one.
  ///
  /// - Parameter length: The number of bytes of the file that count. Others may follow, which a failed append has
  ///   left; they are removed.
  func append(_ bytes: Data, to name: String, at length: Int) -> Int32?
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
  /// A folder that cannot be created or locked; the text comes from the system.
  case unusable(String)
}

/// A folder of background transfers that only its owner can write to. Only the owner can read its files. The lock on
/// its file `lock` is held as long as this object lives; the kernel releases it with the process.
package final class TransferFolder: TransferFiles {
  package let location: String
  package let boot: String
  private let lock: Int32
  private let flush: @Sendable (Int32) -> Int32
  private let truncate: @Sendable (Int32, Int) -> Int32

  /// Makes the folder if it does not exist, and locks it.
  ///
  /// - Parameters:
  ///   - flush:    Flushes a file or a folder to the disk. Returns the number of the error, or 0.
  ///   - truncate: Shortens a file to a number of bytes. Returns the number of the error, or 0.
  package init(
    path: String, flush: @escaping @Sendable (Int32) -> Int32 = { fsync($0) == 0 ? 0 : errno },
    truncate: @escaping @Sendable (Int32, Int) -> Int32 = { ftruncate($0, off_t($1)) == 0 ? 0 : errno }
  ) throws(TransferFolderError) {
    location = path
    self.flush = flush
    self.truncate = truncate
    boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
    guard Self.make(path) else { throw .unusable(Self.text(errno)) }
    var status = stat()
    guard stat(path, &status) == 0 else { throw .unusable(Self.text(errno)) }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .unusable(Self.text(ENOTDIR)) }
    guard status.st_uid == geteuid(), status.st_mode & 0o022 == 0 else { throw .notOurs }
    lock = try Self.lock("\(path)/lock")
  }

  /// Opens and locks a file.
  private static func lock(_ path: String) throws(TransferFolderError) -> Int32 {
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw .unusable("\(path): \(text(errno))") }
    guard isRegular(descriptor) else {
      close(descriptor)
      throw .unusable("\(path) is not a regular file")
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(descriptor)
      throw code == EWOULDBLOCK ? .inUse : .unusable(text(code))
    }
    return descriptor
  }

  deinit { close(lock) }

  private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }

  private static func make(_ path: String) -> Bool {
    var part = path.hasPrefix("/") ? "" : "."
    for name in path.unicodeScalars.split(separator: "/") {
      part += "/\(Substring(name))"
      if mkdir(part, 0o700) != 0, errno != EEXIST, access(part, F_OK) != 0 { return false }
    }
    return true
  }

  package func unlock() { flock(lock, LOCK_UN) }

  package func names() -> [String]? {
    guard let folder = opendir(location) else { return nil }
    defer { closedir(folder) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
      errno = 0
    }
    return errno == 0 ? names : nil
  }

  package func read(_ name: String) -> Data? {
    guard let descriptor = open(name, O_RDONLY) else { return nil }
    defer { close(descriptor) }
    var bytes = Data()
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return nil }
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
    }
  }

  /// Opens a regular file of the folder. A pipe does not block, and a link is not followed. Returns `nil`, with
  /// `errno`, if there is something else.
  private func open(_ name: String, _ flags: Int32) -> Int32? {
    let descriptor = Glibc.open(path(of: name), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    if Self.isRegular(descriptor) { return descriptor }
    close(descriptor)
    errno = EEXIST
    return nil
  }

  private static func isRegular(_ descriptor: Int32) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  package func size(of name: String) -> Int64? { status(name).map { Int64($0.st_size) } }

  package func changed(_ name: String) -> Int64? { status(name).map { Int64($0.st_mtim.tv_sec) } }

  private func status(_ name: String) -> stat? {
    var status = stat()
    guard lstat(path(of: name), &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return status
  }

  package func make(_ name: String, _ bytes: Data) -> Int32? {
    let file = path(of: name)
    let descriptor = Glibc.open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { return errno }
    var failure = Self.write(bytes, to: descriptor)
    if failure == nil { failure = Self.error(flush(descriptor)) }
    if close(descriptor) != 0, failure == nil { failure = errno }
    failure = failure ?? FileMove.flushName(in: location, flush)
    if failure != nil { unlink(file) }
    return failure
  }

  private static func error(_ code: Int32) -> Int32? { code == 0 ? nil : code }

  package func replace(_ name: String, by bytes: Data) -> Int32? {
    let new = name + ".new"
    remove(new)
    if let code = make(new, bytes) { return code }
    guard rename(path(of: new), path(of: name)) == 0 else {
      defer { remove(new) }
      return errno
    }
    // Without it, a crash may leave the earlier file, to which nothing is appended any more.
    _ = FileMove.flushName(in: location, flush)
    return nil
  }

  package func append(_ bytes: Data, to name: String, at length: Int) -> Int32? {
    guard let descriptor = open(name, O_WRONLY | O_APPEND) else { return errno }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return errno }
    // The file has lost bytes, and what follows would not be found.
    guard Int(status.st_size) >= length else { return EIO }
    // A part of a line would make the later ones invalid.
    if status.st_size > length, let failure = Self.error(truncate(descriptor, length)) { return failure }
    guard let failure = Self.write(bytes, to: descriptor) else { return nil }
    _ = truncate(descriptor, length)
    return failure
  }

  private static func write(_ bytes: Data, to descriptor: Int32) -> Int32? {
    bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count < 0 ? errno : EIO }
        rest = rest.dropFirst(count)
      }
      return nil
    }
  }

  package func synchronize(_ name: String) -> Bool {
    guard let descriptor = open(name, O_RDONLY) else { return false }
    let isFlushed = fdatasync(descriptor) == 0
    // Bytes may have followed, and some file systems write them now. Only this call then reports that they were lost.
    return FileLock.closeFile(descriptor) == 0 && isFlushed
  }

  package func remove(_ name: String) { unlink(path(of: name)) }
}
