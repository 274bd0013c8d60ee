/// The value of a field `Content-Range` (RFC 9110 §14.4): the position of a part in the whole representation.
///
/// A value that contradicts itself is refused, because the bytes of the part would be put in the wrong place.
///
/// ```swift
/// let range = ContentRange("bytes 100-199/1000")
/// ```
///
/// Its ``bounds`` are `100..<200`, and its ``total`` is 1000.
public struct ContentRange: Sendable, Equatable {
  /// The bytes of the part, counted from 0 and never empty. `nil` if the range that was requested could not be
  /// satisfied, as a response with the status 416 says it: `bytes */1000`.
  public let bounds: Range<Int64>?
  /// The number of bytes of the whole representation. `nil` if the server does not know it: `bytes 100-199/*`.
  public let total: Int64?

  /// Parses the value of a field. Returns `nil` for another unit than bytes, for several ranges, for anything but
  /// decimal digits, for a range that ends before it begins, and for one that exceeds the total or the largest `Int64`.
  public init?(_ value: String) {
    let bytes = Array(value.utf8.prefix(Self.longestValue + 1))
    guard bytes.count <= Self.longestValue, bytes.count > 6,
      FieldName.equal(String(value.prefix(6)), "bytes ")
    else { return nil }
    let parts = bytes[6...].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let total = Self.number(parts[1])
    guard total != nil || parts[1].elementsEqual("*".utf8) else { return nil }
    self.total = total
    if parts[0].elementsEqual("*".utf8) {
      guard total != nil else { return nil }
      bounds = nil
      return
    }
    let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    // The largest number leaves no room for the end of a range.
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
      last < total ?? .max
    else { return nil }
    bounds = first..<(last + 1)
  }

  /// The largest numbers take 65 bytes.
  private static let longestValue = 80

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(String(decoding: digits, as: UTF8.self))
  }
}

extension ContentRange {
  /// Reads the field of a response; `nil` without one, and for a field that comes twice.
  package init?(_ head: ResponseHead) {
    guard let value = head.block.value(of: "Content-Range") else { return nil }
    self.init(value)
  }
}
