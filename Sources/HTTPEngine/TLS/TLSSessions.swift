import COpenSSL
import HTTPWire

/// The TLS sessions of one loop that may be resumed (RFC 8446 §2.2, RFC 5077). Belongs to the loop's thread.
///
/// OpenSSL verifies no certificate when a session is resumed. So the owner of a handshake evaluates the chain of a
/// session again before it is offered.
final class TLSSessions {
  /// The number of keys beyond which the sessions of all are forgotten.
  private static let capacity = 256
  /// The number of sessions of one key. A server of TLS 1.3 sends two tickets, each of which is used once.
  private static let sessionsPerKey = 2

  @exclusivity(unchecked) private var sessions: [AnyHashable: [OpaquePointer]] = [:]

  deinit { removeAll() }

  /// Keeps a session, of which the caller gives up its reference.
  func keep(_ session: OpaquePointer, for key: AnyHashable) {
    if sessions[key] == nil, sessions.count >= Self.capacity { removeAll() }
    var kept = sessions[key] ?? []
    kept.append(session)
    if kept.count > Self.sessionsPerKey { SSL_SESSION_free(kept.removeFirst()) }
    sessions[key] = kept
  }

  /// Calls `use` with the newest session of the key, if there is one. A session of TLS 1.3 is used once, so that
  /// observers of the network cannot link two connections by it (RFC 8446 §C.4).
  func withSession(for key: AnyHashable, _ use: (OpaquePointer) -> Void) {
    guard let session = sessions[key]?.last else { return }
    use(session)
    guard SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION else { return }
    sessions[key]?.removeLast()
    SSL_SESSION_free(session)
  }

  private func removeAll() {
    for session in sessions.values.joined() { SSL_SESSION_free(session) }
    sessions.removeAll()
  }
}
