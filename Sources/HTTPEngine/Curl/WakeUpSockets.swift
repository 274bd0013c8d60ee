import CCurl
import Glibc

/// Makes multi handles whose wake-up sockets no child process inherits.
///
/// libcurl before 8.10 makes the two sockets of `curl_multi_wakeup` without `FD_CLOEXEC`, and offers no way to learn
/// their descriptors. The sockets are identified by their bytes. A wake-up makes one of the new sockets readable. A
/// byte written to that socket makes its peer readable. Sockets of other threads are examined, but neither read nor
/// changed. A process that is started between the two calls still inherits the sockets.
enum WakeUpSockets {
  /// The number of descriptors above the lowest free one that are examined.
  private static let window: Int32 = 64

  static func makeMulti() -> UnsafeMutableRawPointer? {
    let lowest = lowestFreeDescriptor()
    guard let multi = curl_multi_init() else { return nil }
    if let lowest { close(multi, from: lowest) }
    return multi
  }

  private static func lowestFreeDescriptor() -> Int32? {
    let descriptor = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    Glibc.close(descriptor)
    return descriptor
  }

  /// Sets `FD_CLOEXEC` on the sockets.
  private static func close(_ multi: UnsafeMutableRawPointer, from lowest: Int32) {
    let candidates = (lowest..<lowest + window).filter(isInheritedSocket)
    guard candidates.count >= 2 else { return }
    guard let reader = socket(among: candidates, madeReadableBy: { curl_multi_wakeup(multi) }) else { return }
    defer { drain(reader) }
    var byte: UInt8 = 0
    let others = candidates.filter { $0 != reader }
    let writer = socket(among: others) {
      _ = send(reader, &byte, 1, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    }
    guard let writer else { return }
    drain(writer)
    for descriptor in [reader, writer] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
  }

  /// Whether the descriptor is an empty socket of the Unix domain that child processes inherit.
  private static func isInheritedSocket(_ descriptor: Int32) -> Bool {
    let flags = fcntl(descriptor, F_GETFD)
    guard flags >= 0, flags & FD_CLOEXEC == 0, pending(descriptor) == 0 else { return false }
    var domain: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX
  }

  /// Returns the only socket in which each call of `act` leaves one more byte; `nil` if there are none or several.
  private static func socket(among candidates: [Int32], madeReadableBy act: () -> Void) -> Int32? {
    var rest = candidates
    for count in 1...2 {
      act()
      rest = rest.filter { pending($0) == Int32(count) }
    }
    return rest.count == 1 ? rest[0] : nil
  }

  private static func pending(_ descriptor: Int32) -> Int32 {
    var count: Int32 = 0
    return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? count : -1
  }

  private static func drain(_ descriptor: Int32) {
    var bytes: (UInt64, UInt64) = (0, 0)
    _ = recv(descriptor, &bytes, MemoryLayout.size(ofValue: bytes), Int32(MSG_DONTWAIT))
  }
}
