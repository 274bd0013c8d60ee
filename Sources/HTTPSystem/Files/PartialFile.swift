import CLinux
package import FoundationEssentials
import Glibc
package import HTTPWire
import Synchronization

/// A file that is written in ranges, in any order, with a record of these ranges beside it.
///
/// The file is locked (`flock`) as long as this object lives, so that other downloads cannot write to it. The kernel
/// releases the lock of a killed process. A range is added to the record after its bytes were written, so that the
/// record never lists a byte that the file lacks.
package final class PartialFile: Sendable {
  package enum OpeningFailure: Error {
    /// Another download has locked the file.
    case inUse
    case system(TransportFailure)
  }

  private struct Descriptors {
    /// −1 after the file was closed.
    var file: Int32
    /// The record, to which lines are appended; −1 if there is none.
    var record: Int32 = -1
    /// Whether bytes were lost, because a flush has failed. The kernel reports that once, and later flushes succeed.
    var hasLostBytes = false
  }

  private let path: String
  private let recordPath: String
  /// The descriptors of the file and of its record, for the queue of the download.
  private let descriptors: TrackedMutex<Descriptors>

  private let reserve: @Sendable (Int32, Int) -> Int32
  private let closeFile: @Sendable (Int32) -> Int32

  /// Opens or creates the file, and locks it.
  ///
  /// - Parameters:
  ///   - reserve: Gives a file a length, and all of its blocks. Returns the number of the error, or 0.
  ///   - close:   Closes a descriptor. Returns the number of the error, or 0.
  package init(
    path: String, recordPath: String,
    reserve: @escaping @Sendable (Int32, Int) -> Int32 = PartialFile.allocate,
    close: @escaping @Sendable (Int32) -> Int32 = FileLock.closeFile
  ) throws(OpeningFailure) {
    self.path = path
    self.recordPath = recordPath
    self.reserve = reserve
    closeFile = close
    descriptors = TrackedMutex(Descriptors(file: try Self.open(path)))
  }

  deinit { close() }

  private static func open(_ path: String) throws(OpeningFailure) -> Int32 {
    while true {
      let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { throw .system(failure(.cannotCreateFile, "created", path, errno)) }
      if flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
        Glibc.close(descriptor)
        throw .inUse
      }
      var own = stat()
      var named = stat()
      if fstat(descriptor, &own) == 0, stat(path, &named) == 0, own.st_ino == named.st_ino,
        own.st_dev == named.st_dev
      {
        if own.isOwnFile { return descriptor }
        FileLock.close(descriptor)
        throw .system(failure(.cannotCreateFile, "created", path, EEXIST))
      }
      // Another download completed the file and moved it before it was locked here.
      Glibc.close(descriptor)
    }
  }

  /// The identifier of the running system; empty if it is unknown.
  package static let boot: String =
    read("/proc/sys/kernel/random/boot_id").map {
      String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    } ?? ""

  // MARK: The file

  /// The size of the file in bytes.
  package var size: Int {
    var status = stat()
    return fstat(descriptors.withLock { $0.file }, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Discards all bytes and the record. With a length the file gets all of its blocks, so that a full disk is an
  /// error now.
  package func prepare(length: Int?) -> TransportFailure? {
    descriptors.withLock { descriptors -> TransportFailure? in
      Self.closeRecord(&descriptors)
      unlink(recordPath)
      descriptors.hasLostBytes = false
      let room = Self.room(for: descriptors.file)
      guard ftruncate(descriptors.file, 0) == 0 else {
        return Self.failure(.cannotWriteFile, "written", path, errno)
      }
      guard let length, length > 0 else { return nil }
      // A server may name any length, and the volume would be full for other programs until the failure.
      guard room.map({ length <= $0 }) ?? true else {
        return Self.failure(.cannotWriteFile, "reserved with \(length) bytes", path, ENOSPC)
      }
      var code = reserve(descriptors.file, length)
      // Some file systems cannot reserve blocks.
      if [EOPNOTSUPP, ENOSYS, EINVAL].contains(code) {
        code = ftruncate(descriptors.file, off_t(length)) == 0 ? 0 : errno
      }
      guard code != 0 else { return nil }
      _ = ftruncate(descriptors.file, 0)
      return Self.failure(.cannotWriteFile, "reserved with \(length) bytes", path, code)
    }
  }

  /// Reserves the blocks of a file. Returns the number of the error, or 0. This is not `posix_fallocate`, which writes
  /// to each block if the file system cannot reserve any.
  package static func allocate(_ descriptor: Int32, _ length: Int) -> Int32 {
    while linux_allocate(descriptor, length) != 0 {
      if errno != EINTR { return errno }
    }
    return 0
  }

  /// Returns the number of bytes that a file can have: those it has and the free ones. `nil` if it is not known.
  private static func room(for descriptor: Int32) -> Int? {
    var (volume, status) = (statvfs(), stat())
    guard fstatvfs(descriptor, &volume) == 0, volume.f_blocks > 0, fstat(descriptor, &status) == 0 else {
      return nil
    }
    let free = UInt64(volume.f_bavail).multipliedReportingOverflow(by: UInt64(volume.f_frsize))
    let own = UInt64(clamping: status.st_blocks).multipliedReportingOverflow(by: 512)
    let sum = free.partialValue.addingReportingOverflow(own.partialValue)
    return free.overflow || own.overflow || sum.overflow ? nil : Int(clamping: sum.partialValue)
  }

  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> TransportFailure? {
    let descriptor = descriptors.withLock { $0.file }
    var done = 0
    while done < bytes.count, let start = bytes.baseAddress {
      let count = pwrite(descriptor, start + done, bytes.count - done, off_t(offset + done))
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return Self.failure(.cannotWriteFile, "written", path, count < 0 ? errno : EIO) }
      done += count
    }
    return nil
  }

  /// Waits until the bytes are on the disk. If that fails, the record is removed, because the bytes in it may be lost.
  /// Returns false if the file was closed.
  package func flush() -> Bool {
    // Copies, because the file may be closed at any time. The second one stays open when the first is closed.
    let (copy, other) = descriptors.withLock { descriptors -> (Int32, Int32) in
      guard descriptors.file >= 0 else { return (-1, -1) }
      return (fcntl(descriptors.file, F_DUPFD_CLOEXEC, 0), fcntl(descriptors.file, F_DUPFD_CLOEXEC, 0))
    }
    defer { if other >= 0 { Glibc.close(other) } }
    var isCopyFlushed = copy >= 0 && fdatasync(copy) == 0
    // Some file systems now write the bytes that have followed. Only this call then reports that they were lost.
    if copy >= 0, closeFile(copy) != 0 { isCopyFlushed = false }
    return descriptors.withLock { descriptors in
      guard descriptors.file >= 0 else {
        if copy >= 0, !isCopyFlushed { removeRecord(ofClosed: other) }
        return false
      }
      // Without a copy, the file stays open as long as the lock is held.
      let isFlushed = isCopyFlushed || (copy < 0 && fdatasync(descriptors.file) == 0)
      guard isFlushed, !descriptors.hasLostBytes else {
        descriptors.hasLostBytes = true
        Self.closeRecord(&descriptors)
        unlink(recordPath)
        return false
      }
      return true
    }
  }

  /// Adds all bytes of the file to a hash. Returns false if they cannot be read.
  package func read(into hash: any RunningHash) -> Bool {
    let descriptor = descriptors.withLock { $0.file }
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 4096)
    defer { buffer.deallocate() }
    var offset = 0
    while true {
      let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return false }
      guard count > 0 else { return true }
      hash.add(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += count
    }
  }

  /// Moves the complete file to its destination, with the mode that the umask gives, and removes the record. Returns
  /// the number of the error if it has not been moved.
  ///
  /// - Parameters:
  ///   - replacing: Whether a file at the destination is replaced.
  ///   - keepsMode: Whether the new file has the permissions of the one that it replaces, if there is one.
  ///   - rename: Renames a file. Returns the number of the error, or 0.
  package func move(
    to target: String, replacing: Bool, keepsMode: Bool = false,
    rename: (String, String) -> Int32 = { Glibc.rename($0, $1) == 0 ? 0 : errno }
  ) -> Int32? {
    if replacing {
      let file = descriptors.withLock { $0.file }
      let mode = keepsMode ? FileMode.ofFile(at: target) : nil
      // Before the file has the name, because the earlier one may be private.
      if let mode { fchmod(file, mode) }
      let code = rename(path, target)
      guard code == 0 else {
        if mode != nil { fchmod(file, 0o600) }
        return code
      }
      if mode == nil { FileMode.apply(to: file) }
    } else if case .failed(let code) = FileMove.move(path, to: target, isShared: true) {
      return code
    }
    removeRecord()
    close(hasName: false)
    return nil
  }

  /// Removes the file and its record. Does nothing if the file was closed, because another download may have a file of
  /// this name by then.
  package func remove() {
    guard descriptors.withLock({ $0.file >= 0 }) else { return }
    removeRecord()
    unlink(path)
    close(hasName: false)
  }

  /// Closes the file, which releases its lock. If some of its bytes are lost, which some file systems report only now,
  /// the record is removed.
  package func close() { close(hasName: true) }

  /// Closes the file.
  ///
  /// - Parameter hasName: Whether the file still has its name. Otherwise the record may belong to another download.
  private func close(hasName: Bool) {
    descriptors.withLock { descriptors in
      Self.closeRecord(&descriptors)
      guard descriptors.file >= 0 else { return }
      // It holds the lock until the record is removed.
      let copy = fcntl(descriptors.file, F_DUPFD_CLOEXEC, 0)
      let code =
        copy < 0 ? FileLock.close(descriptors.file, by: closeFile) : closeFile(descriptors.file)
      descriptors.file = -1
      if code != 0, hasName { unlink(recordPath) }
      if copy >= 0 { FileLock.close(copy) }
    }
  }

  // MARK: The record

  /// The number of bytes by which the longest name of a file of the record is longer than the name of the record.
  package static let recordSuffixLength = 4
  private var newRecordPath: String { recordPath + ".new" }

  /// Removes the record, and one that a killed process has not completed.
  private func removeRecord() {
    unlink(recordPath)
    unlink(newRecordPath)
  }

  /// Removes the record of a file that was closed, and whose bytes are lost. Does nothing if the file was moved or
  /// removed, or if another download has locked it.
  private func removeRecord(ofClosed descriptor: Int32) {
    guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else { return }
    defer { flock(descriptor, LOCK_UN) }
    var (own, named) = (stat(), stat())
    guard fstat(descriptor, &own) == 0, lstat(path, &named) == 0, own.st_ino == named.st_ino,
      own.st_dev == named.st_dev
    else { return }
    unlink(recordPath)
  }

  /// Returns the content of the record; `nil` if there is none, or if it is not a file of this user alone.
  package func record() -> Data? { Self.read(recordPath) { $0.isOwnFile } }

  /// Replaces the record by one that is on the disk when its name is.
  package func replaceRecord(by lines: Data) -> Bool {
    guard !descriptors.withLock({ $0.hasLostBytes }) else { return false }
    let new = newRecordPath
    // One that a killed process left, or something else.
    unlink(new)
    let descriptor = Glibc.open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_APPEND, 0o600)
    guard descriptor >= 0 else { return false }
    guard Self.append(lines, to: descriptor), fsync(descriptor) == 0, rename(new, recordPath) == 0 else {
      Glibc.close(descriptor)
      unlink(new)
      return false
    }
    descriptors.withLock { descriptors in
      Self.closeRecord(&descriptors)
      descriptors.record = descriptor
    }
    return true
  }

  /// Appends a line to the record, if there is one.
  package func append(_ line: Data) {
    descriptors.withLock { descriptors in
      guard descriptors.record >= 0 else { return }
      // A line that is missing, or damaged, only means that its bytes are transferred again.
      if !Self.append(line, to: descriptors.record) { Self.closeRecord(&descriptors) }
    }
  }

  private static func closeRecord(_ descriptors: inout Descriptors) {
    if descriptors.record >= 0 { Glibc.close(descriptors.record) }
    descriptors.record = -1
  }

  private static func append(_ lines: Data, to descriptor: Int32) -> Bool {
    lines.withUnsafeBytes { bytes in
      var done = 0
      while done < bytes.count, let start = bytes.baseAddress {
        let count = Glibc.write(descriptor, start + done, bytes.count - done)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        done += count
      }
      return true
    }
  }

  private static func read(_ path: String, if isReadable: (stat) -> Bool = { _ in true }) -> Data? {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { Glibc.close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, isReadable(status) else { return nil }
    var bytes = Data()
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while bytes.count < 1 << 28 {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return nil }
      guard count > 0 else { return bytes }
      bytes += buffer.prefix(count)
    }
    return nil
  }

  private static func failure(
    _ kind: TransportFailure.FailureKind, _ action: String, _ path: String, _ code: Int32
  ) -> TransportFailure {
    let reason = String(cString: strerror(code))
    return TransportFailure(kind, "The file \(path) of the download cannot be \(action): \(reason).")
  }
}
