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
  static func kind(of code: Int32) -> TransportFailure.Kind {
    switch code {
    case ENOENT, ENOTDIR: .fileDoesNotExist
    case EISDIR: .fileIsDirectory
    case EACCES, EPERM: .noPermissionToReadFile
    default: .cannotReadBody
    }
  }
}
