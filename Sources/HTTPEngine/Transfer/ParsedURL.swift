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
  /// The URL, unless it is the one of the request before.
  func applyURL(_ url: String) -> TransportFailure? {
    guard url != applied.url else { return nil }
    applied.url = nil
    // One that it does not understand is left to libcurl, which says why.
    let parts = parsedURL.flatMap { $0.take(url) ? UnsafeMutableRawPointer($0.raw) : nil }
    ccurl_set_pointer(easy.raw, CURLOPT_CURLU, parts)
    let code = easy.set(CURLOPT_URL, url)
    guard code == CURLE_OK else { return CurlFailure.unsupported("This URL", code) }
    applied.url = url
    return nil
  }
}
