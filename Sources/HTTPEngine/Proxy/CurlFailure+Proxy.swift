import CCurl
import HTTPWire

extension CurlFailure {
  /// Returns the meaning of libcurl's code for a request with a proxy; `nil` if the failure does not concern the proxy.
  ///
  /// - Parameters:
  ///   - status:      The status of the response to `CONNECT`; 0 if there is none.
  ///   - reply:       The reply of a SOCKS proxy (`CURLPX_…`).
  ///   - isConnected: Whether the request could be sent.
  static func proxyMeaning(
    _ code: CURLcode, _ proxy: ProxyServer, status: Int, reply: Int, isConnected: Bool, securesProxy: Bool
  ) -> (TransportFailure.Kind, String)? {
    // Some proxies send 401. Only the proxy can have answered `CONNECT`.
    if status == 407 || status == 401, code == CURLE_RECV_ERROR || code == CURLE_COULDNT_CONNECT {
      return (.proxyAuthenticationRequired, rejected(proxy))
    }
    if status >= 300, code == CURLE_RECV_ERROR || code == CURLE_COULDNT_CONNECT {
      return (
        .cannotConnectToHost, "The proxy \(proxy) refused a tunnel to {host} with the status \(status)."
      )
    }
    switch code {
    case CURLE_COULDNT_RESOLVE_PROXY:
      return (
        .cannotFindProxy, "The name of the proxy \(proxy) could not be found; check TransportOptions.proxy."
      )
    case CURLE_PROXY: return socksMeaning(reply, proxy)
    case CURLE_COULDNT_CONNECT:
      return (
        .cannotConnectToProxy,
        "The proxy \(proxy) does not accept the connection; check that it runs on that port."
      )
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION:
      guard securesProxy else { return nil }
      return (.cannotConnectToProxy, "The TLS handshake with the proxy \(proxy) failed.")
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
      guard !isConnected else { return nil }
      return (
        .cannotConnectToProxy,
        "The proxy \(proxy) closed the connection to {host} before the request was sent."
      )
    default: return nil
    }
  }

  private static func rejected(_ proxy: ProxyServer) -> String {
    proxy.username == nil
      ? "The proxy \(proxy) requires a name and a password; set them in TransportOptions.proxy."
      : "The proxy \(proxy) does not accept the name and the password."
  }

  private static func socksMeaning(_ reply: Int, _ proxy: ProxyServer) -> (TransportFailure.Kind, String) {
    switch CURLproxycode(UInt32(clamping: reply)) {
    case CURLPX_USER_REJECTED, CURLPX_NO_AUTH, CURLPX_RECV_AUTH, CURLPX_SEND_AUTH, CURLPX_LONG_USER,
      CURLPX_LONG_PASSWD:
      (.proxyAuthenticationRequired, rejected(proxy))
    case CURLPX_RESOLVE_HOST, CURLPX_LONG_HOSTNAME:
      (.cannotFindHost, "The name {host} could not be found for the proxy \(proxy).")
    case CURLPX_BAD_VERSION, CURLPX_UNKNOWN_MODE, CURLPX_CLOSED, CURLPX_RECV_CONNECT, CURLPX_SEND_CONNECT:
      (
        .cannotConnectToProxy,
        "The server at \(proxy) does not speak \(proxy.kind.rawValue); check kind and port."
      )
    default: (.cannotConnectToHost, "The proxy \(proxy) did not connect to {host}.")
    }
  }
}
