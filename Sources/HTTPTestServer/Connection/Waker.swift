import Glibc

/// A descriptor that becomes readable with ``wake()``, and stays so until ``reset()``.
///
/// It is a pipe; the C library's module does not export `eventfd`.
final class Waker: Sendable {
  /// The end to wait for.
  let descriptor: Int32
  private let writingEnd: Int32

  init() throws(ServerError) {
    var ends: (Int32, Int32) = (-1, -1)
    let status = withUnsafeMutableBytes(of: &ends) {
      pipe($0.assumingMemoryBound(to: Int32.self).baseAddress)
    }
    (descriptor, writingEnd) = ends
    if status != 0 { throw .system(call: "pipe", code: errno) }
    DescriptorFlags.set(on: descriptor)
    DescriptorFlags.set(on: writingEnd)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if writingEnd >= 0 { close(writingEnd) }
  }

  /// Makes the descriptor readable; from any thread, any number of times.
  func wake() {
    var byte: UInt8 = 1
    // It can only fail when the pipe is full, and then it is readable already.
    _ = write(writingEnd, &byte, 1)
  }

  /// Makes the descriptor unreadable again.
  func reset() {
    var bytes: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    while read(descriptor, &bytes, MemoryLayout.size(ofValue: bytes)) > 0 {}
  }
}

/// The flags that every descriptor of the server has.
enum DescriptorFlags {
  /// Sets a descriptor to never block, and keeps programs that a test starts from inheriting it.
  static func set(on descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }
}
