public import Foundation

extension CharacterSet {
  /// The characters that stand for themselves in the names and values of a query: letters and digits of
  /// ASCII and `- . _ ~ / ?`.
  ///
  /// That is Foundation's `urlQueryAllowed` without the delimiters of RFC 3986 §2.2, of which §3.4 lets
  /// `/` and `?` stand in a query.
  public static let afURLQueryAllowed = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/?")
}
