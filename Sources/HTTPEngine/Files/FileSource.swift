import Glibc
package import HTTPWire
import Synchronization

/// A file as a request body. It is read while it is sent.
package final class FileSource: BodySource {
  private struct State {
    var descriptor: Int32 = -1
    var position: Int64 = 0
  }

  package let length: Int64
  package var isRepeatable: Bool { true }
  package var isStored: Bool { true }
  private let path: String
  private let state = Mutex(State())

  /// Opens the file. Fails unless it is a regular file, because reading from other files may block forever.
  package init(path: String) throws(TransportFailure) {
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
    self.path = path
    length = Int64(status.st_size)
  }

  deinit { stop() }

  package func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    state.withLock { state in
      state.position = 0
      if state.descriptor < 0 { state.descriptor = open(path, O_RDONLY | O_CLOEXEC) }
      guard state.descriptor >= 0, lseek(state.descriptor, 0, SEEK_SET) == 0 else {
        return Self.failure("cannot be read", path, errno)
      }
      posix_fadvise(state.descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
      return nil
    }
  }

  package func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    state.withLock { state in
      // Bytes that were appended since the file was measured are not sent.
      let wanted = min(room.count, Int(clamping: length - state.position))
      guard wanted > 0 else { return .end }
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

  package func stop() {
    state.withLock { state in
      if state.descriptor >= 0 { close(state.descriptor) }
      state.descriptor = -1
    }
  }

  private static func failure(_ what: String, _ path: String, _ code: Int32) -> TransportFailure {
    let kind: TransportFailure.Kind =
      switch code {
      case ENOENT, ENOTDIR: .fileDoesNotExist
      case EACCES, EPERM: .noPermissionToReadFile
      default: .cannotReadBody
      }
    return TransportFailure(kind, "\(path) \(what): \(String(cString: strerror(code))).")
  }
}
