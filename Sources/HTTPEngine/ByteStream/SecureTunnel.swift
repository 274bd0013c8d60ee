import CCurl
import COpenSSL
import HTTPWire

/// A tunnel through a proxy that is reached over TLS. libcurl owns the TLS connection, so the bytes go through libcurl,
/// and the handle is kept as long as the stream lasts.
final class SecureTunnel: StreamConnection {
  /// The largest content of one TLS record.
  private static let largestPiece = 16_384

  let descriptor: Int32
  let keepsWrites = true
  private let transfer: Transfer
  private let host: String
  /// The bytes that the first read returned.
  private var early: [UInt8] = []
  /// The bytes of a write that has to be repeated. TLS requires the same bytes at the same address.
  private let kept = UnsafeMutableRawBufferPointer.allocate(byteCount: largestPiece, alignment: 16)
  private var keptCount = 0

  /// Borrows the handle of a transfer that is connected.
  init(_ transfer: Transfer, _ socket: Int32, host: String) {
    self.transfer = transfer
    self.host = host
    descriptor = socket
    transfer.phase.lend()
    claim()
  }

  deinit {
    kept.deallocate()
    transfer.loop.endLoan(of: transfer)
  }

  /// Reads once. Before the first read, libcurl takes the connection for unused, and closes it after two minutes of
  /// silence.
  private func claim() {
    early = [UInt8](unsafeUninitializedCapacity: Self.largestPiece) { room, count in
      if case .moved(let read) = receive(into: UnsafeMutableRawBufferPointer(room)) { count = read }
    }
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> StreamStep {
    guard !early.isEmpty else { return receive(into: room) }
    let count = min(room.count, early.count)
    room.copyBytes(from: early.prefix(count))
    early.removeFirst(count)
    return .moved(count)
  }

  private func receive(into room: UnsafeMutableRawBufferPointer) -> StreamStep {
    transfer.errorText[0] = 0
    var count = 0
    switch curl_easy_recv(transfer.easy.raw, room.baseAddress, room.count, &count) {
    case CURLE_OK: return count > 0 ? .moved(count) : .ended
    case CURLE_AGAIN: return .waitsToRead
    case let code: return .failed(lost(code))
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> StreamStep {
    if keptCount == 0 {
      keptCount = min(bytes.count, kept.count)
      kept.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(keptCount)))
    }
    transfer.errorText[0] = 0
    var count = 0
    switch curl_easy_send(transfer.easy.raw, kept.baseAddress, keptCount, &count) {
    case CURLE_OK:
      keptCount = 0
      return .moved(count)
    case CURLE_AGAIN: return .waitsToWrite
    case let code: return .failed(lost(code))
    }
  }

  /// Does nothing, because TLS has to read on.
  func shutReading() {}

  /// Sends `close_notify` by OpenSSL, because libcurl has no function for it. Without it, a proxy takes the end for a
  /// broken connection.
  func shutWriting() -> StreamStep {
    guard let session = transfer.connection.proxySession, ccurl_active_socket(transfer.easy.raw) == descriptor
    else {
      return .moved(0)
    }
    ERR_clear_error()
    let status = SSL_shutdown(session)
    defer { ERR_clear_error() }
    return status < 0 && SSL_get_error(session, status) == SSL_ERROR_WANT_WRITE ? .waitsToWrite : .moved(0)
  }

  private func lost(_ code: CURLcode) -> TransportFailure {
    let said = transfer.errorText[0] == 0 ? curl_easy_strerror(code) : UnsafePointer(transfer.errorText)
    let text = said.map { String(cString: $0) } ?? ""
    return TransportFailure(
      .connectionLost,
      "The connection to \(host) through the proxy broke: \(text) (libcurl \(code.rawValue)).",
      curlCode: Int32(code.rawValue))
  }
}
