/// Work on texts from outside by their scalars.
///
/// A `Character` may be hundreds of bytes, and hides the scalars that it joins: a quotation mark with a combining mark
/// after it is not equal to a quotation mark. Shells, file systems and browsers know bytes only.
package enum ScalarText {
  /// Returns the text with other texts in place of some scalars. `replacement` returns `nil` for a scalar that stays.
  package static func replacing(
    in text: String, by replacement: (Unicode.Scalar) -> String?
  ) -> String {
    var result = String.UnicodeScalarView()
    result.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      if let other = replacement(scalar) {
        result.append(contentsOf: other.unicodeScalars)
      } else {
        result.append(scalar)
      }
    }
    return String(result)
  }

  /// Returns the longest beginning that has at most `count` bytes.
  package static func beginning(of text: Substring, bytes count: Int) -> Substring {
    var room = count
    let end = text.unicodeScalars.firstIndex { scalar in
      room -= UTF8.width(scalar)
      return room < 0
    }
    return text[..<(end ?? text.endIndex)]
  }
}

/// A text as a part of a key, such as a path. Only a text with the same UTF-8 is equal to it.
///
/// The hash of the text serves as its hash, because texts with the same UTF-8 have the same hash.
package struct ByteText: Sendable, Hashable, ExpressibleByStringLiteral {
  package let text: String

  package init(_ text: String) { self.text = text }
  package init(stringLiteral text: String) { self.text = text }

  package static func == (left: ByteText, right: ByteText) -> Bool { left.text.hasBytes(of: right.text) }
}

extension String {
  /// Whether both texts have the same UTF-8. Texts are equal to Swift when they look the same; to a server their bytes
  /// count.
  package func hasBytes(of other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    let isEqual = utf8.withContiguousStorageIfAvailable { left in
      other.utf8.withContiguousStorageIfAvailable { right in
        // Copies of a long text share their storage, and need not be read.
        left.baseAddress == right.baseAddress || left.elementsEqual(right)
      }
    }
    return (isEqual ?? nil) ?? utf8.elementsEqual(other.utf8)
  }
}

extension String? {
  /// Whether both texts have the same UTF-8, or neither exists.
  package func hasBytes(of other: String?) -> Bool {
    guard let self, let other else { return self == nil && other == nil }
    return self.hasBytes(of: other)
  }
}

/// Numbers of decimal digits alone, as the grammars of HTTP have them. Swift's initializers also accept signs.
enum DecimalNumber {
  /// Returns a number; `nil` for any other text, and for a number that is too large.
  static func whole(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int64(text)
  }

  /// Returns a port, from 1 to 65535; `nil` for any other text.
  static func port(_ text: some StringProtocol) -> Int? {
    whole(text).flatMap { (1...65_535).contains($0) ? Int($0) : nil }
  }
}
