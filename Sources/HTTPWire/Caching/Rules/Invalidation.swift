/// What a response to a request that may change something makes invalid (RFC 9111 §4.4).
package enum Invalidation {
  /// Whether a method only reads (RFC 9110 §9.2.1). One that nobody knows may do anything.
  package static func isSafe(_ method: String) -> Bool {
    switch method {
    case "GET", "HEAD", "OPTIONS", "TRACE": true
    default: false
    }
  }

  /// The URLs under which nothing stored may be used any more: the target, and what `Location` and
  /// `Content-Location` name, as far as it is of the same origin. None after an error, which changed nothing.
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
