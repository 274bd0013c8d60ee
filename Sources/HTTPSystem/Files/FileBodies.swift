import Glibc
package import HTTPWire
import Synchronization

/// A file as a request body, which is read while it is sent.
package final class FileSource: BodySource {
  private struct State {
    var descriptor: Int32 = -1
    var position: Int64 = 0
  }

  package let length: Int64
  package var isRepeatable: Bool { true }
  package var isStored: Bool { true }
  private let path: String
  /// The position of the first byte in the file.
  private let start: Int64
  /// The bytes of a generated file; `nil` for any other.
  private let content: [UInt8]?
  /// The file whose size was measured, and that size.
  private let measured: (device: dev_t, inode: ino_t, size: Int64)
  /// The descriptor and the offset, for the loop and the thread that created the source.
  private let state = TrackedMutex(State())

  /// Opens the file. Fails unless it is a regular file, because reading from other files may block forever. A
  /// ``GeneratedFile`` is read to its end now, so that its length is known.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - range: The bytes that are sent. Fails if the file ends before. Default: the whole file.
  package init(path: String, range: Range<Int64>? = nil) throws(TransportFailure) {
    var status = stat()
    guard stat(path, &status) == 0 else { throw Self.failure("cannot be read", path, errno) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: throw TransportFailure(.fileIsDirectory, "\(path) is a folder and cannot be uploaded.")
    default:
      throw TransportFailure(
        .cannotReadBody, "\(path) is no regular file; upload it as an InputStream instead.")
    }
    guard access(path, R_OK) == 0 else { throw Self.failure("cannot be read", path, errno) }
    content = try GeneratedFile.content(of: path)
    let size = content.map { Int64($0.count) } ?? Int64(status.st_size)
    let range = range ?? 0..<size
    guard range.lowerBound >= 0, range.upperBound <= size else {
      throw TransportFailure(.cannotReadBody, "\(path) has \(size) bytes and ends before the bytes to send.")
    }
    self.path = path
    measured = (status.st_dev, status.st_ino, size)
    start = range.lowerBound
    length = Int64(range.count)
  }

  deinit { stop() }

  package func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    state.withLock { state in
      state.position = 0
      if content != nil { return nil }
      if state.descriptor < 0 {
        state.descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if isReplaced(state.descriptor) {
          close(state.descriptor)
          state.descriptor = -1
          return TransportFailure(
            .cannotReadBody, "\(path) was replaced by another file after it was measured; upload it again.")
        }
      }
      guard state.descriptor >= 0, lseek(state.descriptor, Int(start), SEEK_SET) == Int(start) else {
        return Self.failure("cannot be read", path, errno)
      }
      posix_fadvise(state.descriptor, Int(start), Int(length), POSIX_FADV_SEQUENTIAL)
      return nil
    }
  }

  /// Whether an open file is another one than was measured, of another size. Its first bytes alone would be no file.
  private func isReplaced(_ descriptor: Int32) -> Bool {
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0 else { return false }
    guard status.st_mode & S_IFMT == S_IFREG else { return true }
    let isSame = status.st_dev == measured.device && status.st_ino == measured.inode
    return !isSame && Int64(status.st_size) != measured.size
  }

  package func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    state.withLock { state in
      // Bytes that were appended since the file was measured are not sent.
      let wanted = min(room.count, Int(clamping: length - state.position))
      guard wanted > 0 else { return .end }
      if let content {
        let first = Int(start + state.position)
        room.copyBytes(from: content[first..<(first + wanted)])
        state.position += Int64(wanted)
        return .bytes(wanted)
      }
      while true {
        let count = Glibc.read(state.descriptor, room.baseAddress, wanted)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { return .failure(Self.failure("cannot be read any further", path, errno)) }
        guard count > 0 else { return .end }
        state.position += Int64(count)
        return .bytes(count)
      }
    }
  }

  /// Sends the next bytes without reading them into memory. Later reads continue after them.
  ///
  /// - Parameters:
  ///   - most: The largest number of bytes.
  ///   - send: Sends at most `count` bytes from the offset of an open file, moves the offset, and returns their number.
  /// - Returns: The number of bytes; `nil` if none are left, or the file is not open or was generated. These bytes have
  ///   to be read.
  package func send(_ most: Int, by send: (_ descriptor: Int32, _ count: Int) -> Int) -> Int? {
    state.withLock { state in
      let wanted = min(most, Int(clamping: length - state.position))
      guard wanted > 0, content == nil, state.descriptor >= 0 else { return nil }
      let count = send(state.descriptor, wanted)
      state.position += Int64(count)
      return count
    }
  }

  package func stop() {
    state.withLock { state in
      if state.descriptor >= 0 { close(state.descriptor) }
      state.descriptor = -1
    }
  }

  private static func failure(_ what: String, _ path: String, _ code: Int32) -> TransportFailure {
    TransportFailure(
      BoundedFile.kind(of: code), "\(path) \(what): \(String(cString: strerror(code))).")
  }
}

