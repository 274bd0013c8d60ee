import Alamofire
import Foundation

/// Masks secrets in the header fields and the body of a request.
package enum Secrets {
  /// Returns the value with its secrets masked. The scheme of an `Authorization` field stays visible.
  package static func masked(name: String, value: String) -> String {
    guard Redaction.standard.isSecret(headerField: name) else {
      return Redaction.standard.value(value, ofHeaderField: name)
    }
    let name = name.lowercased()
    if name.hasSuffix("authorization"), let scheme = value.split(separator: " ").first,
      scheme.count < value.count
    {
      return "\(scheme) ****"
    }
    if name == "cookie" || name == "set-cookie" {
      return maskedCookies(value, isResponse: name.hasPrefix("set"))
    }
    return "****"
  }

  /// Returns the body with its secrets masked. A body that is not text is not shown, and is returned as it is.
  static func masked(body: Data, contentType: String?) -> Data {
    guard let text = String(validating: body, as: UTF8.self) else { return body }
    return Data(Redaction.standard.body(text, contentType: contentType).utf8)
  }

  /// Masks the values of cookies; names, and the attributes that a server sets, are not secret.
  private static func maskedCookies(_ value: String, isResponse: Bool) -> String {
    let pairs = value.split(separator: ";", omittingEmptySubsequences: false)
    return pairs.enumerated().map { index, pair in
      guard let equals = pair.firstIndex(of: "="), !isResponse || index == 0 else { return String(pair) }
      return pair[...equals] + "****"
    }.joined(separator: ";")
  }
}
