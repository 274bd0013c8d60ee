import CCurl

/// Owns one easy handle of libcurl, which is cleaned up exactly once. Belongs to one loop thread.
struct EasyHandle: ~Copyable {
  /// The traces that earlier transfers may have left in a handle.
  struct History: OptionSet {
    let rawValue: UInt8
    /// The handle was used for a transfer.
    static let transfer = History(rawValue: 1)
    /// The handle has read a response of HTTP/2.
    static let http2 = History(rawValue: 2)
    /// The handle has given credentials to a proxy that is not its proxy now.
    static let otherProxy = History(rawValue: 4)
  }

  let raw: UnsafeMutableRawPointer
  var history: History = []

  init?() {
    guard CurlLibrary.shared.isUsable, let raw = curl_easy_init() else { return nil }
    self.raw = raw
  }

  /// A handle with the options of another one and nothing of its transfers. libcurl copies strings, and the addresses of
  /// lists and contexts; the share is not copied.
  init?(options other: borrowing EasyHandle) {
    guard let raw = curl_easy_duphandle(other.raw) else { return nil }
    self.raw = raw
  }

  deinit {
    curl_easy_cleanup(raw)
  }

  /// Gives the handle away without cleaning it up.
  consuming func release() -> UnsafeMutableRawPointer {
    let raw = raw
    discard self
    return raw
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

/// Handles that are not used again but not yet cleaned up. Belongs to one loop thread.
///
/// Connections of HTTP/2 in libcurl before 8.23 can touch the handle of an earlier stream (CVE-2026-92392, and three
/// defects fixed by 8.8.0). So a handle that carried HTTP/2 outlives the next 256 of its kind.
struct RetiredHandles: ~Copyable {
  private static let capacity = 256
  private var handles: [UnsafeMutableRawPointer] = []
  private var oldest = 0

  mutating func retire(_ handle: consuming EasyHandle) {
    let raw = handle.release()
    guard handles.count == Self.capacity else { return handles.append(raw) }
    curl_easy_cleanup(handles[oldest])
    handles[oldest] = raw
    oldest = (oldest + 1) % Self.capacity
  }

  /// Cleans all of them up.
  mutating func removeAll() {
    for raw in handles { curl_easy_cleanup(raw) }
    handles.removeAll()
    oldest = 0
  }

  deinit {
    for raw in handles { curl_easy_cleanup(raw) }
  }
}
