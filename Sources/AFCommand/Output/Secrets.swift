import Foundation

/// Masks secrets in the header fields of a request.
package enum Secrets {
  private static let names: Set = ["authorization", "proxy-authorization", "cookie", "set-cookie"]
  private static let marks = ["token", "api-key", "apikey", "secret", "password"]

  /// Returns the value with its secrets masked. The scheme of an `Authorization` field stays visible.
  package static func masked(name: String, value: String) -> String {
    let name = name.lowercased()
    guard names.contains(name) || marks.contains(where: name.contains) else { return value }
    if name.hasSuffix("authorization"), let scheme = value.split(separator: " ").first,
      scheme.count < value.count
    {
      return "\(scheme) ****"
    }
    if name.hasSuffix("cookie") { return maskedCookies(value, isResponse: name.hasPrefix("set")) }
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
