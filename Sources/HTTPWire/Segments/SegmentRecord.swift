import FoundationEssentials

/// The record beside a partial file: its version and the bytes that are in it.
///
/// The head of the record is written as a whole. A line is appended for each range that was written since. The
/// appended lines hold only as long as the system runs, because their bytes may not have reached the disk. The bytes
/// of the ranges in the head have reached it.
package struct SegmentRecord: Sendable, Equatable {
  /// The URL of the file, without its user information.
  package var url: String
  package var version: Representation
  /// The identifier of the running system.
  package var boot: String
  /// The ranges in the file.
  package var present: ByteRanges

  private static let title = "segmented download 1"

  package init(url: String, version: Representation, boot: String, present: ByteRanges) {
    self.url = url
    self.version = version
    self.boot = boot
    self.present = present
  }

  /// The head of the record.
  package var text: String {
    let lines = [
      Self.title, "url \(url)", "length \(version.length ?? 0)", "validator \(version.validator ?? "")",
      "boot \(boot)",
      "ranges \(present.text)",
    ]
    let head = lines.joined(separator: "\n") + "\n"
    return head + "check \(Self.check(head))\n"
  }

  /// Returns the line for a range that was written.
  package static func line(_ range: Range<Int>) -> String {
    let text = "+ \(range.lowerBound)-\(range.upperBound - 1)"
    return "\(text) \(check(text))\n"
  }

  /// Parses a record. Returns `nil` for a damaged head. Lines behind a damaged one are ignored.
  ///
  /// - Parameter boot: The identifier of the running system.
  package init?(_ text: String, boot: String) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
    guard lines.count > 7, lines.removeFirst() == Self.title else { return nil }
    var head = Self.title + "\n"
    var values: [Substring] = []
    for name in ["url ", "length ", "validator ", "boot ", "ranges "] {
      let line = lines.removeFirst()
      guard line.hasPrefix(name) else { return nil }
      head += line + "\n"
      values.append(line.dropFirst(name.count))
    }
    guard lines.removeFirst() == "check \(Self.check(head))", let length = Int(values[1]), length > 0,
      var present = ByteRanges(text: values[4])
    else { return nil }
    if values[3] == boot, !boot.isEmpty {
      // The last line is empty if the text is complete.
      for line in lines.dropLast() {
        let parts = line.split(separator: " ")
        guard parts.count == 3, parts[0] == "+", parts[2] == Self.check("+ \(parts[1])"),
          let range = ByteRanges(text: parts[1])
        else { break }
        for range in range.ranges { present.insert(range) }
      }
    }
    guard present.ranges.last.map({ $0.upperBound <= length }) ?? true else { return nil }
    self.init(
      url: String(values[0]), version: Representation(length: length, validator: String(values[2])),
      boot: String(values[3]), present: present)
  }

  /// Returns the FNV-1a hash of a text, by which a line that was written in part is noticed.
  private static func check(_ text: String) -> String { FNVHash(text).text }
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
    let validator = Representation.validator(of: head, now: now)
    let isEncoded = Representation.isEncoded(head)
    switch head.status {
    case 206:
      guard !isEncoded, let range = head.block.value(of: "Content-Range").flatMap({ PartRange($0) }),
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

/// The expected hash of a file.
package struct FileDigest: Sendable, Equatable {
  package let algorithm: DigestChallenge.Algorithm
  package let bytes: [UInt8]

  /// Makes a digest; `nil` if the number of bytes is not that of the algorithm.
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
