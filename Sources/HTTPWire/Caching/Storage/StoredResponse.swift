package import FoundationEssentials

/// A stored response, complete or partial (206), with the values that its reuse depends on. An immutable class,
/// because it is passed through many functions.
package final class StoredResponse: Sendable {
  package let key: CacheKey
  package let head: ResponseHead
  /// After decoding, whatever `Content-Encoding` says.
  package let body: Data
  package let selection: Selection
  /// The time at which the request was sent, and that at which the response came: seconds since 1970.
  package let requestTime: Int64
  package let responseTime: Int64
  /// The directives of ``head``.
  package let control: CacheControl
  /// The `userInfo` of a program, in a form that only its owner reads.
  package let attachment: Data
  /// Whether it stays out of files.
  package let staysInMemory: Bool

  package init(
    key: CacheKey, head: ResponseHead, body: Data, selection: Selection, requestTime: Int64,
    responseTime: Int64, attachment: Data = Data(), staysInMemory: Bool = false
  ) {
    self.key = key
    self.head = head
    self.body = body
    self.selection = selection
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.attachment = attachment
    self.staysInMemory = staysInMemory
    control = CacheControl(head)
  }

  /// Makes the entry of a response that has just come.
  ///
  /// - Parameters:
  ///   - fields: The fields of the request, as they were sent.
  package convenience init(
    key: CacheKey, fields: FieldDigests, head: ResponseHead, body: Data, requestTime: Int64,
    responseTime: Int64, attachment: Data = Data(), staysInMemory: Bool = false
  ) {
    let head = StorageRules.stored(head, at: responseTime)
    self.init(
      key: key, head: head, body: body,
      selection: Selection(head, CacheControl(head), request: fields), requestTime: requestTime,
      responseTime: responseTime, attachment: attachment, staysInMemory: staysInMemory)
  }

  /// Returns the response with another head, which a validation at `responseTime` gave it.
  package func with(
    head: ResponseHead, selection: Selection, requestTime: Int64, responseTime: Int64
  ) -> StoredResponse {
    StoredResponse(
      key: key, head: head, body: body, selection: selection, requestTime: requestTime,
      responseTime: responseTime, attachment: attachment, staysInMemory: staysInMemory)
  }

  /// The time at which the server made the response: seconds since 1970.
  package var date: Int64 {
    guard let text = head.block.value(of: "Date"),
      let date = HTTPDate(text, now: HTTPDate(secondsSince1970: responseTime))
    else { return responseTime }
    return date.secondsSince1970
  }

  package var entityTag: EntityTag? { head.block.value(of: "ETag").flatMap { EntityTag($0) } }
  package var lastModified: String? { head.block.value(of: "Last-Modified") }

  /// About how much memory it takes, in bytes.
  package var cost: Int { body.count + head.block.bytes.count + key.url.utf8.count + 512 }
}

/// A version of a resource (RFC 9110 §8.8.3).
package struct EntityTag: Sendable, Equatable {
  /// The text as it is sent.
  package let text: String
  package let isWeak: Bool
  /// Whether it follows the grammar. Some servers send tags without quotation marks, and compare them as they came.
  package let isQuoted: Bool

  /// Parses an entity tag; `nil` for an invalid one.
  package init?(_ text: String) {
    let isWeak = text.utf8.starts(with: "W/\"".utf8)
    let bytes = text.utf8.dropFirst(isWeak ? 2 : 0)
    if bytes.first == 0x22 {
      guard bytes.count >= 2, bytes.last == 0x22,
        bytes.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || $0 > 0x22 && $0 != 0x7F })
      else { return nil }
      isQuoted = true
    } else {
      // A star would mean any version, and a comma ends a tag.
      guard text != "*", !bytes.isEmpty,
        bytes.allSatisfy({ $0 > 0x20 && $0 != 0x22 && $0 != 0x2C && $0 != 0x7F })
      else { return nil }
      isQuoted = false
    }
    self.text = text
    self.isWeak = isWeak
  }

  private var opaque: Substring.UTF8View { text.utf8.dropFirst(isWeak ? 2 : 0) }

  /// Whether equal tags mean equal bytes (RFC 9110 §8.8.1).
  package var isStrong: Bool { isQuoted && !isWeak }

  /// Whether two tags are equal by the weak comparison (RFC 9110 §8.8.3.2).
  package func matches(_ other: EntityTag) -> Bool { opaque.elementsEqual(other.opaque) }
}
