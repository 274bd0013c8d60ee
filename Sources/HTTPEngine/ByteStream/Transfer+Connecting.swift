import CCurl
import Glibc
import HTTPWire

/// Takes the connection of a transfer that only connects.
protocol SocketTaker: TransferObserver {
  /// On the loop's thread. The connection ends with the last reference to what is taken.
  func take(_ carrier: any StreamCarrier)
}

// A transfer that connects and sends nothing: libcurl finds the host, tries its addresses and speaks with proxies, and
// then the connection is somebody else's.
extension Transfer {
  /// Whether the handle sends a request, or only connects.
  func applyPurpose(_ request: WireRequest) -> TransportFailure? {
    guard applied.isConnecting != request.connectsOnly else { return nil }
    applied.isConnecting = request.connectsOnly
    let codes = [
      easy.set(CURLOPT_CONNECT_ONLY, request.connectsOnly),
      easy.set(CURLOPT_HTTPPROXYTUNNEL, request.connectsOnly),
    ]
    let code = codes.first { $0 != CURLE_OK }
    return code.map { CurlFailure.unsupported("A connection without a request", $0) }
  }

  /// Gives the connection to whoever has asked for it.
  func handOver(_ metrics: TransferMetrics) -> Outcome {
    guard let taker = observer as? any SocketTaker else {
      return .failure(TransportFailure(.unknown, "Nobody has taken the connection.", metrics: metrics))
    }
    switch carrier() {
    case .success(let carrier): taker.take(carrier)
    case .failure(let failure): return .failure(failure.with(metrics: metrics))
    }
    return .success(WireResponse(head: ResponseHead(status: 200), body: nil, metrics: metrics))
  }

  /// The socket by itself, where it carries the bytes of the stream. libcurl closes its own descriptor of it without a
  /// word to the other side.
  private func carrier() -> Result<any StreamCarrier, TransportFailure> {
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
