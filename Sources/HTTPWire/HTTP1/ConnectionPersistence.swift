/// Whether a connection can carry another request after a response, and for how long it may be idle before (RFC 9112
/// §9.3).
package struct ConnectionPersistence: Sendable, Equatable {
  /// The longest time for which a connection is idle and still used again.
  package static var longestIdleTime: Duration { .seconds(118) }

  /// Whether the server keeps the connection after the response.
  package let isPersistent: Bool
  /// The time for which the server keeps an idle connection, in seconds; `nil` if it does not say so. It is a hint of
  /// `Keep-Alive` (RFC 2068 §19.7.1.1).
  package let announcedIdleTime: Int?

  /// Reads the head of a response.
  ///
  /// - Parameters:
  ///   - framing: The framing of the response. A connection is not used again if another reader could have found
  ///     another end of the body.
  ///   - isFromProxy: Whether a proxy answers that forwards the request. Proxies of HTTP/1.0 say `Proxy-Connection`.
  package init(_ head: ResponseHead, framing: MessageFraming, isFromProxy: Bool) {
    var closes = false
    var keepsAlive = false
    var idleTime: Int?
    let marks = head.block.marks
    // HTTP/1.1 keeps connections by default, so that `keep-alive` has no mark.
    if marks.contains(.connection) || head.version == .http1_0 {
      // A function, because a closure that is stored allocates memory.
      func note(_ token: UnsafeRawBufferPointer) {
        if FieldName.equal(token, lowercase: "close") { closes = true }
        if FieldName.equal(token, lowercase: "keep-alive") { keepsAlive = true }
      }
      head.block.forEachElement(of: "Connection", note)
      if isFromProxy { head.block.forEachElement(of: "Proxy-Connection", note) }
    }
    if marks.contains(.keepAlive) {
      head.block.forEachElement(of: "Keep-Alive") { idleTime = Self.timeout($0) ?? idleTime }
    }
    isPersistent = !closes && !framing.isAmbiguous(head.version) && (head.version != .http1_0 || keepsAlive)
    announcedIdleTime = idleTime
  }

  /// The time for which the connection may be idle before another request uses it. It is shorter than what the server
  /// has announced, so that the request does not meet the end of the connection.
  package var idleTime: Duration {
    guard let announcedIdleTime else { return Self.longestIdleTime }
    return min(Self.longestIdleTime, .seconds(max(0, announcedIdleTime - 1)))
  }

  /// Reads a parameter `timeout=seconds`; `nil` for any other one.
  private static func timeout(_ parameter: UnsafeRawBufferPointer) -> Int? {
    guard let equals = parameter.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let name = FieldName.trimmed(UnsafeRawBufferPointer(rebasing: parameter[..<equals]))
    let digits = FieldName.trimmed(UnsafeRawBufferPointer(rebasing: parameter[(equals + 1)...]))
    guard FieldName.equal(name, lowercase: "timeout"), !digits.isEmpty else { return nil }
    var seconds = 0
    for byte in digits {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      seconds = min(seconds * 10 + Int(byte - 0x30), 1_000_000)
    }
    return seconds
  }
}
