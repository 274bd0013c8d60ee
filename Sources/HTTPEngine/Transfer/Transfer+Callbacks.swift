import CCurl
import COpenSSL
import FoundationEssentials
import Glibc
import HTTPWire

// libcurl calls these on the loop thread, between two reads of the socket. What they mean is decided
// by `ResponseAssembly`; here it is only done.
extension Transfer {
  func setCallbacks() {
    let context = Unmanaged.passUnretained(self).toOpaque()
    ccurl_set_pointer(easy.raw, CURLOPT_PRIVATE, context)
    ccurl_set_pointer(easy.raw, CURLOPT_WRITEDATA, context)
    ccurl_set_pointer(easy.raw, CURLOPT_HEADERDATA, context)
    ccurl_set_pointer(easy.raw, CURLOPT_READDATA, context)
    ccurl_set_pointer(easy.raw, CURLOPT_SEEKDATA, context)
    ccurl_set_callback(easy.raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      Transfer.of(context)._withUnsafeGuaranteedRef { $0.bodyReceived(bytes, size * count) }
    }
    ccurl_set_callback(easy.raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      Transfer.of(context)._withUnsafeGuaranteedRef { $0.lineReceived(bytes, size * count) }
    }
    ccurl_set_callback(easy.raw, CURLOPT_READFUNCTION) { bytes, size, count, context in
      Transfer.of(context)._withUnsafeGuaranteedRef { $0.bodyWanted(bytes, size * count) }
    }
    ccurl_set_seek(easy.raw) { context, offset, origin in
      guard origin == SEEK_SET else { return Int32(CURL_SEEKFUNC_CANTSEEK) }
      Transfer.of(context)._withUnsafeGuaranteedRef { $0.count.sent = Int64(offset) }
      return Int32(CURL_SEEKFUNC_OK)
    }
    ccurl_set_on_socket(
      easy.raw,
      { context, socket, _ in
        Transfer.of(context)._withUnsafeGuaranteedRef { $0.newSockets.append(socket) }
        return Int32(CURL_SOCKOPT_OK)
      }, context)
    ccurl_set_before_request(
      easy.raw,
      { context, _, _, remotePort, localPort in
        let ports = KeptSockets.Ports(local: localPort, remote: remotePort)
        let mayGo = Transfer.of(context)._withUnsafeGuaranteedRef { $0.mayUseConnection(ports) }
        return Int32(mayGo ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT)
      }, context)
  }

  /// The transfer that a callback or `CURLOPT_PRIVATE` names. It is kept alive by the loop as long as
  /// its handle is in use.
  static func of(_ context: UnsafeMutableRawPointer?) -> Unmanaged<Transfer> {
    guard let context else { preconditionFailure("libcurl lost the context of a callback") }
    return Unmanaged.fromOpaque(context)
  }

  @inline(__always)
  private func bytesMoved() {
    lastActivity = loop.now
    loop.hasMoved = true
  }

  private func lineReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    bytesMoved()
    switch assembly.lineReceived(UnsafeRawBufferPointer(start: bytes, count: length)) {
    case .keep: return length
    case .deliver(let head):
      headReceived(head)
      return length
    case .refuseHead:
      failure = TransportFailure(
        .dataLengthExceedsMaximum,
        "The header of the response is larger than \(request?.profile.options.headerSizeLimit ?? 0) bytes; raise headerSizeLimit if that is right."
      )
      return 0
    }
  }

  private func headReceived(_ head: ResponseHead) {
    if let session = ccurl_tls_session(easy.raw).map({ OpaquePointer($0) }) {
      tlsVersion = SSL_get_version(session)
      tlsCipher = SSL_CIPHER_get_name(SSL_get_current_cipher(session))
    }
    if count.expectedToSend > 0, applied.content == .copied, count.sent < count.expectedToSend {
      count.sent = count.expectedToSend
      observer?.bytesMoved(count)
    }
    let length = assembly.isEncoded ? -1 : ccurl_expected_length(easy.raw)
    count.expectedToReceive = Int64(length)
    // The length of a HEAD's answer is that of a body which does not come.
    if length > 0, applied.method != "HEAD" { reserve(Int64(length)) }
    guard observer?.headReceived(head) == .hold else { return }
    isClosed = true
  }

  private func reserve(_ length: Int64) {
    if let limit = request?.profile.options.bodySizeLimit, length > limit { return }
    // No memory now is no failure yet: the server may send less than it claims.
    _ = body.reserve(Int(length))
  }

  private func bodyReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    bytesMoved()
    if isClosed {
      isPaused = true
      return ccurl_write_pause
    }
    guard let bytes, length > 0 else { return length }
    switch assembly.bodyReceived(length) {
    case .store:
      guard body.append(bytes, count: length) else {
        failure = TransportFailure(
          .resourceUnavailable, "There is not enough memory for the body of the response.")
        return 0
      }
      count.received = assembly.bodyCount
      observer?.bytesMoved(count)
      return length
    case .refuseBody:
      failure = TransportFailure(
        .dataLengthExceedsMaximum,
        "The body of the response is larger than \(request?.profile.options.bodySizeLimit ?? 0) bytes; raise bodySizeLimit if that is right."
      )
      return 0
    }
  }

  private func bodyWanted(_ target: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
    bytesMoved()
    if isClosed {
      isPaused = true
      return ccurl_read_pause
    }
    guard let target, case .bytes(let data)? = request?.body else { return 0 }
    let offset = Int(count.sent)
    guard offset >= 0, offset < data.count else { return 0 }
    let length = min(room, data.count - offset)
    data.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      memcpy(target, base + offset, length)
    }
    count.sent += Int64(length)
    observer?.bytesMoved(count)
    return length
  }
}
