import CCurl
import HTTPWire

// libcurl 7.83 to 8.0 keeps, with a handle, the address of the last field of its previous transfer. A response whose first
// field line begins with white space has libcurl read and free that memory again. So a handle reads one response of
// HTTP/1.1 and is replaced. Responses of HTTP/2 have no such lines, so a handle that read nothing else is used again.
// In every version a handle can keep credentials of a proxy that it does not use any more (CVE-2026-9079, -7168).
extension Transfer {
  /// Replaces the handle where its next response could reach memory of an earlier one. Returns false without memory.
  func prepareHandle() -> Bool {
    if easy.history.contains(.otherProxy), !replaceHandle() { return false }
    guard CurlLibrary.shared.keepsFreedFields else { return true }
    // A proxy answers CONNECT with fields before it is known what the origin speaks.
    let meetsHTTP1 = applied.proxy?.kind == .http || applied.proxy?.kind == .https
    if !easy.history.isEmpty {
      if easy.history == .http2, lane?.multiplexes == true, !meetsHTTP1 {
        attempts.requiresHTTP2 = true
      } else if !replaceHandle() {
        return false
      }
    }
    if meetsHTTP1 { easy.history.insert(.http1) }
    return true
  }

  private func replaceHandle() -> Bool {
    guard var other = EasyHandle(options: easy) else { return false }
    swap(&easy, &other)
    loop.sessions.join(easy)
    // A copied URL is dropped by libcurl, which then puts it together from its parts again.
    if let url = applied.url { easy.set(CURLOPT_URL, url) }
    if applied.addresses != nil { ccurl_set_list(easy.raw, CURLOPT_RESOLVE, addresses.head) }
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
