/// The requests, of all requests for a URL, that a stored response can satisfy. They have the same values of the fields
/// that the response's `Vary` names (RFC 9111 §4.1), and the same credentials.
///
/// A program may act for many users. Therefore a response is used only with the `Authorization` of its request,
/// unless it is `public`. One that is `private` is used only with the `Cookie` of its request.
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

  /// The most names in the `Vary` of a response that is stored. Each request for the URL looks at all of them.
  package static let limit = 64

  /// In the order of their names.
  package let fields: [Field]

  package init(fields: [Field]) {
    self.fields = fields
  }

  /// Makes the selection for a response that is stored.
  ///
  /// - Parameters:
  ///   - head:    The head of the response.
  ///   - control: The directives of the response.
  ///   - request: The fields of the request that it answered, as they were sent.
  package init(_ head: ResponseHead, _ control: CacheControl, request: FieldDigests) {
    var names = Set(Self.names(in: head.block.value(of: "Vary") ?? ""))
    if !control.isPublic { names.insert("authorization") }
    if control.isPrivate { names.insert("cookie") }
    var digests = request
    fields = names.sorted().map { Field(name: $0, digest: digests[$0]) }
  }

  /// Whether two responses depend on the same fields, whatever the values are.
  func hasSameNames(as other: Selection) -> Bool { fields.map(\.name) == other.fields.map(\.name) }

  /// Whether the response is for each request that another selection includes.
  func isPart(of other: Selection) -> Bool { fields.allSatisfy { other.fields.contains($0) } }

  /// Whether the response is for a request with these fields. `*` is for none.
  package func includes(_ request: inout FieldDigests) -> Bool {
    fields.allSatisfy { $0.name != "*" && request[$0.name] == $0.digest }
  }

  /// Whether the response is for the same credentials and the same `Cookie` as a request. A response that is for
  /// other ones is never offered to the server for this request.
  package func hasCredentials(of request: inout FieldDigests) -> Bool {
    fields.allSatisfy { field in
      guard Self.isCredential(field.name) else { return field.name != "*" }
      return request[field.name] == field.digest
    }
  }

  /// Whether a field can identify the sender; some programs use custom fields.
  private static func isCredential(_ name: String) -> Bool {
    ["authorization", "cookie", "auth", "token", "key", "secret", "session"].contains { name.contains($0) }
  }

  /// Whether the response may be for a request that is not complete yet: a missing field may have any value, unless it
  /// is a credential.
  package func mayInclude(_ request: inout FieldDigests) -> Bool {
    fields.allSatisfy { field in
      guard let digest = request[field.name] else {
        return field.name != "authorization" && field.name != "cookie" || field.digest == nil
      }
      return digest == field.digest
    }
  }

  /// A hash that distinguishes variants of a URL; collisions are possible.
  package var hash: UInt32 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for field in fields {
      for byte in "\(field.name)=\(field.digest ?? "-");".utf8 {
        hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
      }
    }
    return UInt32(truncatingIfNeeded: hash ^ hash >> 32)
  }

  /// About how much memory it takes, in bytes. A digest has 64 digits.
  package var cost: Int { fields.reduce(0) { $0 + $1.name.utf8.count + 96 } }

  /// Whether a response varies by so few fields that it may be stored.
  package static func isShort(for head: ResponseHead) -> Bool {
    head.block.value(of: "Vary").map { names(in: $0).count <= limit } ?? true
  }

  /// Returns the lower-cased names of a list of fields.
  package static func names(in list: String) -> [String] {
    list.split { $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
  }
}

/// The fields of one request with their digests. Each digest is computed when a stored response asks for it, and once,
/// because all variants of a URL ask for the same few.
package struct FieldDigests: Sendable {
  package let fields: [HTTPHeader]
  private let hashes: any HashFunctions
  private var known: [String: String?] = [:]

  package init(of fields: [HTTPHeader], hashes: any HashFunctions) {
    self.fields = fields
    self.hashes = hashes
  }

  /// The number of digests that were computed, for tests.
  package private(set) var computedCount = 0

  /// The digest of the values of a field; `nil` when the request has no such field.
  package subscript(_ name: String) -> String? {
    mutating get {
      if let digest = known[name] { return digest }
      let digest = fields.joinedValue(of: name).map { value in
        computedCount += 1
        // A value without a digest must not select a response, so that its text is unique.
        return hashes.text(.sha256, Self.normalized(value)) ?? "\(UInt64.random(in: .min ... .max))"
      }
      known.updateValue(digest, forKey: name)
      return digest
    }
  }

  /// Returns a list without the whitespace around its commas (RFC 9111 §4.1).
  private static func normalized(_ value: String) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(value.utf8.count)
    // How many bytes end with something else than whitespace, since the last comma.
    var end = 0
    for byte in value.utf8 {
      switch byte {
      case 0x20, 0x09:
        if let last = bytes.last, last != 0x2C { bytes.append(byte) }
      case 0x2C:
        bytes.removeLast(bytes.count - end)
        bytes.append(byte)
        end = bytes.count
      default:
        bytes.append(byte)
        end = bytes.count
      }
    }
    bytes.removeLast(bytes.count - end)
    return bytes
  }
}
