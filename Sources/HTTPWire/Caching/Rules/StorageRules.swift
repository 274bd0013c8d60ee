/// Whether a private cache may store a response, and which fields of its head (RFC 9111 §3).
package enum StorageRules {
  /// Whether a response may be stored (RFC 9111 §3).
  ///
  /// - Parameters:
  ///   - method:  The method of the request that was answered.
  ///   - fields:  The fields of that request, as they were sent.
  ///   - head:    The head of the response.
  package static func mayStore(method: String, fields: [HTTPHeader], head: ResponseHead) -> Bool {
    guard method == "GET", head.status >= 200, head.status != 304 else { return false }
    // A server that does not support ranges responds with the complete body, or with any other part.
    let isStorable = fields.contains("Range") ? PartialContent.isStorable(head) : head.status != 206
    guard isStorable else { return false }
    guard !CacheControl(fields.joinedValue(of: "Cache-Control")).noStore else { return false }
    let control = CacheControl(head)
    if control.mustUnderstand {
      guard isUnderstood(head.status) else { return false }
    } else if control.noStore {
      return false
    }
    if head.block.value(of: "Vary")?.contains("*") == true { return false }
    if control.maxAge != nil || control.isPublic || control.isPrivate { return true }
    return head.block.contains("Expires") || head.status == 206 || isHeuristicallyCacheable(head.status)
  }

  /// Whether RFC 9110 §15.1 defines a status as cacheable without more being said.
  package static func isHeuristicallyCacheable(_ status: Int) -> Bool {
    switch status {
    case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
  }

  /// Whether the meaning of a status for caches is known here (RFC 9110 §15), for `must-understand`.
  private static func isUnderstood(_ status: Int) -> Bool {
    switch status {
    case 206, 302, 303, 307: true
    default: isHeuristicallyCacheable(status)
    }
  }

  /// Returns a head without the fields that belong to a connection (RFC 9111 §3.1), and with a date (RFC 9110
  /// §6.6.1).
  package static func stored(_ head: ResponseHead, at responseTime: Int64) -> ResponseHead {
    let named = Set(Selection.names(in: head.block.value(of: "Connection") ?? ""))
    var fields = head.block.fields.filter { field in
      let name = field.name.lowercased()
      return !connectionFields.contains(name) && !named.contains(name)
    }
    if !fields.contains("Date") {
      fields.append(HTTPHeader(name: "Date", value: HTTPDate(secondsSince1970: responseTime).text))
    }
    return ResponseHead(status: head.status, version: head.version, fields: fields)
  }

  static let connectionFields: Set<String> = [
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
  ]
}

/// The stored responses that a response to an unsafe request invalidates (RFC 9111 §4.4).
package enum Invalidation {
  /// Whether a method only reads (RFC 9110 §9.2.1). An unknown method is unsafe.
  package static func isSafe(_ method: String) -> Bool {
    switch method {
    case "GET", "HEAD", "OPTIONS", "TRACE": true
    default: false
    }
  }

  /// Returns the keys whose stored responses an unsafe request invalidates: the target, and `Location` and
  /// `Content-Location` of the same origin. None after an error status.
  package static func keys(method: String, url: String, origin: Origin, head: ResponseHead) -> [CacheKey] {
    guard !isSafe(method), (200..<400).contains(head.status) else { return [] }
    let named = [head.block.value(of: "Location"), head.block.value(of: "Content-Location")]
    let others = named.compactMap { reference -> CacheKey? in
      guard let reference, let target = WireTarget(URIReference.resolve(reference, against: url)),
        target.origin == origin
      else { return nil }
      return CacheKey(target.url, target.origin)
    }
    return [CacheKey(url, origin)] + others
  }
}

extension WireRequest {
  /// Whether its method only reads.
  package var isSafe: Bool { Invalidation.isSafe(parts.method) }
}
