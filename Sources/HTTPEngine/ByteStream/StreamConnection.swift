import CCurl
import COpenSSL
import Glibc
import HTTPWire

/// A tunnel through a proxy that is reached over TLS. libcurl owns the TLS connection, so the bytes go through libcurl,
/// and the handle is kept as long as the stream lasts.
final class SecureTunnel: WatchablePipe, PollTarget {
  /// The largest content of one TLS record.
  private static let largestPiece = 16_384

  let descriptor: Int32
  let keepsWrites = true
  private let transfer: Transfer
  private let host: String
  private let poller: Poller
  private var token: PollToken?
  var owner: (any PipeOwner)?
  /// The bytes that the first read returned.
  private var early: [UInt8] = []
  /// The bytes of a write that has to be repeated. TLS requires the same bytes at the same address.
  private let kept = UnsafeMutableRawBufferPointer.allocate(byteCount: largestPiece, alignment: 16)
  private var keptCount = 0

  /// Borrows the handle of a transfer that is connected.
  init(_ transfer: Transfer, _ socket: Int32, host: String) {
    self.transfer = transfer
    self.host = host
    poller = transfer.loop.poller
    descriptor = socket
    transfer.phase.lend()
    claim()
  }

  deinit {
    kept.deallocate()
    transfer.loop.endLoan(of: transfer)
  }

  func watch(for owner: any PipeOwner) -> Int32? {
    token = poller.watch(descriptor, for: self)
    guard token != nil else { return errno }
    self.owner = owner
    return nil
  }

  func ready(_ events: PollEvents) { owner?.pipeIsReady() }

  /// Ends the watch. libcurl closes the socket when the handle has come back, with the last reference.
  func close() {
    if let token { poller.forget(token) }
    token = nil
    owner = nil
  }

  /// Reads once. Before the first read, libcurl takes the connection for unused, and closes it after two minutes of
  /// silence.
  private func claim() {
    early = [UInt8](unsafeUninitializedCapacity: Self.largestPiece) { room, count in
      if case .moved(let read) = receive(into: UnsafeMutableRawBufferPointer(room)) { count = read }
    }
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    guard !early.isEmpty else { return receive(into: room) }
    let count = min(room.count, early.count)
    room.copyBytes(from: early.prefix(count))
    early.removeFirst(count)
    return .moved(count)
  }

  private func receive(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    transfer.errorText[0] = 0
    var count = 0
    switch curl_easy_recv(transfer.easy.raw, room.baseAddress, room.count, &count) {
    case CURLE_OK: return count > 0 ? .moved(count) : .ended
    case CURLE_AGAIN: return .waitsToRead
    case let code: return .failed(lost(code))
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep {
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
  func shutWriting() -> PipeStep {
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
  /// Takes the connection, on the loop's thread.
  func take(_ connection: any WatchablePipe)
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
    let host = request?.origin.host ?? "the host"
    guard let connection = streamConnection(host) else {
      return .failure(RouteFailure.outOfDescriptors(host, errno).with(metrics: metrics))
    }
    taker.take(connection)
    return .success(WireResponse(head: ResponseHead(status: 200), body: nil, metrics: metrics))
  }

  /// Returns the connection of the stream; `nil` if the process has no descriptors left. If the bytes need no TLS of
  /// libcurl's, that is a duplicate of the socket: libcurl closes its own descriptor without shutting the connection
  /// down.
  private func streamConnection(_ host: String) -> (any WatchablePipe)? {
    let socket = ccurl_active_socket(easy.raw)
    if applied.proxy?.kind == .https, socket != ccurl_bad_socket {
      return SecureTunnel(self, socket, host: host)
    }
    let own = socket == ccurl_bad_socket ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 0)
    return own < 0 ? nil : Socket(adopting: own, host: host, loop.poller)
  }
}
