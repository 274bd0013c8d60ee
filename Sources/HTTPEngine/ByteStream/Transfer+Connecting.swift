import CCurl
import Glibc
import HTTPWire

/// Takes the connection of a transfer that only connects.
protocol SocketTaker: TransferObserver {
  /// On the loop's thread. The descriptor is the taker's to close.
  func take(_ socket: Int32)
}

// A transfer that connects and sends nothing: libcurl finds the host, tries its addresses and speaks with proxies, and
// then the socket is somebody else's.
extension Transfer {
  /// Whether the handle sends a request, or only connects.
  func applyPurpose(_ request: WireRequest) -> TransportFailure? {
    if request.connectsOnly, applied.proxy?.kind == .https {
      return TransportFailure(
        .unsupportedFeature,
        "A stream of bytes does not go through a proxy over TLS; use one of http or SOCKS, or bypass it.")
    }
    guard applied.isConnecting != request.connectsOnly else { return nil }
    applied.isConnecting = request.connectsOnly
    let codes = [
      easy.set(CURLOPT_CONNECT_ONLY, request.connectsOnly),
      easy.set(CURLOPT_HTTPPROXYTUNNEL, request.connectsOnly),
    ]
    let code = codes.first { $0 != CURLE_OK }
    return code.map { CurlFailure.unsupported("A connection without a request", $0) }
  }

  /// Gives the connection to whoever has asked for it. libcurl closes its own descriptor of it without a word to the
  /// other side.
  func handOver(_ metrics: TransferMetrics) -> Outcome {
    let socket = ccurl_active_socket(easy.raw)
    let own = socket == ccurl_bad_socket ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 0)
    guard own >= 0 else {
      return .failure(
        TransportFailure(
          .resourceUnavailable, "There is no descriptor left for the connection.", metrics: metrics))
    }
    guard let taker = observer as? any SocketTaker else {
      close(own)
      return .failure(TransportFailure(.unknown, "Nobody has taken the connection.", metrics: metrics))
    }
    taker.take(own)
    return .success(WireResponse(head: ResponseHead(status: 200), body: nil, metrics: metrics))
  }
}
