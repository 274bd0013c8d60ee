import Foundation
package import FoundationNetworking
package import HTTPWire

extension HTTPMethod {
  /// Whether parameters go into the query of a request with this method by default.
  package var placesParametersInQuery: Bool {
    self == .get || self == .head || self == .delete
  }
}

// The request must have a URL: Foundation on Linux traps when a copy of one without is changed.
extension URLRequest {
  /// Sets the content type, unless there is one already.
  package mutating func setContentTypeIfAbsent(_ type: String) {
    var fields = allHTTPHeaderFields ?? [:]
    guard !fields.keys.contains(where: { FieldName.equal($0, "Content-Type") }) else { return }
    fields["Content-Type"] = type
    allHTTPHeaderFields = fields
  }

  /// Makes a form (WHATWG URL §5) the body.
  package mutating func setFormBody(_ form: String) {
    setContentTypeIfAbsent("application/x-www-form-urlencoded; charset=utf-8")
    httpBody = Data(form.utf8)
  }
}

extension URL {
  /// Returns this URL with a percent-encoded text added to its query; `nil` if the URL cannot be parsed.
  ///
  /// Characters that are invalid in a query are encoded first, because Foundation traps on them.
  package func appending(toQuery text: String) -> URL? {
    guard !text.isEmpty else { return self }
    guard var components = URLComponents(url: self, resolvingAgainstBaseURL: false) else { return nil }
    let addition = PercentEncoding.query.repair(text)
    if let query = components.percentEncodedQuery, !query.isEmpty {
      components.percentEncodedQuery = "\(query)&\(addition)"
    } else {
      components.percentEncodedQuery = addition
    }
    return components.url
  }
}
