/// The representation of which a file has bytes: its length and its strong validator (RFC 9110 §8.8), as far as they
/// are known. Bytes of two representations are never combined.
package struct Representation: Codable, Sendable, Equatable {
  /// The meaning of a response for the bytes that a file has already.
  package enum Continuation: Sendable, Equatable {
    /// The range begins with the next byte of the file. The total is the length of the whole file, if the response or
    /// the representation has it.
    case rest(Range<Int64>, total: Int64?)
    /// Another range than the missing one, or one that contradicts itself.
    case otherPart
    /// A part of another representation.
    case otherVersion
  }

  /// The number of bytes.
  package let length: Int?
  /// A strong entity tag in quotes, or a modification date.
  package let validator: String?

  package init(length: Int?, validator: String?) {
    self.length = length
    self.validator = validator
  }

  package static func == (left: Representation, right: Representation) -> Bool {
    left.length == right.length && isSame(left.validator, right.validator)
  }

  /// Whether two validators have the same bytes. Texts that are equal may have different ones.
  package static func isSame(_ left: String?, _ right: String?) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return left.hasBytes(of: right)
  }

  /// Whether a validator is an entity tag, not a date.
  package static func isTag(_ validator: String) -> Bool { validator.utf8.first == UInt8(ascii: "\"") }

  /// Reads a stored value. Throws unless it is valid.
  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    length = try values.decodeIfPresent(Int.self, forKey: .length)
    validator = try values.decodeIfPresent(String.self, forKey: .validator)
    guard isValid else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "This is not a length and a validator."))
    }
  }

  /// Whether a stored value may be used. A forged validator could put other fields into a request.
  package var isValid: Bool {
    guard length ?? 0 >= 0 else { return false }
    guard let validator else { return true }
    if Self.isTag(validator) { return EntityTag(validator)?.isStrong == true }
    return !validator.isEmpty && validator.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
  }

  /// Reads the length and the validator in the fields of a response with the status 200 or 206.
  package init(_ head: ResponseHead, now: HTTPDate) {
    self.init(
      length: Self.length(of: head).flatMap { Int(exactly: $0) },
      validator: Self.validator(of: head, now: now))
  }

  /// Reads the representation of which a response has all bytes, or those from `offset` on. `nil` if its rest cannot be
  /// requested. A response without a strong validator cannot be continued, nor a range that the caller has asked for,
  /// unless it is the whole file. An encoded body cannot, because ranges would count other bytes.
  package init?(resumable head: ResponseHead, from offset: Int64, now: HTTPDate) {
    self.init(head, now: now)
    guard head.status == 200 || Self.isRest(head, from: offset),
      !Self.isEncoded(head), head.block.value(of: "Accept-Ranges")?.lowercased() != "none",
      // Only a strong validator proves that two parts belong together.
      validator != nil
    else { return nil }
  }

  /// Whether a response has the bytes from `offset` on. If it begins with the first byte, the caller has asked for the
  /// range, which has to have all bytes.
  private static func isRest(_ head: ResponseHead, from offset: Int64) -> Bool {
    guard head.status == 206, let range = ContentRange(head), let bounds = range.bounds else { return false }
    return bounds.lowerBound == offset && (offset > 0 || bounds.upperBound == range.total)
  }

  /// Returns the length of the whole representation; `nil` if the response does not state it. It is also `nil` with a
  /// content coding, because lengths and ranges then count other bytes.
  package static func length(of head: ResponseHead) -> Int64? {
    guard !isEncoded(head) else { return nil }
    switch head.status {
    case 200: return head.block.contentLength
    case 206: return ContentRange(head)?.total
    default: return nil
    }
  }

  /// Returns the strong validator of a response; `nil` if it has none. A date is strong if the response was generated
  /// at least a second later. The file may change again within a second (RFC 9110 §8.8.2.2).
  package static func validator(of head: ResponseHead, now: HTTPDate) -> String? {
    if let tag = head.block.value(of: "ETag") {
      return EntityTag(tag).flatMap { $0.isStrong ? tag : nil }
    }
    guard let modified = head.block.value(of: "Last-Modified"), let change = HTTPDate(modified, now: now),
      let date = head.block.value(of: "Date").flatMap({ HTTPDate($0, now: now) }),
      date.secondsSince1970 > change.secondsSince1970
    else { return nil }
    return modified
  }

  /// Returns the meaning of a response to the request for the bytes from `offset` on.
  package func continuation(after offset: Int64, by head: ResponseHead) -> Continuation {
    guard head.status == 206, !Self.isEncoded(head), let range = ContentRange(head),
      let bounds = range.bounds,
      bounds.lowerBound == offset,
      // A length that contradicts the range belongs to other bytes.
      !head.block.contains("Content-Length") || head.block.contentLength == bounds.upperBound - offset
    else { return .otherPart }
    let length = length.map { Int64($0) }
    guard let total = range.total ?? length else {
      return matches(head) ? .rest(bounds, total: nil) : .otherVersion
    }
    guard matches(head), total == length ?? total, bounds.upperBound <= total else { return .otherVersion }
    return .rest(bounds, total: total)
  }

  /// Whether a response repeats the validator. It has to repeat an entity tag, because a server may ignore `If-Range`
  /// (RFC 9110 §15.3.7.3). It may omit a date that was in `If-Range`.
  private func matches(_ head: ResponseHead) -> Bool {
    guard let validator else { return true }
    let tag = head.block.value(of: "ETag")
    if Self.isTag(validator) { return Self.isSame(tag, validator) }
    return head.block.value(of: "Last-Modified").map { Self.isSame($0, validator) } ?? (tag == nil)
  }

  /// Whether a response has a content coding (RFC 9110 §8.4).
  package static func isEncoded(_ head: ResponseHead) -> Bool {
    let coding = head.block.value(of: "Content-Encoding") ?? ""
    return !coding.isEmpty && coding.lowercased() != "identity"
  }
}
