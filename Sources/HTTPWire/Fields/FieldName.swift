/// Comparison and form of field names (RFC 9110 §5.1).
package enum FieldName {
  /// Whether two names are the same without regard to ASCII case; allocates nothing.
  package static func equal(_ left: String, _ right: String) -> Bool {
    let left = left.utf8
    let right = right.utf8
    guard left.count == right.count else { return false }
    return zip(left, right).allSatisfy { lowercased($0) == lowercased($1) }
  }

  /// Whether a name is `other`, which has no capitals, without regard to ASCII case.
  static func equal(_ name: UnsafeRawBufferPointer, lowercase other: StaticString) -> Bool {
    guard other.utf8CodeUnitCount == name.count else { return false }
    for index in 0..<name.count where lowercased(name[index]) != other.utf8Start[index] { return false }
    return true
  }

  /// A byte with ASCII capitals made small.
  @inline(__always)
  package static func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
  }
}
