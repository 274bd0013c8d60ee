import Foundation
import HTTPWire

extension URLEncoding {
  /// Returns the percent-encoded pairs that a value becomes.
  ///
  /// ```swift
  /// let pairs = URLEncoding().queryComponents(fromKey: "a", value: ["x": 1])  // [("a%5Bx%5D", "1")]
  /// ```
  ///
  /// - Parameters:
  ///   - key:   The name, not yet encoded.
  ///   - value: The value; a dictionary becomes a pair for each entry, an array one for each item.
  public func queryComponents(fromKey key: String, value: Any) -> [(String, String)] {
    var pairs: [(String, String)] = []
    append(value, key: key, to: &pairs)
    return pairs
  }

  /// Percent-encodes a text (RFC 3986 §2.1), but for the characters of
  /// `CharacterSet.afURLQueryAllowed`.
  public func escape(_ string: String) -> String {
    PercentEncoding.queryComponent.encode(string)
  }

  /// Returns all pairs in the order of their names, joined.
  func query(_ parameters: Parameters) -> String {
    var pairs: [(String, String)] = []
    for key in parameters.keys.sorted() {
      if let value = parameters[key] { append(value, key: key, to: &pairs) }
    }
    return pairs.map { "\($0)=\($1)" }.joined(separator: "&")
  }

  private func append(_ value: Any, key: String, to pairs: inout [(String, String)]) {
    if let text = value as? String {
      pairs.append((escape(key), escape(text)))
    } else if let dictionary = value as? [String: Any] {
      for (subkey, value) in dictionary.sorted(by: { $0.key < $1.key }) {
        append(value, key: "\(key)[\(subkey)]", to: &pairs)
      }
    } else if let array = value as? [Any] {
      for (index, value) in array.enumerated() {
        append(value, key: arrayEncoding.encode(key: key, atIndex: index), to: &pairs)
      }
    } else {
      pairs.append((escape(key), escape(text(of: value))))
    }
  }

  private func text(of value: Any) -> String {
    // Compares exact types first, because a cast of a number to Bool or to Int succeeds as well.
    if type(of: value) == Int.self { return "\(value)" }
    if type(of: value) == Bool.self, let bool = value as? Bool { return boolEncoding.encode(bool) }
    guard let number = value as? NSNumber else { return "\(value)" }
    return text(of: number)
  }

  /// Returns the text of a number. Linux and Apple's systems print numbers differently (`1.0` and `1`); requests must
  /// not depend on that.
  private func text(of number: NSNumber) -> String {
    guard !(number is NSDecimalNumber) else { return "\(number)" }
    // On Linux only bools have this type: an Int8 has that of a wider integer.
    switch UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "c"), UInt8(ascii: "B"): return boolEncoding.encode(number.boolValue)
    case UInt8(ascii: "d"): return withoutEmptyFraction("\(number.doubleValue)")
    case UInt8(ascii: "f"): return withoutEmptyFraction("\(number.floatValue)")
    default: return number.stringValue
    }
  }

  private func withoutEmptyFraction(_ text: String) -> String {
    text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
