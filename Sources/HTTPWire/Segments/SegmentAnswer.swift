import FoundationEssentials

/// The meaning of a response head for a request of a segment.
package enum SegmentAnswer: Sendable, Equatable {
  /// A range of the representation, with the strong validator if the response has one.
  case part(Range<Int>, length: Int, validator: String?)
  /// The whole representation (200) of a server that does not send ranges.
  case whole(length: Int?, validator: String?)
  /// The range begins after the end (416).
  case unsatisfiable
  /// Another status. A temporary one may be followed by a success.
  case refused(status: Int, isTemporary: Bool)
  /// A 206 that cannot be used: with a content coding, without one known range, or with several.
  case unusable

  package init(_ head: ResponseHead, now: HTTPDate) {
    let validator = Representation.validator(of: head, now: now)
    let isEncoded = Representation.isEncoded(head)
    switch head.status {
    case 206:
      guard !isEncoded, let range = head.block.value(of: "Content-Range").flatMap({ PartRange($0) }),
        head.block.value(of: "Accept-Ranges")?.lowercased() != "none",
        // A length that contradicts the range belongs to other bytes.
        !head.block.contains("Content-Length") || head.block.contentLength == Int64(range.bounds.count)
      else {
        self = .unusable
        return
      }
      self = .part(range.bounds, length: range.total, validator: validator)
    // Other statuses of success have another content (201, 202), a changed one (203), or none (204, 205).
    case 200:
      let length = isEncoded ? nil : head.block.contentLength
      self = .whole(length: length.flatMap { Int(exactly: $0) }, validator: validator)
    case 416: self = .unsatisfiable
    case 408, 425, 429, 500, 502, 503, 504: self = .refused(status: head.status, isTemporary: true)
    default: self = .refused(status: head.status, isTemporary: false)
    }
  }
}

/// The expected hash of a file.
package struct FileDigest: Sendable, Equatable {
  package let algorithm: DigestChallenge.Algorithm
  package let bytes: [UInt8]

  /// Makes a digest; `nil` if the algorithm has another number of bytes.
  package init?(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) {
    guard bytes.count == (algorithm == .sha512 ? 64 : 32) else { return nil }
    self.algorithm = algorithm
    self.bytes = bytes
  }

  /// The bytes as hexadecimal digits in lower case.
  package var hex: String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Makes a digest of hexadecimal digits; `nil` for other text.
  package init?(_ algorithm: DigestChallenge.Algorithm, hex: String) {
    let digits = hex.utf8.compactMap { byte -> UInt8? in
      switch byte {
      case 0x30...0x39: byte - 0x30
      case 0x41...0x46: byte - 0x37
      case 0x61...0x66: byte - 0x57
      default: nil
      }
    }
    guard digits.count == hex.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    self.init(algorithm, stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
  }

  /// Returns the strongest digest of the whole representation in a response; `nil` if there is none.
  ///
  /// `Repr-Digest` (RFC 9530 §3) and `Digest` (RFC 3230 §4.3.2) are of the whole representation, also in a 206.
  /// `Content-Digest` (RFC 9530 §2) is of the content, which is the representation in a 200. With a content coding they
  /// are of the encoded bytes, which are not in the file.
  package init?(of head: ResponseHead) {
    guard !Representation.isEncoded(head) else { return nil }
    var found: [FileDigest] = []
    for value in head.block.values(of: "Repr-Digest") { found += Self.dictionary(value) }
    if head.status == 200 {
      for value in head.block.values(of: "Content-Digest") { found += Self.dictionary(value) }
    }
    for value in head.block.values(of: "Digest") { found += Self.instances(value) }
    guard let strongest = found.first(where: { $0.algorithm == .sha512 }) ?? found.first else { return nil }
    self = strongest
  }

  /// Reads the members of a dictionary of byte sequences (RFC 9651 §3.2): `sha-256=:d435Qo…=:`.
  private static func dictionary(_ value: String) -> [FileDigest] {
    value.split(separator: ",").compactMap { member in
      let parts = member.drop { $0 == " " || $0 == "\t" }.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[1].hasPrefix(":"), let end = parts[1].dropFirst().firstIndex(of: ":")
      else {
        return nil
      }
      // Parameters may follow the second colon.
      return make(String(parts[0]), parts[1][parts[1].index(after: parts[1].startIndex)..<end])
    }
  }

  /// Reads the instance digests of RFC 3230: `SHA-256=d435Qo…=`.
  private static func instances(_ value: String) -> [FileDigest] {
    value.split(separator: ",").compactMap { member in
      let parts = member.drop { $0 == " " || $0 == "\t" }.split(separator: "=", maxSplits: 1)
      return parts.count == 2 ? make(parts[0].lowercased(), parts[1]) : nil
    }
  }

  private static func make(_ name: String, _ text: some StringProtocol) -> FileDigest? {
    guard let data = Data(base64Encoded: String(text).filter { $0 != " " && $0 != "\t" }) else { return nil }
    switch name {
    case "sha-256": return FileDigest(.sha256, Array(data))
    case "sha-512": return FileDigest(.sha512, Array(data))
    default: return nil
    }
  }
}
