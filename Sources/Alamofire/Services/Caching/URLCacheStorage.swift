import Foundation
import FoundationNetworking
import HTTPSystem
package import HTTPWire

/// A `URLCache` other than ``HTTPCache``: Foundation's or a subclass. Its key is incomplete, so that each response is
/// stored with a note of its URL. A response of another URL is ignored; one without the note is used only for the URL
/// that it names. One variant of each URL is stored.
package final class URLCacheStorage: ResponseStore {
  private static let note = "org.alamofire.response"

  let cache: URLCache
  /// The removals by sessions, for any thread. Those by the user's code cannot be observed.
  private let removals = Mutex(RemovalLog())

  init(cache: URLCache) { self.cache = cache }

  package var now: Int64 { Int64(Date().timeIntervalSince1970) }
  package var waits: Bool { true }

  /// Returns whether the cache may have a response. Without a disk capacity, a usage of 0 means that the cache is
  /// empty.
  package func mayHold(_ hash: @autoclosure () -> UInt64) -> Bool {
    cache.diskCapacity > 0 || cache.currentMemoryUsage > 0
  }

  package func find(_ key: CacheKey) -> [StoredResponse]? { nil }

  package func read(_ key: CacheKey, choosing choose: ([StoredResponse]) -> StoredResponse?)
    -> [StoredResponse]
  {
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
      let url = response.url, url == Self.url(of: key) || CacheKey(url.absoluteString) == key,
      let head = ResponseHead(storable: response)
    else { return [] }
    let date = head.block.value(of: "Date").flatMap { HTTPDate($0, now: HTTPDate(secondsSince1970: now)) }
    let time = date?.secondsSince1970 ?? 0
    return [
      StoredResponse(
        key: key, head: head, body: cached.data,
        selection: Selection(head, CacheControl(head), request: FieldDigests(of: [])),
        requestTime: time, responseTime: time)
    ]
  }

  package var removalCount: UInt64 { removals.withLock { $0.count } }

  // One response of each URL is stored, so that an update always replaces it.
  package func put(_ stored: StoredResponse, replacing _: StoredResponse?, askedAfter count: UInt64) {
    guard !isOvertaken(stored.key, since: count) else { return }
    store(stored)
    // A removal may have come in between.
    if isOvertaken(stored.key, since: count) { remove(stored.key) }
  }

  private func isOvertaken(_ key: CacheKey, since count: UInt64) -> Bool {
    removals.withLock { $0.concerns(key.hash, after: count) }
  }

  private func store(_ stored: StoredResponse) {
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

  // Only a removal tells whether there is one.
  package func noteRemoval(of hash: UInt64) -> Bool { false }

  // Responses of single sessions are not stored there, so the other partitions are empty.
  package func remove(_ key: CacheKey, inAllPartitions _: Bool) {
    removals.withLock { $0.note(key.hash) }
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

extension StoredResponse {
  /// Converts a response that a program stores for a request it made; `nil` if it is not an HTTP response or must not
  /// be stored.
  convenience init?(_ cached: CachedURLResponse, for request: URLRequest, now: Int64) {
    guard let url = request.url?.absoluteString, let key = CacheKey(url) else { return nil }
    self.init(
      cached, key: key,
      fields: (request.allHTTPHeaderFields ?? [:]).map { HTTPHeader(name: $0.key, value: $0.value) },
      head: nil, requestTime: now, responseTime: now)
  }

  /// Makes a stored response; `nil` if it must not be stored, or has no head.
  ///
  /// - Parameters:
  ///   - fields: The fields of the request, as they were sent.
  ///   - head:   The head as received, unless `cached` has another one.
  convenience init?(
    _ cached: CachedURLResponse, key: CacheKey, fields: [HTTPHeader], head: ResponseHead?,
    requestTime: Int64, responseTime: Int64, staysInMemory: Bool = false
  ) {
    guard cached.storagePolicy != .notAllowed,
      let head = head ?? (cached.response as? HTTPURLResponse).flatMap({ ResponseHead(storable: $0) }),
      Selection.isShort(for: head)
    else { return nil }
    self.init(
      key: key, fields: FieldDigests(of: fields), head: head, body: cached.data, requestTime: requestTime,
      responseTime: responseTime, attachment: Self.attachment(of: cached.userInfo),
      staysInMemory: staysInMemory || cached.storagePolicy == .allowedInMemoryOnly)
  }

  /// Returns the response in Foundation's type.
  func cached(url: URL) -> CachedURLResponse? {
    guard let response = LazyResponse(url: url, head: head).value else { return nil }
    return CachedURLResponse(
      response: response, data: body, userInfo: userInfo,
      storagePolicy: staysInMemory ? .allowedInMemoryOnly : .allowed)
  }

  /// The values that a program attached; `nil` without any.
  var userInfo: [AnyHashable: Any]? {
    guard !attachment.isEmpty else { return nil }
    return try? PropertyListSerialization.propertyList(from: attachment, format: nil) as? [String: Any]
  }

  /// Encodes a program's `userInfo`: its property list values with string keys.
  private static func attachment(of info: [AnyHashable: Any]?) -> Data {
    var kept: [String: Any] = [:]
    for case (let name as String, let value) in info ?? [:]
    where PropertyListSerialization.propertyList([name: value], isValidFor: .binary) {
      kept[name] = value
    }
    guard !kept.isEmpty else { return Data() }
    return (try? PropertyListSerialization.data(fromPropertyList: kept, format: .binary, options: 0))
      ?? Data()
  }
}

extension ResponseHead {
  /// Makes the head of a response that is an object already; `nil` for a status that no server can send (RFC 9110
  /// §15), which a program can give to its own responses.
  init?(storable response: HTTPURLResponse) {
    guard (100..<1000).contains(response.statusCode) else { return nil }
    let fields = response.allHeaderFields.compactMap { name, value -> HTTPHeader? in
      guard let name = name as? String, let value = value as? String else { return nil }
      return HTTPHeader(name: name, value: value)
    }
    self.init(status: response.statusCode, fields: fields.sorted { $0.name < $1.name })
  }
}
