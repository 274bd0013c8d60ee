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

  /// Returns the field that offers responses for other field values than those of a request (RFC 9111 §4.3.1). A
  /// server that would send one of them responds with its tag. `nil` without a tag.
  package static func condition(for variants: [StoredResponse]) -> HTTPHeader? {
    var tags: [String] = []
    for tag in variants.compactMap(\.entityTag) where !tags.contains(tag.text) { tags.append(tag.text) }
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

  private static func isDate(_ text: String) -> Bool {
    HTTPDate(text, now: HTTPDate(secondsSince1970: 0)) != nil
  }

  /// Whether a 304 selects a stored response: its entity tag or its date equals the stored one (RFC 9111 §4.3.4).
  package static func confirms(_ head: ResponseHead, _ stored: StoredResponse) -> Bool {
    if let text = head.block.value(of: "ETag") {
      guard let tag = EntityTag(text), let own = stored.entityTag else { return false }
      return tag.matches(own)
    }
    guard let modified = head.block.value(of: "Last-Modified"), stored.entityTag == nil else { return true }
    return modified == stored.lastModified
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

  /// Returns a head whose fields are replaced by those of a newer one, except for fields that describe the stored
  /// bytes.
  package static func merged(_ old: ResponseHead, with new: ResponseHead) -> ResponseHead {
    let fresh = new.block.fields.filter { !describesBytes($0.name) }
    // A 304 whose age is not told is as old as it is: an `Age` of before would be wrong.
    let replaced = Set(fresh.map { $0.name.lowercased() } + ["age"])
    let kept = old.block.fields.filter { !replaced.contains($0.name.lowercased()) }
    return ResponseHead(status: old.status, version: old.version, fields: kept + fresh)
  }

  /// Whether a field describes the bytes of a body: the stored ones are decoded and whole, whatever a newer head says
  /// of others.
  private static func describesBytes(_ name: String) -> Bool {
    ["Content-Length", "Content-Encoding", "Content-Range"].contains { FieldName.equal($0, name) }
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
      return text == old.value(of: name)
    }
    let lengths = (new.value(of: "Content-Length"), old.value(of: "Content-Length"))
    let isSameLength = lengths.0 == nil || lengths.1 == nil || lengths.0 == lengths.1
    guard head.status == stored.head.status, isSame("ETag"), isSame("Last-Modified"), isSameLength else {
      return nil
    }
    return freshened(
      stored, by: head, fields: fields, requestTime: requestTime, responseTime: responseTime)
  }
}
