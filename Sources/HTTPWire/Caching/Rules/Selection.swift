/// Which requests a stored response is for, among those of its URL: the fields that its `Vary` names
/// (RFC 9111 §4.1), and the credentials that it was asked with.
///
/// A program may act for many people, although a private cache serves one. So a response is for no other
/// `Authorization` than it was asked with, unless it is `public`; and one that says `private` for no other `Cookie`.
package struct Selection: Sendable, Equatable {
  package struct Field: Sendable, Equatable {
    /// Lower case.
    package let name: String
    /// SHA-256 of the value, since it may be a secret; `nil` when the request had no such field.
    package let digest: String?

    package init(name: String, digest: String?) {
      self.name = name
      self.digest = digest
    }
  }

  /// In the order of their names.
  package let fields: [Field]

  package init(fields: [Field]) {
    self.fields = fields
  }

  /// - Parameters:
  ///   - head:    The head of the response.
  ///   - control: Its directives.
  ///   - request: The fields of the request that it answered, as they were sent.
  package init(_ head: ResponseHead, _ control: CacheControl, request: [HTTPHeader]) {
    var names = Set(Self.names(in: head.block.value(of: "Vary") ?? ""))
    if !control.isPublic { names.insert("authorization") }
    if control.isPrivate { names.insert("cookie") }
    fields = names.sorted().map { Field(name: $0, digest: Self.digest(of: $0, in: request)) }
  }

  /// Whether the response is for a request with these fields. `*` is for none.
  package func includes(_ request: [HTTPHeader]) -> Bool {
    fields.allSatisfy { $0.name != "*" && Self.digest(of: $0.name, in: request) == $0.digest }
  }

  /// The same for a request that was not completed yet: what it does not say may be anything but a credential.
  package func mayInclude(_ request: [HTTPHeader]) -> Bool {
    fields.allSatisfy { field in
      guard let digest = Self.digest(of: field.name, in: request) else {
        return field.name != "authorization" && field.name != "cookie" || field.digest == nil
      }
      return digest == field.digest
    }
  }

  /// Tells variants of a URL apart; two may have the same one.
  package var hash: UInt32 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for field in fields {
      for byte in "\(field.name)=\(field.digest ?? "-");".utf8 {
        hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
      }
    }
    return UInt32(truncatingIfNeeded: hash ^ hash >> 32)
  }

  /// The lower-cased names of a list of fields.
  package static func names(in list: String) -> [String] {
    list.split { $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
  }

  private static func digest(of name: String, in request: [HTTPHeader]) -> String? {
    guard let value = request.joinedValue(of: name) else { return nil }
    let parts = value.split(separator: ",", omittingEmptySubsequences: false).map { part in
      String(part.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
    return SHA256.hexadecimal(parts.joined(separator: ","))
  }
}
