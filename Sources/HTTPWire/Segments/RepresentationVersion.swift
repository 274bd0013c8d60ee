/// The version of a representation whose ranges may be combined: its length and its strong validator (RFC 9110 §8.8).
package struct RepresentationVersion: Sendable, Equatable {
  package let length: Int
  /// A strong entity tag in quotes, or a modification date.
  package let validator: String

  package init(length: Int, validator: String) {
    self.length = length
    self.validator = validator
  }

  /// Returns the strong validator of a response; `nil` if it has none. A date is strong if the response was made at
  /// least a second later. The file may change again within a second (RFC 9110 §8.8.2.2).
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
}

/// The meaning of a response head for a request of a segment.
package enum SegmentAnswer: Sendable, Equatable {
  /// A range of the representation, with the strong validator if the response has one.
  case part(Range<Int>, length: Int, validator: String?)
  /// The whole representation (200), whose ranges the server does not send.
  case whole(length: Int?, validator: String?)
  /// The range begins behind the end (416).
  case unsatisfiable
  /// Another status. A temporary one may be followed by a success.
  case refused(status: Int, isTemporary: Bool)
  /// A 206 that cannot be used: with a content coding, without one known range, or with several.
  case unusable

  package init(_ head: ResponseHead, now: HTTPDate) {
    let validator = RepresentationVersion.validator(of: head, now: now)
    let isEncoded = head.block.value(of: "Content-Encoding").map { $0.lowercased() != "identity" } ?? false
    switch head.status {
    case 206:
      guard !isEncoded, let range = head.block.value(of: "Content-Range").flatMap({ ContentRange($0) }),
        head.block.value(of: "Accept-Ranges")?.lowercased() != "none",
        // A length that contradicts the range belongs to other bytes.
        head.block.value(of: "Content-Length").map({ Int($0) == range.bounds.count }) ?? true
      else {
        self = .unusable
        return
      }
      self = .part(range.bounds, length: range.total, validator: validator)
    // Other statuses of success have another content (201, 202), a changed one (203), or none (204, 205).
    case 200:
      let length = isEncoded ? nil : head.block.value(of: "Content-Length").flatMap { Int($0) }
      self = .whole(length: length.flatMap { $0 >= 0 ? $0 : nil }, validator: validator)
    case 416: self = .unsatisfiable
    case 408, 425, 429, 500, 502, 503, 504: self = .refused(status: head.status, isTemporary: true)
    default: self = .refused(status: head.status, isTemporary: false)
    }
  }
}
