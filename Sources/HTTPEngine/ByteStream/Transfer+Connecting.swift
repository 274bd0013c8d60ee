import CCurl
import Glibc
import HTTPWire

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
