import FoundationEssentials

/// The validation of a stored response, and its update after a 304 (RFC 9111 §4.3).
package enum Validation {
  /// Returns the fields that make a request for a stored response conditional; none when the response has no
  /// validator.
  package static func conditions(for stored: StoredResponse) -> [HTTPHeader] {
    var fields: [HTTPHeader] = []
    if let tag = stored.entityTag { fields.append(HTTPHeader(name: "If-None-Match", value: tag.text)) }
    if let modified = stored.lastModified, isDate(modified) {
      fields.append(HTTPHeader(name: "If-Modified-Since", value: modified))
    }
    return fields
  }

  /// Returns the field that offers stored responses to requests with other field values (RFC 9111 §4.3.1). If the
  /// server would send one of them, it responds with its tag. `nil` without a tag.
  package static func condition(for variants: [StoredResponse]) -> HTTPHeader? {
    var tags: [String] = []
    for text in variants.compactMap(\.entityTag?.text) where !tags.contains(where: text.hasBytes(of:)) {
      tags.append(text)
    }
    return tags.isEmpty ? nil : HTTPHeader(name: "If-None-Match", value: tags.joined(separator: ", "))
  }

  /// Returns the most recent variant that the tag of a 304 names; `nil` when it names none (RFC 9111 §4.3.4).
  package static func variant(
    of variants: [StoredResponse], confirmedBy head: ResponseHead
  ) -> StoredResponse? {
    guard let tag = head.block.value(of: "ETag").flatMap({ EntityTag($0) }) else { return nil }
    return variants.filter { $0.entityTag?.matches(tag) == true }
      .max { ($0.date, $0.responseTime) < ($1.date, $1.responseTime) }
  }

  /// Whether the `If-Range` of a request, if there is one, names the stored response by a strong validator (RFC 9110
  /// §13.1.5). Otherwise its range is ignored.
  static func mayUseRange(_ fields: [HTTPHeader], of stored: StoredResponse) -> Bool {
    guard let condition = fields.joinedValue(of: "If-Range") else { return true }
    let now = HTTPDate(secondsSince1970: stored.responseTime)
    if let date = HTTPDate(condition, now: now), let text = stored.lastModified {
      // A date is strong if the response was created later (RFC 9110 §8.8.2.2).
      return HTTPDate(text, now: now) == date && date.secondsSince1970 < stored.date
    }
    guard let tag = EntityTag(condition), let own = stored.entityTag else { return false }
    return tag.isStrong && own.isStrong && tag.matches(own)
  }

  private static func isDate(_ text: String) -> Bool {
    HTTPDate(text, now: HTTPDate(secondsSince1970: 0)) != nil
  }

  /// Whether a 304 selects a stored response: its entity tag or its date equals the stored one (RFC 9111 §4.3.4).
  package static func confirms(_ head: ResponseHead, _ stored: StoredResponse) -> Bool {
    if let text = head.block.value(of: "ETag") {
      guard let tag = EntityTag(text), let own = stored.entityTag else { return false }
      return tag.matches(own)
    }
    guard let modified = head.block.value(of: "Last-Modified") else { return true }
    // A server that validates by the tag may name a date that the stored response did not have.
    guard let own = stored.lastModified else { return stored.entityTag != nil }
    return modified.hasBytes(of: own)
  }

  /// Returns the stored response updated by a 304 (RFC 9111 §3.2, §4.3.4).
  ///
  /// - Parameters:
  ///   - fields:       The fields of the request, as sent.
  ///   - requestTime:  The time of the request, in seconds since 1970.
  ///   - responseTime: The time of the 304.
  package static func freshened(
    _ stored: StoredResponse, by head: ResponseHead, fields: FieldDigests, requestTime: Int64,
    responseTime: Int64
  ) -> StoredResponse {
    let merged = merged(stored.head, with: StorageRules.stored(head, at: responseTime))
    return stored.with(
      head: merged, selection: Selection(merged, CacheControl(merged), request: fields),
      requestTime: requestTime, responseTime: responseTime)
  }

  /// Returns a head with its fields replaced by the fields of a newer head. Fields that describe the stored bytes stay.
  package static func merged(_ old: ResponseHead, with new: ResponseHead) -> ResponseHead {
    let fresh = new.block.fields.filter { !describesBytes($0.name) }
    // A 304 without `Age` is current; the stored `Age` would be wrong for it.
    let replaced = Set(fresh.map { $0.name.lowercased() } + ["age"])
    let kept = old.block.fields.filter { !replaced.contains($0.name.lowercased()) }
    return ResponseHead(status: old.status, version: old.version, fields: kept + fresh)
  }

  /// Whether a field describes the bytes of a body: the stored ones are decoded and whole, whatever a newer head says
  /// of others.
  private static func describesBytes(_ name: String) -> Bool {
    FieldName.equal("Content-Encoding", name) || dependsOnRange(name)
  }

  /// Whether a field differs between the parts of a representation. `Content-Digest` is a digest of the bytes of one
  /// message (RFC 9530 §2), and `Repr-Digest` of the whole representation.
  static func dependsOnRange(_ name: String) -> Bool {
    ["Content-Length", "Content-Range", "Content-Digest", "Content-MD5"].contains {
      FieldName.equal($0, name)
    }
  }

  /// Returns the stored response of a GET, updated by the response to a HEAD (RFC 9111 §4.3.5). `nil` if the resource
  /// has changed.
  package static func updated(
    _ stored: StoredResponse, byHead head: ResponseHead, fields: FieldDigests, requestTime: Int64,
    responseTime: Int64
  ) -> StoredResponse? {
    let old = stored.head.block
    let new = head.block
    func isSame(_ name: StaticString) -> Bool {
      guard let text = new.value(of: name) else { return true }
      return old.value(of: name).hasBytes(of: text)
    }
    guard head.status == stored.head.status, isSame("ETag"), isSame("Last-Modified"),
      hasSameLength(new, as: stored)
    else { return nil }
    return freshened(
      stored, by: head, fields: fields, requestTime: requestTime, responseTime: responseTime)
  }

  /// Whether the length in the response to a HEAD, if there is one, is the length of the stored response.
  ///
  /// - Parameter new: The fields of the response. Their validators, if there are any, equal the stored ones.
  private static func hasSameLength(_ new: FieldBlock, as stored: StoredResponse) -> Bool {
    guard let length = new.value(of: "Content-Length") else { return true }
    let old = stored.head.block
    if let own = old.value(of: "Content-Length") { return length == own }
    // A body that came in chunks has no field for its length. It is stored decoded, and so its length as it was sent is
    // unknown if it was encoded.
    guard old.contains("Content-Encoding") || new.contains("Content-Encoding") else {
      return Int(length) == stored.bodyLength
    }
    return new.contains("ETag") || new.contains("Last-Modified")
  }
}

