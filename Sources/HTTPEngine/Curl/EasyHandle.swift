import CCurl
import HTTPWire

/// Owns one easy handle of libcurl, which is cleaned up exactly once. Belongs to one loop's thread.
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

  /// Makes a handle with the options of another one and nothing of its transfers. libcurl copies strings, and the
  /// addresses of lists and contexts; the share is not copied.
  init?(options other: borrowing EasyHandle) {
    guard let raw = curl_easy_duphandle(other.raw) else { return nil }
    self.raw = raw
  }

  deinit {
    curl_easy_cleanup(raw)
  }

  /// Releases the handle without cleaning it up.
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

  /// Sets a text, which libcurl copies.
  @discardableResult
  func set(_ option: CURLoption, _ value: String?) -> CURLcode {
    guard let value else { return ccurl_set_string(raw, option, nil) }
    return ccurl_set_string(raw, option, value)
  }
}

/// Handles that are not used again but not yet cleaned up. Belongs to one loop's thread.
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

/// The TLS sessions of one loop. libcurl before 8.12 keeps them with each easy handle, so a new handle would never
/// resume one. Belongs to one loop's thread, so that it needs no lock.
struct SessionShare: ~Copyable {
  private let raw: OpaquePointer?

  /// Makes a share if libcurl needs one. Without a share, no TLS session is resumed.
  init() {
    guard CurlLibrary.shared.keepsSessionsWithHandles, let raw = ccurl_make_session_share() else {
      self.raw = nil
      return
    }
    self.raw = OpaquePointer(raw)
  }

  func join(_ handle: borrowing EasyHandle) {
    guard let raw else { return }
    ccurl_set_pointer(handle.raw, CURLOPT_SHARE, UnsafeRawPointer(raw))
  }

  /// Frees the sessions. No handle may use the share any more.
  deinit {
    if let raw { curl_share_cleanup(UnsafeMutableRawPointer(raw)) }
  }
}

/// A list of lines in libcurl's form, freed exactly once.
struct HeaderList: ~Copyable {
  private(set) var head: UnsafeMutablePointer<curl_slist>?
  /// The last line. libcurl would search for it from the first one.
  private var last: UnsafeMutablePointer<curl_slist>?
  /// Whether every line could be stored.
  private(set) var isComplete = true

  init() {}

  init(lines: [String]) {
    for line in lines { append(line) }
  }

  /// Makes the lines of `fields` in their order. Fields that libcurl would add by itself are switched off.
  init(fields: [HTTPHeader], hasBody: Bool, isChunked: Bool = false) {
    var given = Given()
    var line = ""
    for field in fields {
      given.note(field)
      // A field that libcurl adds by itself costs less than a line of the list.
      if field.name == "Accept", field.value == "*/*" { continue }
      if Self.joins(field, after: line) {
        line += "\r\n\(field.name): \(field.value)"
        continue
      }
      append(line)
      // libcurl sends a field without a value only when it is written with a semicolon.
      line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
    }
    append(line)
    if !given.accept { append("Accept:") }
    if hasBody && !given.contentType { append("Content-Type:") }
    // libcurl omits this field over HTTP/2, which has its own framing.
    if isChunked { append("Transfer-Encoding: chunked") }
    if hasBody && !given.expect { append("Expect:") }
  }

  /// The fields of the request that libcurl would otherwise add.
  private struct Given {
    var accept = false
    var contentType = false
    var expect = false

    mutating func note(_ field: HTTPHeader) {
      switch field.name.utf8.count {
      case 6:
        accept = accept || FieldName.equal(field.name, "Accept")
        expect = expect || FieldName.equal(field.name, "Expect")
      case 12: contentType = contentType || FieldName.equal(field.name, "Content-Type")
      default: break
      }
    }
  }

  /// Whether a field is appended to the line before it. For every request libcurl compares each of some twenty names
  /// with the beginning of each line. libcurl never looks for these two names. The two fields follow a third one,
  /// which is always sent, in one line.
  private static func joins(_ field: HTTPHeader, after line: String) -> Bool {
    (field.name == "Accept-Language" || field.name == "User-Agent") && !field.value.isEmpty
      && line.hasPrefix("Accept-Encoding: ")
  }

  private mutating func append(_ line: String) {
    guard !line.isEmpty else { return }
    guard let longer = curl_slist_append(last, line) else {
      isComplete = false
      return
    }
    last = longer.pointee.next ?? longer
    head = head ?? longer
  }

  deinit {
    curl_slist_free_all(head)
  }
}

/// A URL in the form of libcurl's parser. libcurl reads the parts for each request; given a text, it would parse and
/// serialize it each time. Belongs to one transfer.
final class ParsedURL {
  let raw: OpaquePointer

  init?() {
    guard let raw = curl_url() else { return nil }
    self.raw = raw
  }

  deinit { curl_url_cleanup(raw) }

  /// Parses another URL. Returns false if libcurl cannot parse it. Then the parts have no meaning.
  func parse(_ url: String) -> Bool {
    curl_url_set(raw, CURLUPART_URL, url, UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_PATH_AS_IS)) == CURLUE_OK
  }
}
