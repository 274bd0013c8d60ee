/// The range of a `Range` field (RFC 9110 §14.2). Several ranges are answered with the whole body.
enum ByteRange: Equatable {
  case whole
  case part(Range<Int>)
  case unsatisfiable

  static func parse(_ field: String?, of length: Int) -> ByteRange {
    guard let field, field.lowercased().hasPrefix("bytes=") else { return .whole }
    let spec = trimmed(field.dropFirst(6))
    let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return .whole }
    switch (RequestBodyDecoder.decimal(ends[0]), RequestBodyDecoder.decimal(ends[1])) {
    case (let first?, let last?):
      guard first <= last else { return .whole }
      return first < length ? .part(first..<min(last, length - 1) + 1) : .unsatisfiable
    case (let first?, nil) where ends[1].isEmpty:
      return first < length ? .part(first..<length) : .unsatisfiable
    case (nil, let count?) where ends[0].isEmpty:
      return count > 0 && length > 0 ? .part(max(0, length - count)..<length) : .unsatisfiable
    default:
      return .whole
    }
  }
}
