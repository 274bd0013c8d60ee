import CCurl
import COpenSSL
import Glibc
import HTTPWire

/// The result of an attempt to move bytes without waiting.
enum StreamStep {
  case moved(Int)
  /// The wait until the socket can be read; until then nothing can be done.
  case waitsToRead
  /// The wait until the socket can be written; until then nothing can be done.
  case waitsToWrite
  /// The peer sends no more bytes.
  case ended
  case failed(TransportFailure)
  /// The watcher has to evaluate the server first.
  case undecided(PresentedChain)
  /// The server asks for a client certificate, and the watcher chooses it.
  case asksForIdentity
}

/// The connection of a stream, below the TLS of the stream. Belongs to the loop's thread. The connection closes with
/// the last reference.
protocol StreamConnection: AnyObject {
  /// The socket to wait for.
  var descriptor: Int32 { get }
  /// Whether a write that has to wait must be repeated with the same bytes.
  var keepsWrites: Bool { get }

  func read(into room: UnsafeMutableRawBufferPointer) -> StreamStep
  func write(_ bytes: UnsafeRawBufferPointer) -> StreamStep
  func shutReading()
  /// Ends writing. Returns `.moved` if the peer will be told.
  func shutWriting() -> StreamStep
}

/// A connected socket, which is closed exactly once.
final class StreamSocket: StreamConnection {
  let descriptor: Int32
  let keepsWrites = false
  private let host: String

  /// Takes over a connected descriptor.
  init(_ descriptor: Int32, host: String) {
    self.descriptor = descriptor
    self.host = host
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    var on: Int32 = 1
    // A small write must not wait for the acknowledgement of the previous one (Nagle's algorithm).
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { close(descriptor) }

  func read(into room: UnsafeMutableRawBufferPointer) -> StreamStep {
    while true {
      let count = recv(descriptor, room.baseAddress, room.count, 0)
      if count > 0 { return .moved(count) }
      if count == 0 { return .ended }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .waitsToRead
      default: return .failed(Self.lost(host, errno))
      }
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> StreamStep {
    while true {
      let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count >= 0 { return .moved(count) }
      switch errno {
      case EINTR: continue
      case EAGAIN: return .waitsToWrite
      default: return .failed(Self.lost(host, errno))
      }
    }
  }

  func shutReading() { shutdown(descriptor, Int32(SHUT_RD)) }
  func shutWriting() -> StreamStep {
    shutdown(descriptor, Int32(SHUT_WR))
    return .moved(0)
  }

  static func lost(_ host: String, _ code: Int32) -> TransportFailure {
    TransportFailure(
      .connectionLost, "The connection to \(host) broke: \(String(cString: strerror(code))).")
  }
}

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

/// An observer that takes the connection of a transfer.
protocol ConnectionReceiver: TransferObserver {
  /// Takes the connection, on the loop's thread. The connection ends with the last reference to `connection`.
  func take(_ connection: any StreamConnection)
}

// A transfer can connect and send nothing: libcurl looks up the host, tries its addresses and speaks with proxies. Then
// a stream of bytes gets the connection.
extension Transfer {
  /// Sets whether the handle only connects.
  func applyConnectOnly(_ request: WireRequest) -> TransportFailure? {
    guard applied.isConnecting != request.connectsOnly else { return nil }
    applied.isConnecting = request.connectsOnly
    let codes = [
      easy.set(CURLOPT_CONNECT_ONLY, request.connectsOnly),
      easy.set(CURLOPT_HTTPPROXYTUNNEL, request.connectsOnly),
    ]
    let code = codes.first { $0 != CURLE_OK }
    return code.map { CurlFailure.unsupported("A connection without a request", $0) }
  }

  /// Gives the connection to the observer of the request.
  func handOver(_ metrics: TransferMetrics) -> Outcome {
    guard let taker = observer as? any ConnectionReceiver else {
      return .failure(
        TransportFailure(.unknown, "The observer of the request does not take connections.", metrics: metrics)
      )
    }
    switch streamConnection() {
    case .success(let connection): taker.take(connection)
    case .failure(let failure): return .failure(failure.with(metrics: metrics))
    }
    return .success(WireResponse(head: ResponseHead(status: 200), body: nil, metrics: metrics))
  }

  /// Returns the connection of the stream. If the bytes need no TLS of libcurl's, that is a duplicate of the socket:
  /// libcurl closes its own descriptor without shutting the connection down.
  private func streamConnection() -> Result<any StreamConnection, TransportFailure> {
    let host = request?.origin.host ?? "the host"
    let socket = ccurl_active_socket(easy.raw)
    if applied.proxy?.kind == .https, socket != ccurl_bad_socket {
      return .success(SecureTunnel(self, socket, host: host))
    }
    let own = socket == ccurl_bad_socket ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 0)
    guard own >= 0 else {
      return .failure(
        TransportFailure(
          .resourceUnavailable,
          "The process has no file descriptors left for the connection. "
            + "Close files and connections, or raise the limit (ulimit -n)."))
    }
    return .success(StreamSocket(own, host: host))
  }
}
