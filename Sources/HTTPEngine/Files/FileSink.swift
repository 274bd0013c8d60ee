import Glibc
package import HTTPWire
import Synchronization

/// A file into which the body of a response is written as it comes.
package final class FileSink: BodySink {
  /// What decides whether a response goes on where an earlier one was broken off.
  package typealias Continuation = @Sendable (ResponseHead) -> Result<Int64, TransportFailure>

  private struct State {
    var descriptor: Int32 = -1
    var size: Int64 = 0
  }

  package let path: String
  /// Where the bytes of a response begin; always at 0 without a download to go on with.
  private let offset: Continuation?
  private let state = Mutex(State())

  package init(path: String, continuing offset: Continuation? = nil) {
    self.path = path
    self.offset = offset
  }

  deinit { _ = finish() }

  /// How many bytes the file holds, those of an earlier transfer included.
  package var size: Int64 { state.withLock { $0.size } }

  package func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    let start: Int64
    switch offset?(head) ?? .success(0) {
    case .success(let place): start = place
    case .failure(let failure): return failure
    }
    return state.withLock { state in
      if state.descriptor < 0 { state.descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600) }
      guard state.descriptor >= 0, ftruncate(state.descriptor, off_t(start)) == 0,
        lseek(state.descriptor, off_t(start), SEEK_SET) == off_t(start)
      else { return failure(errno) }
      state.size = start
      return nil
    }
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    state.withLock { state in
      var rest = bytes
      while !rest.isEmpty {
        let count = write(state.descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return .failure(failure(count < 0 ? errno : EIO)) }
        state.size += Int64(count)
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return .taken
    }
  }

  package func finish() -> TransportFailure? {
    state.withLock { state in
      guard state.descriptor >= 0 else { return nil }
      defer { state.descriptor = -1 }
      // Some file systems tell only now that there was no room.
      return close(state.descriptor) == 0 || errno == EINTR ? nil : failure(errno)
    }
  }

  private func failure(_ code: Int32) -> TransportFailure {
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
