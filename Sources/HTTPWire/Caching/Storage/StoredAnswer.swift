package import FoundationEssentials

/// The answer to a request from a stored response: the head and the bytes.
package struct StoredAnswer: Sendable {
  package let head: ResponseHead
  package let body: Data

  package init(head: ResponseHead, body: Data) {
    self.head = head
    self.body = body
  }

  /// Makes the answer to a request from a stored response.
  ///
  /// - Parameters:
  ///   - method:      `HEAD` gets no body.
  ///   - fields:      The fields of the request; for a single byte range, that part is returned (RFC 9110 §14).
  ///   - isConfirmed: Whether the server has just validated the response. Otherwise the answer has an `Age` (RFC 9111
  ///     §4), and lacks the fields that require validation (RFC 9111 §5.2.2.4).
  ///   - now:         Seconds since 1970.
  /// - Returns: `nil` if the requested ranges cannot be cut from the stored body.
  package init?(
    of stored: StoredResponse, method: String, fields: [HTTPHeader], isConfirmed: Bool, now: Int64
  ) {
    var shown = stored.head.block.fields.filter { !FieldName.equal($0.name, "Age") }
    if isConfirmed {
      if let age = stored.head.block.value(of: "Age") { shown.append(HTTPHeader(name: "Age", value: age)) }
    } else {
      let hidden = Set(stored.control.noCacheFields)
      if !hidden.isEmpty { shown.removeAll { hidden.contains($0.name.lowercased()) } }
      shown.append(HTTPHeader(name: "Age", value: "\(Freshness(of: stored, now: now).age)"))
    }
    let whole = ResponseHead(status: stored.head.status, version: stored.head.version, fields: shown)
    guard method == "GET", let range = fields.joinedValue(of: "Range") else {
      head = whole
      body = method == "HEAD" ? Data() : stored.body
      return
    }
    // Ranges count the bytes that were sent, which are not there any more when they were encoded.
    guard let own = Self.range(of: stored), let part = Self.part(range, of: own.total),
      own.bounds.lowerBound <= part.lowerBound, part.upperBound <= own.bounds.upperBound
    else { return nil }
    shown.removeAll {
      FieldName.equal($0.name, "Content-Length") || FieldName.equal($0.name, "Content-Range")
    }
    shown += [
      HTTPHeader(name: "Content-Length", value: "\(part.count)"),
      HTTPHeader(
        name: "Content-Range",
        value: PartRange(part, of: own.total).text),
    ]
    head = ResponseHead(status: 206, version: stored.head.version, fields: shown)
    let start = stored.body.startIndex - own.bounds.lowerBound
    // Callers count the bytes of the part from 0.
    body = Data(stored.body[(start + part.lowerBound)..<(start + part.upperBound)])
  }

  /// Returns the range of the stored bytes in their representation; `nil` for bytes that ranges do not count.
  private static func range(of stored: StoredResponse) -> PartRange? {
    if stored.head.status == 206 { return PartialContent.range(of: stored) }
    guard stored.head.status == 200, !stored.head.block.contains("Content-Encoding") else { return nil }
    return PartRange(0..<stored.body.count, of: stored.body.count)
  }

  /// The answer where nothing may be sent and nothing is stored (RFC 9111 §5.2.1.7).
  package static let gatewayTimeout = StoredAnswer(
    head: ResponseHead(status: 504, fields: [HTTPHeader(name: "Content-Length", value: "0")]), body: Data())

  /// Returns one range of bytes (RFC 9110 §14.1.2): `bytes=a-b`, `bytes=a-` or `bytes=-n`. `nil` for any other value,
  /// and for a range outside of the body.
  package static func part(_ text: String, of count: Int) -> Range<Int>? {
    let text = text.filter { $0 != " " && $0 != "\t" }.lowercased()
    guard text.hasPrefix("bytes="), count > 0 else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2 else { return nil }
    func number(_ text: Substring) -> Int? {
      guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
      return Int(text) ?? Int.max
    }
    switch (number(ends[0]), number(ends[1])) {
    case (let first?, let last?):
      return first <= last && first < count ? first..<(min(last, count - 1) + 1) : nil
    case (let first?, nil): return ends[1].isEmpty && first < count ? first..<count : nil
    case (nil, let length?): return ends[0].isEmpty && length > 0 ? max(0, count - length)..<count : nil
    case (nil, nil): return nil
    }
  }
}
