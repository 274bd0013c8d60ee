import CCurl
import HTTPWire

/// A URL in libcurl's parts, which are read there for each request in place of the text: it would take the text apart, and
/// put it together again, each time. Belongs to one transfer.
final class ParsedURL {
  let raw: OpaquePointer

  init?() {
    guard let raw = curl_url() else { return nil }
    self.raw = raw
  }

  deinit { curl_url_cleanup(raw) }

  /// Takes another URL apart. Returns false when libcurl does not understand it; then the parts mean nothing.
  func take(_ url: String) -> Bool {
    curl_url_set(raw, CURLUPART_URL, url, UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_PATH_AS_IS)) == CURLUE_OK
  }
}

extension Transfer {
  /// Sets the URL and the request target, unless they are those of the request before.
  func applyURL(_ request: WireRequest) -> TransportFailure? {
    let url = request.url
    guard url != applied.url else { return nil }
    applied.url = nil
    guard Self.isOfHTTP(url) else {
      return TransportFailure(.unsupportedURL, "Only URLs of http and https can be requested.")
    }
    // One that it does not understand is left to libcurl, which says why.
    let parts = parsedURL.flatMap { $0.take(url) ? UnsafeMutableRawPointer($0.raw) : nil }
    ccurl_set_pointer(easy.raw, CURLOPT_CURLU, parts)
    let code = easy.set(CURLOPT_URL, url)
    guard code == CURLE_OK else { return CurlFailure.unsupported("This URL", code) }
    if let failure = applyTarget(request) { return failure }
    applied.url = url
    return nil
  }

  private func applyTarget(_ request: WireRequest) -> TransportFailure? {
    let target = RequestTarget.verbatim(of: request.url, targetForm(of: request), at: request.origin)
    guard target != applied.target else { return nil }
    applied.target = nil
    let code = easy.set(CURLOPT_REQUEST_TARGET, target)
    guard code == CURLE_OK else { return CurlFailure.unsupported("This request target", code) }
    applied.target = target
    return nil
  }

  private func targetForm(of request: WireRequest) -> RequestTarget.Form {
    guard request.origin.scheme == "http" else { return .origin }
    return switch applied.proxy?.kind {
    case .http, .https: .absolute
    case .socks4, .socks4a, .socks5, .socks5h, nil: .origin
    }
  }

  private static func isOfHTTP(_ url: String) -> Bool {
    let scheme = url.utf8.prefix { $0 != UInt8(ascii: ":") }
    return (scheme.count == 4 || scheme.count == 5)
      && zip(scheme, "https".utf8).allSatisfy { $0 | 0x20 == $1 }
  }
}
