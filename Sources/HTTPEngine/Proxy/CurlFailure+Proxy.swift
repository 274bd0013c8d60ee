import CCurl
import HTTPWire

extension CurlFailure {
  /// What libcurl's code means when a proxy stands in between; `nil` when it has nothing to do with it.
  ///
  /// - Parameters:
  ///   - status:      What the proxy answered to `CONNECT`; 0 when it was not asked.
  ///   - reply:       What a SOCKS proxy said (`CURLPX_…`).
  ///   - isConnected: Whether the request could be sent.
  static func proxyMeaning(
    _ code: CURLcode, _ proxy: ProxyServer, status: Int, reply: Int, isConnected: Bool, securesProxy: Bool
  ) -> (TransportFailure.Kind, String)? {
    // Some say 401, as if they were the server; nobody else can have answered `CONNECT`.
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
      return (.cannotConnectToProxy, "No secure connection to the proxy \(proxy) came about.")
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
      ? "The proxy \(proxy) wants a name and a password; give them to TransportOptions.proxy."
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
        "What listens at \(proxy) does not speak \(proxy.kind.rawValue); check kind and port."
      )
    default: (.cannotConnectToHost, "The proxy \(proxy) could not or would not connect to {host}.")
    }
  }
}
