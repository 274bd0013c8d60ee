import COpenSSL
import Glibc

/// TLS over one socket; used by the thread of the connection only.
final class TLSSession {
  private let pointer: OpaquePointer
  /// After an error of the record layer nothing may be called any more, not even the shutdown.
  private var isBroken = false
  /// Masks for bytes of the next record, by their offsets.
  private var changes: [Int: UInt8] = [:]

  init(owning pointer: OpaquePointer) {
    self.pointer = pointer
  }

  deinit {
    SSL_free(pointer)
  }

  func accept(over channel: Channel) throws(Channel.Failure) {
    guard try attempt(over: channel, { SSL_accept(pointer) }) == 1 else { throw .clientGone }
  }

  /// Reads bytes and returns their number; 0 at the closing alert.
  func read(
    into buffer: UnsafeMutableRawBufferPointer, over channel: Channel
  ) throws(Channel.Failure) -> Int {
    var count = 0
    let status = try attempt(over: channel) { SSL_read_ex(pointer, buffer.baseAddress, buffer.count, &count) }
    return status == 1 ? count : 0
  }

  func write(
    _ buffer: UnsafeRawBufferPointer, over channel: Channel, finishing connection: AcceptedConnection?
  ) throws(Channel.Failure) {
    var rest = buffer[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest)
      var count = 0
      let status = try attempt(over: channel) {
        var status: Int32 = 0
        Channel.attempt(finishing: connection) {
          status = SSL_write_ex(pointer, part.baseAddress, part.count, &count)
          return status == 1 && count == part.count
        }
        return status
      }
      guard status == 1 else { throw .clientGone }
      rest = rest.dropFirst(count)
    }
  }

  /// Sends KeyUpdate of TLS 1.3 before the next bytes, and asks the client for its own (RFC 8446 §4.6.3).
  func updateKeys() throws(Channel.Failure) {
    guard SSL_key_update(pointer, SSL_KEY_UPDATE_REQUESTED) == 1 else { throw .clientGone }
  }

  /// Changes bytes of the next record on their way, by exclusive or.
  func changeNextRecord(_ changes: [Int: UInt8]) {
    guard let stream = SSL_get_wbio(pointer) else { return }
    self.changes = changes
    let context = Unmanaged.passUnretained(self).toOpaque()
    BIO_set_callback_arg(stream, context.assumingMemoryBound(to: CChar.self))
    BIO_set_callback_ex(stream) { stream, step, bytes, count, _, _, result, _ in
      guard step == BIO_CB_WRITE, let bytes, let context = BIO_get_callback_arg(stream) else {
        return Int(result)
      }
      let session = Unmanaged<TLSSession>.fromOpaque(context).takeUnretainedValue()
      // The bytes are in OpenSSL's own buffer for writing.
      let record = UnsafeMutablePointer(mutating: bytes)
      for (offset, mask) in session.changes where offset < count {
        record[offset] = CChar(bitPattern: UInt8(bitPattern: record[offset]) ^ mask)
      }
      session.changes = [:]
      return Int(result)
    }
  }

  /// Sends the closing alert; does not wait for the client's.
  func sendClosingAlert() {
    guard !isBroken, SSL_is_init_finished(pointer) == 1 else { return }
    ERR_clear_error()
    _ = SSL_shutdown(pointer)
  }

  /// The negotiated parameters; valid after the handshake.
  var details: RecordedRequest.TLSDetails {
    let cipher = SSL_get_current_cipher(pointer)
    return RecordedRequest.TLSDetails(
      version: SSL_get_version(pointer).map { String(cString: $0) } ?? "",
      cipher: SSL_CIPHER_get_name(cipher).map { String(cString: $0) } ?? "",
      serverName: SSL_get_servername(pointer, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) },
      applicationProtocol: applicationProtocol,
      isResumed: SSL_session_reused(pointer) == 1,
      clientCertificatePEM: clientCertificate)
  }

  private var applicationProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(pointer, &name, &length)
    guard let name, length > 0 else { return nil }
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  private var clientCertificate: String? {
    guard let certificate = SSL_get1_peer_certificate(pointer) else { return nil }
    return try? PEM.text(of: CertificateHandle(owning: certificate))
  }

  /// Repeats a step while it waits for the socket. Returns 1, or 0 at the closing alert.
  private func attempt(over channel: Channel, _ step: () -> Int32) throws(Channel.Failure) -> Int32 {
    while true {
      ERR_clear_error()
      let status = step()
      if status == 1 { return 1 }
      switch SSL_get_error(pointer, status) {
      case SSL_ERROR_WANT_READ: try channel.wait(for: POLLIN)
      case SSL_ERROR_WANT_WRITE: try channel.wait(for: POLLOUT)
      case SSL_ERROR_ZERO_RETURN: return 0
      case SSL_ERROR_SYSCALL:
        isBroken = true
        throw .clientGone
      default:
        isBroken = true
        // The client has closed the socket without the closing alert.
        throw ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? .clientGone : .tls
      }
    }
  }
}