/// Parts of a representation (RFC 9111 §3.3, §3.4): which are stored, which requests they answer, and how they are
/// combined.
///
/// One contiguous part is stored for each selection. Parts of encoded bodies are not stored, because bodies are
/// stored decoded.
package enum PartialContent {
  /// Whether a 206 may be stored: it has one known range, and a strong entity tag.
  package static func isStorable(_ head: ResponseHead) -> Bool {
    head.status == 206 && PartRange(head) != nil && strongTag(of: head) != nil
      && !head.block.contains("Content-Encoding")
  }

  /// Returns the range of a stored part; `nil` for any other response, and for one with a body of another length.
  package static func range(of stored: StoredResponse) -> PartRange? {
    guard isStorable(stored.head), let range = PartRange(stored.head),
      range.bounds.count == stored.bodyLength
    else { return nil }
    return range
  }

  /// Whether a stored part has all bytes that a `Range` field asks for.
  package static func covers(_ stored: StoredResponse, _ range: String) -> Bool {
    guard let own = Self.range(of: stored), let requested = StoredAnswer.part(range, of: own.total) else {
      return false
    }
    return own.bounds.lowerBound <= requested.lowerBound && requested.upperBound <= own.bounds.upperBound
  }

  /// Returns the response to store after a part was received; `nil` if there is none.
  ///
  /// A part is combined with the stored response that has its strong entity tag. A complete response takes the fields
  /// of the part, an adjacent or overlapping part also its bytes. A complete response of another version stays until
  /// it is validated.
  ///
  /// - Parameter stored: The stored responses for the URL.
  package static func combined(_ part: StoredResponse, with stored: [StoredResponse]) -> StoredResponse? {
    guard let range = range(of: part) else { return nil }
    let others = stored.filter { $0.hasBody && $0.selection == part.selection && $0.key == part.key }
    if let whole = others.first(where: { $0.head.status == 200 }) {
      guard isSameVersion(whole, part), whole.body.count == range.total,
        !whole.head.block.contains("Content-Encoding")
      else { return nil }
      return whole.with(
        head: Validation.merged(whole.head, with: part.head), selection: part.selection,
        requestTime: part.requestTime, responseTime: part.responseTime)
    }
    for other in others {
      guard isSameVersion(other, part), let old = Self.range(of: other),
        let all = range.joined(with: old)
      else { continue }
      return joined(part, range, other, old, all)
    }
    return part
  }

  private static func joined(
    _ part: StoredResponse, _ range: PartRange, _ other: StoredResponse, _ old: PartRange,
    _ all: PartRange
  ) -> StoredResponse {
    var body = Data(capacity: all.bounds.count)
    // Bytes of one version are the same: those before and after the new part come from the old one.
    if old.bounds.lowerBound < range.bounds.lowerBound {
      body.append(other.body.prefix(range.bounds.lowerBound - old.bounds.lowerBound))
    }
    body.append(part.body)
    if old.bounds.upperBound > range.bounds.upperBound {
      body.append(other.body.suffix(old.bounds.upperBound - range.bounds.upperBound))
    }
    let merged = Validation.merged(other.head, with: part.head)
    var fields = merged.block.fields.filter { !Validation.dependsOnRange($0.name) }
    fields.append(HTTPHeader(name: "Content-Length", value: "\(body.count)"))
    if !all.isComplete { fields.append(HTTPHeader(name: "Content-Range", value: all.text)) }
    return StoredResponse(
      key: part.key,
      head: ResponseHead(status: all.isComplete ? 200 : 206, version: part.head.version, fields: fields),
      body: body, selection: part.selection, requestTime: part.requestTime, responseTime: part.responseTime,
      attachment: part.attachment, staysInMemory: part.staysInMemory)
  }

  private static func isSameVersion(_ left: StoredResponse, _ right: StoredResponse) -> Bool {
    guard let left = strongTag(of: left.head), let right = strongTag(of: right.head) else { return false }
    return left.matches(right)
  }

  private static func strongTag(of head: ResponseHead) -> EntityTag? {
    head.block.value(of: "ETag").flatMap { EntityTag($0) }.flatMap { $0.isStrong ? $0 : nil }
  }
}