/// A file into which the body of a response is written as it arrives.
package final class FileSink: BodySink {
  /// The destination of a response body.
  package enum WritePosition: Sendable {
    /// A new file.
    case new
    /// The file of an earlier transfer, after this number of its bytes. Later bytes are removed. The response has to
    /// end where the file does, if that is known.
    case part(path: String, offset: Int64, end: Int64? = nil)
    /// A new file of this number of bytes, which the response has announced.
    case range(count: Int64)
    /// A new file of another name, because the response does not replace the file.
    case aside(path: String)
  }

  /// The function that decides whether a response continues an earlier one.
  package typealias Continuation = @Sendable (ResponseHead) -> Result<WritePosition, TransportFailure>

  /// The lock of the file against other transfers.
  private enum LockState {
    case unlocked
    /// The open file is locked.
    case locked
    /// The file was closed, and this copy of its descriptor holds the lock.
    case retained(Int32)
  }

  private struct State {
    var path: String
    /// Closes a descriptor. Returns the number of the error, or 0.
    let closeFile: @Sendable (Int32) -> Int32
    var descriptor: Int32 = -1
    var lock = LockState.unlocked
    var size: Int64 = 0
    /// The number of bytes of an earlier transfer in the file.
    var start: Int64 = 0
    /// The size of the complete file; `nil` if it is not known.
    var end: Int64?
    /// The number of bytes that are on the disk, or being written to it, because others rely on them.
    var kept: Int64 = 0
    /// Whether bytes were lost: a flush, or the closing of the file, has failed. The kernel reports that once, and
    /// later flushes succeed.
    private(set) var hasLostBytes = false
    /// Whether the file is another one, which does not replace the earlier one.
    var isAside = false

    /// Truncates the file to the bytes that others rely on, because the disk is full.
    mutating func truncateToKeptPart() {
      let length = min(size, max(start, kept))
      guard ftruncate(descriptor, off_t(length)) == 0 else { return }
      size = length
      _ = lseek(descriptor, off_t(length), SEEK_SET)
    }

    /// Notes that bytes were lost. No byte of the file counts any more, also for resume data.
    mutating func noteLostBytes() { (hasLostBytes, size) = (true, 0) }

    /// Notes that the file has no lost bytes, because another one or the first byte of a response begins.
    mutating func forgetLostBytes() { hasLostBytes = false }

    /// Closes the file, and retains its lock. Returns the number of the error, or 0. Some file systems report only now
    /// that bytes were lost.
    mutating func close() -> Int32 {
      let file = descriptor
      descriptor = -1
      var code: Int32 = 0
      if case .locked = lock {
        let copy = fcntl(file, F_DUPFD_CLOEXEC, 0)
        // Without a copy the file stays open until it is unlocked.
        lock = .retained(copy < 0 ? file : copy)
        if copy >= 0 { code = closeFile(file) }
      } else {
        code = FileLock.close(file, by: closeFile)
      }
      if code != 0 { noteLostBytes() }
      return code
    }

    /// Releases a lock that was retained.
    mutating func unlock() {
      guard case .retained(let copy) = lock else { return }
      if FileLock.close(copy, by: closeFile) != 0 { noteLostBytes() }
      lock = .unlocked
    }
  }

  /// The path of a new file.
  private let newPath: String
  /// The function that decides about a continuation; `nil` for a new file.
  private let position: Continuation?
  /// The descriptor and the offset, for the loop and the thread that created the sink.
  private let state: TrackedMutex<State>

  /// Makes the sink of a file, which is opened when a response begins.
  ///
  /// - Parameters:
  ///   - position: Decides whether a response continues an earlier one. Default: each one begins a new file.
  ///   - close:    Closes a descriptor. Returns the number of the error, or 0.
  package init(
    path: String, continuing position: Continuation? = nil,
    close: @escaping @Sendable (Int32) -> Int32 = FileLock.closeFile
  ) {
    newPath = path
    self.position = position
    state = TrackedMutex(State(path: path, closeFile: close))
  }

  deinit { unlock() }

  /// The file that is written.
  package var path: String { state.withLock { $0.path } }

  /// The number of bytes in the file, including the bytes of an earlier transfer.
  package var size: Int64 { state.withLock { $0.size } }

  /// Whether bytes of the file were lost, so that none of them count.
  package var hasLostBytes: Bool { state.withLock { $0.hasLostBytes } }

  /// Whether the response is written to another file, which does not replace the earlier one.
  package var isAside: Bool { state.withLock { $0.isAside } }

  package func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    switch position?(head) ?? .success(.new) {
    case .success(.new): begin(newPath, at: 0, end: nil, isPart: false)
    case .success(.range(let count)): begin(newPath, at: 0, end: count, isPart: false)
    case .success(.aside(let path)): begin(path, at: 0, end: nil, isPart: false)
    // A file that is shorter would be filled with zeros.
    case .success(.part(let path, let offset, let end)):
      begin(path, at: offset, end: end, isPart: path != newPath || offset > 0)
    case .failure(let failure): failure
    }
  }

  private func begin(_ path: String, at start: Int64, end: Int64?, isPart: Bool) -> TransportFailure? {
    state.withLock { state in
      let isOther = state.path != path
      if state.descriptor >= 0, isOther { _ = state.close() }
      state.unlock()
      if isOther { state.forgetLostBytes() }
      state.path = path
      state.isAside = path != newPath && !isPart
      if state.descriptor < 0 { state.descriptor = isPart ? Self.openPart(path) : Self.create(path) }
      guard state.descriptor >= 0 else { return isPart ? Self.lostPart : failure(errno, path) }
      if isPart {
        guard Self.holds(state.descriptor, start, at: path) else { return Self.lostPart }
        state.lock = .locked
      }
      if let code = Self.cut(state.descriptor, to: start) { return failure(code, path) }
      state.size = start
      state.start = start
      state.kept = start
      state.end = end
      if start == 0 { state.forgetLostBytes() }
      return nil
    }
  }

  /// Opens the file of an earlier transfer. Returns −1, with `errno`, if it does not exist, or is not a regular file of
  /// this user. A file with a second name is refused, because bytes written to it would change another file.
  private static func openPart(_ path: String) -> Int32 {
    let descriptor = openRegular(path, 0)
    guard descriptor >= 0 else { return -1 }
    var status = stat()
    if fstat(descriptor, &status) == 0, status.isOwnFile { return descriptor }
    close(descriptor)
    errno = EEXIST
    return -1
  }

  /// Returns the size of the file of an earlier transfer; `nil` if there is no file that can be continued.
  package static func sizeOfPart(_ path: String) -> Int64? {
    var status = stat()
    return lstat(path, &status) == 0 && status.isOwnFile ? Int64(status.st_size) : nil
  }

  /// Opens or creates the file of a transfer. Removes a pipe or a link of this name.
  private static func create(_ path: String) -> Int32 {
    let descriptor = openRegular(path, O_CREAT)
    var status = stat()
    guard descriptor < 0, [ELOOP, ENXIO, EEXIST].contains(errno), lstat(path, &status) == 0,
      [S_IFIFO, S_IFLNK, S_IFSOCK].contains(status.st_mode & S_IFMT)
    else { return descriptor }
    unlink(path)
    return openRegular(path, O_CREAT | O_EXCL)
  }

  /// Opens a regular file for writing. A pipe does not block, and a link is not followed.
  private static func openRegular(_ path: String, _ flags: Int32) -> Int32 {
    let descriptor = open(path, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { return -1 }
    var status = stat()
    if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG { return descriptor }
    close(descriptor)
    errno = EEXIST
    return -1
  }

  /// Whether a partial file has the noted number of bytes, and no other process appends to it. The lock ends with the
  /// descriptor, even if the process is killed. Another download may have completed the file, and moved or removed it,
  /// between its opening and its locking.
  private static func holds(_ descriptor: Int32, _ count: Int64, at path: String) -> Bool {
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else { return false }
    var (own, named) = (stat(), stat())
    return fstat(descriptor, &own) == 0 && lstat(path, &named) == 0 && own.st_ino == named.st_ino
      && own.st_dev == named.st_dev && Int64(own.st_size) >= count
  }

  /// Removes the file of an earlier transfer, unless another transfer continues it.
  package static func removePart(_ path: String) {
    let descriptor = openPart(path)
    guard descriptor >= 0 else { return }
    defer { FileLock.close(descriptor) }
    if holds(descriptor, 0, at: path) { unlink(path) }
  }

  /// Moves the file of an earlier transfer, with its first `count` bytes, which are on the disk afterwards. Returns
  /// false and changes nothing if it is shorter, another transfer continues it, or it cannot be moved.
  package static func movePart(_ path: String, to target: String, count: Int64) -> Bool {
    let descriptor = openPart(path)
    guard descriptor >= 0 else { return false }
    defer { FileLock.close(descriptor) }
    guard holds(descriptor, count, at: path), cut(descriptor, to: count) == nil, fdatasync(descriptor) == 0
    else { return false }
    return FileMove.move(path, to: target) == .moved
  }

  /// Truncates the file. Returns the failure, if there is one. A file of the right length is not truncated, because
  /// ext4 waits for the disk when a truncated file is closed.
  private static func cut(_ descriptor: Int32, to length: Int64) -> Int32? {
    var status = stat()
    let isRight = fstat(descriptor, &status) == 0 && Int64(status.st_size) == length
    guard isRight || ftruncate(descriptor, off_t(length)) == 0,
      lseek(descriptor, off_t(length), SEEK_SET) == off_t(length)
    else { return errno }
    return nil
  }

  /// Locks the file against other transfers, and waits until its bytes are on the disk. Returns their number; `nil` if
  /// the file is not open, in use, or cannot be flushed.
  package func flush() -> Int64? {
    let (copy, size, close) = state.withLock { state in
      guard state.descriptor >= 0, !state.hasLostBytes, flock(state.descriptor, LOCK_EX | LOCK_NB) == 0
      else { return (Int32(-1), Int64(0), state.closeFile) }
      state.lock = .locked
      // Before they are flushed, because the disk may become full in between.
      state.kept = state.size
      return (fcntl(state.descriptor, F_DUPFD_CLOEXEC, 0), state.size, state.closeFile)
    }
    guard copy >= 0 else { return nil }
    let isFlushed = fdatasync(copy) == 0
    // Some file systems now write the bytes that have followed. Only this call then reports that they were lost.
    if close(copy) == 0, isFlushed { return size }
    state.withLock { $0.noteLostBytes() }
    return nil
  }

  private static var lostPart: TransportFailure {
    TransportFailure(
      .cannotContinue,
      "The part of the file that was there is gone, or in use by another download; begin again.")
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception { receive(bytes, keeping: 0) }

  /// Writes bytes to the file.
  ///
  /// - Parameter kept: The number of bytes that stay if the disk is full, because a journal relies on them.
  package func receive(_ bytes: UnsafeRawBufferPointer, keeping kept: Int64) -> BodyReception {
    state.withLock { state in
      state.kept = max(state.kept, kept)
      if state.hasLostBytes { return .failure(failure(EIO, state.path)) }
      // Bytes that follow the range belong to another part of the file, or to none.
      if let end = state.end, Int64(bytes.count) > end - state.size { return .failure(Self.excess) }
      var rest = bytes
      while !rest.isEmpty {
        let count = write(state.descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          let code = count < 0 ? errno : EIO
          if [ENOSPC, EDQUOT, EFBIG].contains(code) { state.truncateToKeptPart() }
          return .failure(failure(code, state.path))
        }
        state.size += Int64(count)
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return .more
    }
  }

  /// Closes the file. A lock stays until ``unlock()`` is called: resume data may name the complete file, and another
  /// transfer would truncate it.
  package func finish() -> TransportFailure? {
    state.withLock { state in
      guard state.descriptor >= 0 else { return nil }
      let code = state.close()
      guard code == 0 else { return failure(code, state.path) }
      if state.hasLostBytes { return failure(EIO, state.path) }
      return state.end.map { $0 <= state.size } ?? true ? nil : Self.missingBytes
    }
  }

  /// Closes the file if it is open, and lets another transfer continue it.
  package func unlock() {
    _ = finish()
    state.withLock { $0.unlock() }
  }

  private static var excess: TransportFailure {
    TransportFailure(
      .badServerResponse,
      "The server sent more bytes than the range that it announced (Content-Range); begin again.")
  }

  private static var missingBytes: TransportFailure {
    TransportFailure(
      .connectionLost,
      "The server sent fewer bytes than the range that it announced (Content-Range); resume the download.")
  }

  private func failure(_ code: Int32, _ path: String) -> TransportFailure {
    let reason = String(cString: strerror(code))
    switch code {
    case ENOENT, ENOTDIR, EACCES, EPERM, EROFS, EISDIR:
      return TransportFailure(.cannotCreateFile, "The download cannot be stored at \(path): \(reason).")
    case ENOSPC, EDQUOT, EFBIG:
      return TransportFailure(
        .cannotWriteFile, "There is no room left for the download at \(path): \(reason).")
    default:
      return TransportFailure(.cannotWriteFile, "The download cannot be written to \(path): \(reason).")
    }
  }
}
