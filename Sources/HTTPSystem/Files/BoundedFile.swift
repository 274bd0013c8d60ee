import Glibc
package import HTTPWire

/// Files that are read whole: certificates, credentials, and what the kernel generates.
package enum BoundedFile {
  /// The largest number of bytes that are read. A device has no size, and perhaps no end.
  package static let sizeLimit = 16 << 20

  /// Reads a file to its end. A pipe ends when its writer closes it; one without a writer is an error, because waiting
  /// for a writer could take forever.
  ///
  /// - Parameter mustBeRegular: Whether pipes and devices are errors, too. Reading a regular file does not wait for
  ///   another process, so that it is allowed on the loop's thread.
  package static func content(
    of path: String, mustBeRegular: Bool = false
  ) throws(FileReadingFailure) -> [UInt8] {
    // Opening a pipe without a writer would block otherwise.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw failure(errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(errno) }
    let type = status.st_mode & S_IFMT
    guard type != S_IFDIR else { throw failure(EISDIR) }
    if type != S_IFREG {
      if mustBeRegular { throw FileReadingFailure(.cannotReadBody, "it is not a regular file") }
      // The writer of a pipe may not have written yet.
      _ = fcntl(descriptor, F_SETFL, O_RDONLY)
    }
    let bytes = try content(of: descriptor)
    if bytes.isEmpty, type == S_IFIFO {
      throw FileReadingFailure(.cannotReadBody, "it is a pipe, and no process writes to it")
    }
    return bytes
  }

  /// Reads the rest of an open file.
  static func content(of descriptor: Int32) throws(FileReadingFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while bytes.count <= sizeLimit {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(errno) }
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
    }
    throw FileReadingFailure(.dataLengthExceedsMaximum, "it has more than \(sizeLimit >> 20) MiB")
  }

  private static func failure(_ code: Int32) -> FileReadingFailure {
    FileReadingFailure(kind(of: code), String(cString: strerror(code)))
  }

  /// Returns the kind of the failure to read a file.
  static func kind(of code: Int32) -> TransportFailure.FailureKind {
    switch code {
    case ENOENT, ENOTDIR: .fileDoesNotExist
    case EISDIR: .fileIsDirectory
    case EACCES, EPERM: .noPermissionToReadFile
    default: .cannotReadBody
    }
  }
}

/// Regular files with a reported size that is not the number of their bytes, as in `/proc` (size 0) and `/sys` (size
/// 4096). The kernel generates their bytes when they are read.
package enum GeneratedFile {
  /// Whether a file is one. `false` also for a file that cannot be opened.
  package static func isGenerated(_ path: String) -> Bool {
    guard let descriptor = open(path) else { return false }
    defer { close(descriptor) }
    return isGenerated(descriptor)
  }

  /// Reads a generated file to its end. Returns `nil` for any other file, and for one that cannot be opened.
  package static func content(of path: String) throws(TransportFailure) -> [UInt8]? {
    guard let descriptor = open(path) else { return nil }
    defer { close(descriptor) }
    guard isGenerated(descriptor) else { return nil }
    do {
      return try BoundedFile.content(of: descriptor)
    } catch  where error.kind == .dataLengthExceedsMaximum {
      throw TransportFailure(
        .cannotReadBody, "\(path) has no size, and \(error.reason); upload it as an InputStream instead.")
    } catch {
      throw TransportFailure(.cannotReadBody, "\(path) cannot be read to its end: \(error.reason).")
    }
  }

  /// Opens a regular file without blocks on the disk. Other files have the size that they say, and are not read.
  private static func open(_ path: String) -> Int32? {
    // Some generated files wait for bytes.
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_blocks == 0 {
      return descriptor
    }
    close(descriptor)
    return nil
  }

  /// Whether the last byte of the size is missing, or bytes follow it. A sparse file has all bytes of its size.
  private static func isGenerated(_ descriptor: Int32) -> Bool {
    guard let size = size(of: descriptor) else { return false }
    if !hasByte(descriptor, at: size), size == 0 || hasByte(descriptor, at: size - 1) { return false }
    // The file may have grown, or become shorter, since its size was read.
    return self.size(of: descriptor) == size
  }

  private static func size(of descriptor: Int32) -> Int? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : nil
  }

  private static func hasByte(_ descriptor: Int32, at offset: Int) -> Bool {
    var byte: UInt8 = 0
    // A file that cannot be read at an offset is not one of a disk.
    return pread(descriptor, &byte, 1, off_t(offset)) != 0
  }
}
