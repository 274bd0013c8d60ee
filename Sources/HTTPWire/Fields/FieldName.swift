/// Comparison and form of field names (RFC 9110 §5.1).
package enum FieldName {
  /// Whether two names are the same without regard to ASCII case; allocates nothing.
  package static func equal(_ left: String, _ right: String) -> Bool {
    let left = left.utf8
    let right = right.utf8
    guard left.count == right.count else { return false }
    return zip(left, right).allSatisfy { lowercased($0) == lowercased($1) }
  }

  /// A byte with ASCII capitals made small.
  @inline(__always)
  package static func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
  }
}
