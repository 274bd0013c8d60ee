import CCurl
package import FoundationEssentials
import Glibc
package import HTTPWire

/// Requests to OCSP responders and for lists. The requests block the calling thread, which must not be that of a
/// loop.
package enum RevocationDownload {
  /// The time limit of one request, in milliseconds.
  package static let timeLimit = 10_000
  private static let responseLimit = 1 << 16
  package static let listLimit = 16 << 20

  /// Returns the response of a responder; `nil` if there is none.
  package static func response(
    from url: String, to request: Data, publicOnly: Bool, proxies: ProxyTable? = nil,
    timeLimit: Int = timeLimit
  ) -> Data? {
    let limits = Limits(size: responseLimit, time: timeLimit, publicOnly: publicOnly, proxies: proxies)
    return fetch(url, body: request, limits)
  }

  /// Returns the list at `url`; `nil` if there is none.
  package static func list(
    at url: String, publicOnly: Bool, proxies: ProxyTable? = nil, sizeLimit: Int = listLimit,
    timeLimit: Int = timeLimit
  ) -> Data? {
    let limits = Limits(size: sizeLimit, time: timeLimit, publicOnly: publicOnly, proxies: proxies)
    return fetch(url, body: nil, limits)
  }

  private struct Limits {
    let size: Int
    let time: Int
    /// Whether private addresses are refused.
    let publicOnly: Bool
    /// The proxies; `nil` uses the environment of the process.
    let proxies: ProxyTable?
  }

  private static func fetch(_ url: String, body: Data?, _ limits: Limits) -> Data? {
    guard CurlLibrary.shared.isUsable, url.lowercased().hasPrefix("http://"), !url.utf8.contains(0),
      let easy = curl_easy_init()
    else { return nil }
    defer { curl_easy_cleanup(easy) }
    let collector = Collector(limit: limits.size)
    let headers = curl_slist_append(nil, "Content-Type: application/ocsp-request")
    defer { curl_slist_free_all(headers) }
    return withExtendedLifetime((collector, body)) {
      guard prepare(easy, url, collector, limits) else { return nil }
      if let body {
        let isSet = body.withUnsafeBytes { bytes in
          ccurl_set_long(easy, CURLOPT_POSTFIELDSIZE, bytes.count) == CURLE_OK
            && ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, bytes.baseAddress) == CURLE_OK
        }
        guard isSet, ccurl_set_list(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK else { return nil }
      }
      guard curl_easy_perform(easy) == CURLE_OK else { return nil }
      return ccurl_status(easy) == 200 ? collector.data : nil
    }
  }

  private static func prepare(
    _ easy: UnsafeMutableRawPointer, _ url: String, _ collector: Collector, _ limits: Limits
  ) -> Bool {
    let numbers: [(CURLoption, Int)] = [
      (CURLOPT_NOSIGNAL, 1), (CURLOPT_TIMEOUT_MS, limits.time), (CURLOPT_FOLLOWLOCATION, 1),
      (CURLOPT_MAXREDIRS, 3),
    ]
    guard numbers.allSatisfy({ ccurl_set_long(easy, $0.0, $0.1) == CURLE_OK }) else { return false }
    // Only HTTP is allowed, also after redirects. TLS would need the verification of another chain first, and the
    // answers are signed.
    guard ccurl_allow_http(easy) == CURLE_OK else { return false }
    guard setProxy(easy, to: url, limits.proxies) else { return false }
    if limits.publicOnly, ccurl_set_open_socket(easy, openPublicSocket, nil) != CURLE_OK { return false }
    return ccurl_set_string(easy, CURLOPT_URL, url) == CURLE_OK
      && ccurl_set_callback(easy, CURLOPT_WRITEFUNCTION, Collector.write) == CURLE_OK
      && ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(collector).toOpaque())
        == CURLE_OK
  }

  /// Sets the proxy of the session's requests, because these requests must not bypass it.
  private static func setProxy(_ easy: UnsafeMutableRawPointer, to url: String, _ proxies: ProxyTable?)
    -> Bool
  {
    guard let origin = Origin(url: url) else { return false }
    switch ProxyEnvironment.shared.choice(for: origin, in: proxies) {
    case .unreadable: return false
    case .direct, .environment: return ccurl_set_string(easy, CURLOPT_NOPROXY, "*") == CURLE_OK
    case .server(let server):
      let hasName = server.username != nil || server.password != nil
      let isNamed = server.username?.isEmpty != true
      let schemes = isNamed ? ccurl_auth_with_name : ccurl_auth_any
      let texts = [
        (CURLOPT_NOPROXY, ""), (CURLOPT_PROXY, server.description),
        (CURLOPT_PROXYUSERNAME, hasName ? server.username ?? "" : nil),
        (CURLOPT_PROXYPASSWORD, hasName ? server.password ?? "" : nil),
      ]
      let masks = [
        (CURLOPT_PROXYAUTH, server.authentication == .basic ? ccurl_auth_basic : schemes),
        (CURLOPT_SOCKS5_AUTH, ccurl_auth_basic),
      ]
      return texts.allSatisfy { ccurl_set_string(easy, $0.0, $0.1) == CURLE_OK }
        && masks.allSatisfy { ccurl_set_long(easy, $0.0, Int(bitPattern: $0.1)) == CURLE_OK }
        && (server.kind != .https || trust(server.trustStore, easy))
    }
  }

  /// Sets the trust store for a proxy over TLS.
  private static func trust(_ store: TransportOptions.TrustStore, _ easy: UnsafeMutableRawPointer) -> Bool {
    switch store {
    case .system:
      let place = TrustLocation.system
      return ccurl_set_string(easy, CURLOPT_PROXY_CAINFO, place.file) == CURLE_OK
        && (place.folder == nil || ccurl_set_string(easy, CURLOPT_PROXY_CAPATH, place.folder) == CURLE_OK)
    case .file(let path): return ccurl_set_string(easy, CURLOPT_PROXY_CAINFO, path) == CURLE_OK
    case .pem(let data):
      return data.withUnsafeBytes {
        ccurl_set_blob(easy, CURLOPT_PROXY_CAINFO_BLOB, $0.baseAddress, $0.count) == CURLE_OK
      }
    }
  }

  /// Refuses private addresses. libcurl connects to this very address, also after redirects.
  private static let openPublicSocket: curl_opensocket_callback = { _, _, address in
    guard let address, HostLookup.address(address)?.isPublic == true else { return ccurl_bad_socket }
    let wanted = address.pointee
    return socket(wanted.family, wanted.socktype | Int32(SOCK_CLOEXEC.rawValue), wanted.protocol)
  }

  /// The bytes of one body, up to a limit.
  private final class Collector {
    private(set) var data = Data()
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    static let write: ccurl_data_callback = { bytes, size, count, context in
      guard let bytes, let context else { return 0 }
      let collector = Unmanaged<Collector>.fromOpaque(context).takeUnretainedValue()
      // The transfer ends if the callback takes fewer bytes than it got.
      guard collector.data.count + size * count <= collector.limit else { return 0 }
      collector.data.append(Data(bytes: bytes, count: size * count))
      return size * count
    }
  }
}
