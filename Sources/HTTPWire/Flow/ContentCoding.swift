/// A content coding that the engine undoes (RFC 9110 §8.4.1).
package enum ContentCoding: String, Sendable, CaseIterable {
  /// RFC 7932.
  case brotli = "br"
  /// RFC 1952; `x-gzip` is another name of it.
  case gzip
  /// RFC 1950, or RFC 1951 alone, which some servers send under this name.
  case deflate
  /// RFC 8878, with the window limit of RFC 9659.
  case zstd

  init?(token: Substring) {
    switch token.lowercased() {
    case "x-gzip": self = .gzip
    case let name: self.init(rawValue: name)
    }
  }
}

/// The treatment of a body by the `Content-Encoding` field of its response (RFC 9110 §8.4).
package enum ContentDecodingPlan: Sendable, Equatable {
  /// The bytes are delivered undecoded.
  case asReceived
  /// The codings are undone in this order, which is the reverse of the field's; at least one.
  case decoded([ContentCoding])
  /// The field names more codings than are undone for one body.
  case tooMany

  /// The most codings that one body may have. Each takes memory and processor time of its own.
  package static let limit = 5

  /// Reads the value of the field, all its lines joined by commas. If one coding of the list is unknown, none is
  /// decoded, because the partly decoded body would not match the field.
  package init(fieldValue: String?) {
    var codings: [ContentCoding] = []
    for element in (fieldValue ?? "").split(separator: ",") {
      let token = element.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
      if token.isEmpty || token.lowercased() == "identity" { continue }
      guard let coding = ContentCoding(token: token) else {
        self = .asReceived
        return
      }
      codings.append(coding)
    }
    guard codings.count <= Self.limit else {
      self = .tooMany
      return
    }
    self = codings.isEmpty ? .asReceived : .decoded(codings.reversed())
  }
}
