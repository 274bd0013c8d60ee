import COpenSSL

/// The end of one TLS connection as far as the peer has announced it. Belongs to the loop's thread and outlives the
/// connection, because libcurl frees that before it reports the end of a transfer.
final class ConnectionClosure {
  /// Whether the alert `close_notify` has come (RFC 8446 §6.1), which only the peer can send.
  private(set) var isAnnounced = false

  /// Prepares for the connection that will be made with `context`. Returns false if there is no memory.
  static func attach(to context: OpaquePointer) -> Bool {
    let reference = Unmanaged.passRetained(ConnectionClosure())
    guard SSL_CTX_set_ex_data(context, index, reference.toOpaque()) == 1 else {
      reference.release()
      return false
    }
    return true
  }

  /// Returns the closure of the connection of `session`.
  static func of(_ session: OpaquePointer?) -> ConnectionClosure? {
    guard let session, let context = SSL_get_SSL_CTX(session),
      let reference = SSL_CTX_get_ex_data(context, index)
    else { return nil }
    return Unmanaged<ConnectionClosure>.fromOpaque(reference).takeUnretainedValue()
  }

  /// The index of the reference, which OpenSSL releases when the context is freed.
  private static let index = CRYPTO_get_ex_new_index(
    CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil,
    { _, reference, _, _, _, _ in
      if let reference { Unmanaged<ConnectionClosure>.fromOpaque(reference).release() }
    })

  /// Takes an event of OpenSSL's information callback. The state of the session can mislead: with
  /// `SSL_OP_IGNORE_UNEXPECTED_EOF`, OpenSSL notes an end without alert as one with it.
  static func note(_ event: Int32, _ value: Int32, of session: OpaquePointer?) {
    // The low byte of the value is the description of the alert.
    guard event & SSL_CB_READ_ALERT == SSL_CB_READ_ALERT, value & 0xFF == SSL_AD_CLOSE_NOTIFY else { return }
    of(session)?.isAnnounced = true
  }
}
