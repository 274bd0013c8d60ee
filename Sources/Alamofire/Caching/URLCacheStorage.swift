import Foundation
import FoundationNetworking
package import HTTPWire

/// A `URLCache` of a user that is none of ours, Foundation's or a subclass. What it says is not believed: with each
/// response goes a note of what it is, and one that is of another URL, or without that note, is used for that very
/// URL alone. One variant of each URL is kept.
package final class URLCacheStorage: ResponseStore {
  private static let note = "org.alamofire.response"

  let cache: URLCache

  init(cache: URLCache) { self.cache = cache }

  package var now: Int64 { Int64(Date().timeIntervalSince1970) }
  package var waits: Bool { true }

  /// One that keeps nothing on a disk knows by its usage that it is empty.
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
      let url = response.url?.absoluteString, CacheKey(url) == key
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

  /// Its own removals are not counted: those that a user makes are not heard of either.
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

  /// Without the port that everybody knows, as programs write URLs.
  ///
  /// `nil` for what is for one session alone: others would find it.
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
    return URL(string: text)
  }

  /// Under what Foundation keeps it: the query, which it would forget, becomes a part of the path.
  static func request(for key: CacheKey) -> URLRequest? {
    guard let url = url(of: key) else { return nil }
    let text = url.absoluteString
    guard let mark = text.firstIndex(of: "?") else { return URLRequest(url: url) }
    let path = text[..<mark]
    let query = text[text.index(after: mark)...].replacing("?", with: "%3F")
    return URL(string: "\(path)%3F\(query)").map { URLRequest(url: $0) }
  }
}
