import Foundation
import FoundationNetworking
import HTTPWire

extension StoredResponse {
  /// Converts a response that a program stores for a request it made; `nil` if it is no HTTP response or must not be
  /// stored.
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
  ///   - head:   The head as it came, where `cached` has not got another one.
  convenience init?(
    _ cached: CachedURLResponse, key: CacheKey, fields: [HTTPHeader], head: ResponseHead?,
    requestTime: Int64, responseTime: Int64, staysInMemory: Bool = false
  ) {
    guard cached.storagePolicy != .notAllowed,
      let head = head ?? (cached.response as? HTTPURLResponse).map({ ResponseHead($0) })
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
  /// Makes the head of a response that is an object already.
  init(_ response: HTTPURLResponse) {
    let fields = response.allHeaderFields.compactMap { name, value -> HTTPHeader? in
      guard let name = name as? String, let value = value as? String else { return nil }
      return HTTPHeader(name: name, value: value)
    }
    self.init(status: response.statusCode, fields: fields.sorted { $0.name < $1.name })
  }
}
