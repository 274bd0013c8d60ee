import CCurl
import HTTPWire

// libcurl 7.83 to 8.0 keeps, with a handle, the address of the last field of its previous transfer. A response whose first
// field line begins with white space has libcurl read and free that memory again. 7.88.1 hands each line of a head to the
// write callback before it stores the line (CURLOPT_HEADER), so such a line is refused in time. With the other versions,
// each transfer gets a new handle. See Documentation/Libcurl.md.
// In every version a handle can keep credentials of a proxy that it does not use any more (CVE-2026-9079, -7168).
extension Transfer {
  /// Replaces the handle if its next transfer could use what the handle kept of earlier ones. Returns false without memory.
  func prepareHandle() -> Bool {
    let history = easy.history
    if history.contains(.otherProxy) || (history.contains(.transfer) && CurlLibrary.shared.needsNewHandles) {
      guard replaceHandle() else { return false }
    }
    easy.history.insert(.transfer)
    return true
  }

  private func replaceHandle() -> Bool {
    guard var other = EasyHandle(options: easy) else { return false }
    swap(&easy, &other)
    loop.sessions.join(easy)
    // A copied URL is dropped by libcurl, which then puts it together from its parts again.
    if let url = applied.url { easy.set(CURLOPT_URL, url) }
    if applied.addresses != nil { ccurl_set_list(easy.raw, CURLOPT_RESOLVE, lists.addresses.head) }
    if other.history.contains(.http2) { loop.retiredHandles.retire(other) }
    return true
  }

  /// Keeps the memory of a handle that a connection of HTTP/2 could still touch.
  func retireHandle() {
    guard CurlLibrary.shared.touchesEndedHandles, easy.history.contains(.http2),
      var other = EasyHandle(options: easy)
    else { return }
    swap(&easy, &other)
    loop.retiredHandles.retire(other)
  }
}

extension Transfer {
  /// Takes the lines of a head, before libcurl stores them and calls ``lineReceived(_:_:)``, and the bytes of the body.
  func outputReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    guard readsHead else { return bytesReceived(bytes, length) }
    guard let bytes, length > 0 else { return length }
    // A line of more than 16 KiB comes in parts. Each line ends with its line feed.
    let isRest = response.endsInsideLine
    response.endsInsideLine = UInt8(bitPattern: bytes[length - 1]) != UInt8(ascii: "\n")
    let first = UInt8(bitPattern: bytes[0])
    guard !isRest, !response.assembly.hasFields, first == UInt8(ascii: " ") || first == UInt8(ascii: "\t")
    else {
      return length
    }
    refuse(.foldBeforeFirstField)
    return 0
  }

  /// Whether the next output is a line of a head. Behind a head that is held, that is so once libcurl has sent the next
  /// request of a login.
  private var readsHead: Bool {
    response.assembly.head == nil || (login.isHolding && !login.awaitsNextRequest)
  }
}
