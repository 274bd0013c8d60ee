/// Whether a private cache may store a response (RFC 9111 §3).
package enum StorageRules {
  /// - Parameters:
  ///   - method:  The method of the request that was answered.
  ///   - fields:  The fields of that request, as they were sent.
  ///   - head:    The head of the response.
  package static func mayStore(method: String, fields: [HTTPHeader], head: ResponseHead) -> Bool {
    guard method == "GET", head.status >= 200, head.status != 206, head.status != 304 else { return false }
    let asked = fields.filter { FieldName.equal($0.name, "Cache-Control") }.flatMap { directives($0.value) }
    guard !asked.contains("no-store"), !fields.contains(where: { FieldName.equal($0.name, "Range") }) else {
      return false
    }
    let control = head.block.value(of: "Cache-Control").map { directives($0) } ?? []
    guard !control.contains("no-store"), head.block.value(of: "Vary")?.contains("*") != true else {
      return false
    }
    if control.contains("max-age") || control.contains("public") || control.contains("private") {
      return true
    }
    return head.block.contains("Expires") || isHeuristicallyCacheable(head.status)
  }

  /// The statuses that RFC 9110 §15.1 defines as cacheable without more being said.
  private static func isHeuristicallyCacheable(_ status: Int) -> Bool {
    switch status {
    case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
  }

  /// The names of the directives, lower case (RFC 9111 §5.2); their arguments do not matter here.
  private static func directives(_ value: String) -> [String] {
    value.split(separator: ",").map { part in
      let name = part.prefix { $0 != "=" }
      return name.filter { $0 != " " && $0 != "\t" }.lowercased()
    }
  }
}
