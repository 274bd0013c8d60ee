/// The framing of a response body, as the fields of its head declare it (RFC 9112 §6).
package struct MessageFraming: Sendable, Equatable {
  package private(set) var contentLength: Int64?
  package private(set) var isChunked = false
  /// Whether the obsolete coding `identity` was named, which means no coding.
  package private(set) var isIdentity = false

  package init() {}

  /// Whether other readers could find another end of the body (RFC 9112 §6.1, §6.3). The connection is then closed
  /// behind the response.
  package func isAmbiguous(_ version: HTTPVersion) -> Bool {
    guard isChunked || isIdentity else { return false }
    return contentLength != nil || isIdentity || version == .http1_0
  }

  /// Takes one field into account. Returns whether it declares the framing.
  mutating func note(
    _ field: FieldLineRules.Field, _ version: HTTPVersion
  ) throws(HeadViolation) -> Bool {
    switch field.name.count {
    case 14 where field.isNamed("content-length"):
      try noteLength(field.value)
    case 17 where field.isNamed("transfer-encoding"):
      guard version == .http1_0 || version == .http1_1 else { throw .transferCodingInHTTP2 }
      try noteCodings(field.value)
    default: return false
    }
    return true
  }

  /// A number, or a list of the same number (RFC 9110 §8.6).
  private mutating func noteLength(_ value: UnsafeRawBufferPointer) throws(HeadViolation) {
    // Splitting a value into parts allocates memory.
    if let length = Self.number(value) { return try note(length) }
    for part in value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      let digits = FieldLineRules.trimmed(UnsafeRawBufferPointer(rebasing: part))
      guard let length = Self.number(digits) else { throw .contentLength }
      try note(length)
    }
  }

  private mutating func note(_ length: Int64) throws(HeadViolation) {
    guard contentLength == nil || contentLength == length else { throw .contradictingContentLengths }
    contentLength = length
  }

  private static func number(_ digits: UnsafeRawBufferPointer) -> Int64? {
    guard !digits.isEmpty else { return nil }
    var number: Int64 = 0
    for byte in digits {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      let (tenfold, isTooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, isAboveLimit) = tenfold.addingReportingOverflow(Int64(byte - 0x30))
      guard !isTooLarge, !isAboveLimit else { return nil }
      number = sum
    }
    return number
  }

  /// Only `chunked`, once: no request asks for another coding (RFC 9112 §7.4).
  private mutating func noteCodings(_ value: UnsafeRawBufferPointer) throws(HeadViolation) {
    var isNamed = false
    for part in value.split(separator: UInt8(ascii: ",")) {
      let coding = FieldLineRules.trimmed(UnsafeRawBufferPointer(rebasing: part))
      if coding.isEmpty { continue }
      isNamed = true
      guard !isChunked, !isIdentity else { throw .transferCoding(FieldLineRules.text(coding)) }
      let name = coding.lazy.map(FieldName.lowercased)
      if name.elementsEqual("chunked".utf8) {
        isChunked = true
      } else if name.elementsEqual("identity".utf8) {
        isIdentity = true
      } else {
        throw .transferCoding(FieldLineRules.text(coding))
      }
    }
    guard isNamed else { throw .transferCoding("") }
  }
}