/// The range of a part in a representation of known length.
package struct PartRange: Sendable, Equatable {
  /// Counted in bytes from 0; never empty.
  package let bounds: Range<Int>
  /// The length of the whole representation.
  package let total: Int

  /// Parses one range of bytes in a representation of known length, such as `bytes 0-4/10`; `nil` for any other text.
  package init?(_ text: String) {
    guard let range = ContentRange(text) else { return nil }
    self.init(range)
  }

  init?(_ head: ResponseHead) {
    guard let range = ContentRange(head) else { return nil }
    self.init(range)
  }

  private init?(_ range: ContentRange) {
    guard let bounds = range.bounds, let total = range.total else { return nil }
    self.init(Int(bounds.lowerBound)..<Int(bounds.upperBound), of: Int(total))
  }

  init(_ bounds: Range<Int>, of total: Int) {
    self.bounds = bounds
    self.total = total
  }

  package var isComplete: Bool { bounds == 0..<total }

  package var text: String { "bytes \(bounds.lowerBound)-\(bounds.upperBound - 1)/\(total)" }

  /// Joins two ranges; `nil` when there are bytes between them, or they are of different representations.
  package func joined(with other: PartRange) -> PartRange? {
    guard total == other.total, bounds.lowerBound <= other.bounds.upperBound,
      other.bounds.lowerBound <= bounds.upperBound
    else { return nil }
    let start = min(bounds.lowerBound, other.bounds.lowerBound)
    return PartRange(start..<max(bounds.upperBound, other.bounds.upperBound), of: total)
  }
}
