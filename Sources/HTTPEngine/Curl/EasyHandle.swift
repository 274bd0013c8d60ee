import CCurl

/// Owns one easy handle of libcurl, which is cleaned up exactly once. Belongs to one loop thread.
struct EasyHandle: ~Copyable {
  let raw: UnsafeMutableRawPointer

  init?() {
    guard CurlLibrary.shared.isUsable, let raw = curl_easy_init() else { return nil }
    self.raw = raw
  }

  deinit {
    curl_easy_cleanup(raw)
  }

  @discardableResult
  func set(_ option: CURLoption, _ value: Int) -> CURLcode {
    ccurl_set_long(raw, option, value)
  }

  @discardableResult
  func set(_ option: CURLoption, _ value: Bool) -> CURLcode {
    ccurl_set_long(raw, option, value ? 1 : 0)
  }

  /// libcurl copies the text.
  @discardableResult
  func set(_ option: CURLoption, _ value: String?) -> CURLcode {
    guard let value else { return ccurl_set_string(raw, option, nil) }
    return ccurl_set_string(raw, option, value)
  }
}
