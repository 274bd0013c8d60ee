import Alamofire
import Foundation

/// Masks secrets in the header fields of a request.
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

  /// Masks the values of cookies; names, and the attributes that a server sets, are not secret.
  private static func maskedCookies(_ value: String, isResponse: Bool) -> String {
    let pairs = value.split(separator: ";", omittingEmptySubsequences: false)
    return pairs.enumerated().map { index, pair in
      guard let equals = pair.firstIndex(of: "="), !isResponse || index == 0 else { return String(pair) }
      return pair[...equals] + "****"
    }.joined(separator: ";")
  }
}
