import Foundation
import FoundationNetworking
package import HTTPWire

/// A `URLCache` other than ``HTTPCache``: Foundation's or a subclass. Its key is incomplete, so that each response is
/// stored with a note of its URL. A response of another URL is ignored; one without the note is used only for the URL
/// that it names. One variant of each URL is kept.
package final class URLCacheStorage: ResponseStore {
  private static let note = "org.alamofire.response"

  let cache: URLCache

  init(cache: URLCache) { self.cache = cache }

  package var now: Int64 { Int64(Date().timeIntervalSince1970) }
  package var waits: Bool { true }

  /// Returns whether the cache may have a response. Without a disk capacity, a usage of 0 means that the cache is
  /// empty.
  package func mayHold(_ hash: @autoclosure () -> UInt64) -> Bool {
    cache.diskCapacity > 0 || cache.currentMemoryUsage > 0
  }

  package func find(_ key: CacheKey) -> [StoredResponse]? { nil }

  package func read(_ key: CacheKey) -> [StoredResponse] {
    guard let request = Self.request(for: key), let cached = cache.cachedResponse(for: request) else {
      return []
    }
    if let note = cached.userInfo?[Self.note] as? Data {
      guard let stored = StoredResponse(encodedHead: note, body: cached.data), stored.key == key else {
        return []
      }
      return [stored]
    }
    // Stored by other code: the response holds its URL, and the `Date` field is the only evidence of its age.
    guard let response = cached.response as? HTTPURLResponse,
      let url = response.url, url == Self.url(of: key) || CacheKey(url.absoluteString) == key
    else { return [] }
    let head = ResponseHead(response)
    let date = head.block.value(of: "Date").flatMap { HTTPDate($0, now: HTTPDate(secondsSince1970: now)) }
    let time = date?.secondsSince1970 ?? 0
    return [
      StoredResponse(
        key: key, head: head, body: cached.data,
        selection: Selection(head, CacheControl(head), request: FieldDigests(of: [])),
        requestTime: time, responseTime: time)
    ]
  }

  /// Always 0, because removals by the user's code cannot be observed.
  package var removalCount: UInt64 { 0 }

  package func put(_ stored: StoredResponse, askedAfter removals: UInt64) {
    // A program that reads its cache does not expect parts there.
    guard stored.head.status != 206, let request = Self.request(for: stored.key), let url = request.url,
      let response = LazyResponse(url: Self.url(of: stored.key) ?? url, head: stored.head).value
    else { return }
    var info = stored.userInfo ?? [:]
    info[Self.note] = stored.encodedHead
    cache.storeCachedResponse(
      CachedURLResponse(
        response: response, data: stored.body, userInfo: info,
        storagePolicy: stored.staysInMemory ? .allowedInMemoryOnly : .allowed),
      for: request)
  }

  package func remove(_ key: CacheKey) {
    if let request = Self.request(for: key) { cache.removeCachedResponse(for: request) }
  }

  /// Returns the URL of a key without a default port, as programs write it.
  ///
  /// `nil` for the key of a single session, because other code would find the response.
  private static func url(of key: CacheKey) -> URL? {
    guard key.url.hasPrefix("http") else { return nil }
    var text = key.url
    for (scheme, port) in [("http://", ":80"), ("https://", ":443")] where text.hasPrefix(scheme) {
      let authority = text.dropFirst(scheme.utf8.count).prefix { $0 != "/" }
      if authority.hasSuffix(port) {
        let start = text.index(authority.endIndex, offsetBy: -port.utf8.count)
        text.removeSubrange(start..<authority.endIndex)
      }
    }
    return URL(wire: text)
  }

  /// Returns the request under which Foundation stores the response. The query becomes a part of the path, because
  /// Foundation would ignore it.
  static func request(for key: CacheKey) -> URLRequest? {
    guard let url = url(of: key) else { return nil }
    let text = url.absoluteString
    guard let mark = text.firstIndex(of: "?") else { return URLRequest(url: url) }
    let path = text[..<mark]
    let query = text[text.index(after: mark)...].replacing("?", with: "%3F")
    return URL(wire: "\(path)%3F\(query)").map { URLRequest(url: $0) }
  }
}
