package import FoundationEssentials

// The format of a stored response in a file. A mark, the lengths of head and body and a checksum of both come first,
// then head and body. The numbers have 8 bytes, little-endian. Files of another format, truncated ones and ones with
// a wrong checksum are ignored.
extension StoredResponse {
  private static let mark: UInt64 = 0x3130_4548_4341_4641  // "AFACHE01"
  package static let prefixLength = 32

  package var encoded: Data {
    let head = encodedHead
    var data = Data(capacity: Self.prefixLength + head.count + body.count)
    let sum = Checksum.of(head) &+ Checksum.of(body) &* 31
    for word in [Self.mark, UInt64(head.count), UInt64(body.count), sum] {
      data.append(contentsOf: (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) })
    }
    data.append(head)
    data.append(body)
    return data
  }

  /// Decodes a response; `nil` for any bytes that ``encoded`` did not make.
  package static func decode(_ data: Data) -> StoredResponse? {
    var reader = EntryReader(data)
    guard reader.word() == mark, let headLength = reader.word(), let bodyLength = reader.word(),
      let sum = reader.word(), let count = Int(exactly: headLength), let bodyCount = Int(exactly: bodyLength),
      let head = reader.bytes(count), let body = reader.bytes(bodyCount), reader.isAtEnd,
      Checksum.of(head) &+ Checksum.of(body) &* 31 == sum
    else { return nil }
    // Copied, because the indices of a slice do not begin at 0.
    return StoredResponse(encodedHead: head, body: Data(body))
  }

  /// All but the body.
  package var encodedHead: Data {
    var writer = EntryWriter()
    writer.text(key.url)
    writer.word(UInt64(head.status))
    writer.word(UInt64(head.version.rawValue))
    writer.word(UInt64(bitPattern: requestTime))
    writer.word(UInt64(bitPattern: responseTime))
    writer.bytes(Data(head.block.bytes))
    writer.bytes(attachment)
    writer.word(UInt64(selection.fields.count))
    for field in selection.fields {
      writer.text(field.name)
      writer.text(field.digest ?? "")
    }
    return writer.data
  }

  /// Decodes a response; `nil` for any bytes that ``encodedHead`` did not make.
  package convenience init?(encodedHead data: Data, body: Data) {
    var reader = EntryReader(data)
    guard let url = reader.text(), let key = CacheKey(url), let status = reader.word(), status < 1_000,
      let version = reader.word().flatMap({ UInt8(exactly: $0) }).flatMap({ HTTPVersion(rawValue: $0) }),
      let requestTime = reader.word(), let responseTime = reader.word(), let block = reader.counted(),
      let attachment = reader.counted(), let count = reader.word(), count < 10_000
    else { return nil }
    var fields: [Selection.Field] = []
    for _ in 0..<count {
      guard let name = reader.text(), let digest = reader.text() else { return nil }
      fields.append(Selection.Field(name: name, digest: digest.isEmpty ? nil : digest))
    }
    guard reader.isAtEnd, let request = Self.time(requestTime), let response = Self.time(responseTime) else {
      return nil
    }
    self.init(
      key: key,
      head: ResponseHead(status: Int(status), version: version, block: FieldBlock(bytes: Array(block))),
      body: body, selection: Selection(fields: fields), requestTime: request, responseTime: response,
      attachment: attachment)
  }

  /// Returns a moment, unless sums with it could overflow.
  private static func time(_ word: UInt64) -> Int64? {
    let time = Int64(bitPattern: word)
    return abs(time.quotientAndRemainder(dividingBy: 1 << 50).quotient) < 1 ? time : nil
  }
}

/// Finds bytes that went wrong by chance; nothing against malice, for which the permissions of the files are there.
private enum Checksum {
  static func of(_ data: Data) -> UInt64 {
    data.withUnsafeBytes { bytes in
      var sum: UInt64 = 0x9E37_79B9_7F4A_7C15 ^ UInt64(bytes.count)
      let words = bytes.count / 8
      for index in 0..<words {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        sum = (sum ^ word) &* 0xFF51_AFD7_ED55_8CCD
        sum ^= sum >> 32
      }
      for byte in bytes[(8 * words)...] { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
      return sum ^ sum >> 29
    }
  }
}

private struct EntryWriter {
  private(set) var data = Data()

  mutating func word(_ word: UInt64) {
    for place in 0..<8 { data.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * place))) }
  }

  mutating func bytes(_ bytes: Data) {
    word(UInt64(bytes.count))
    data.append(bytes)
  }

  mutating func text(_ text: String) { bytes(Data(text.utf8)) }
}

private struct EntryReader {
  private var rest: Data

  init(_ data: Data) { rest = data }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func word() -> UInt64? {
    guard let bytes = bytes(8) else { return nil }
    return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func bytes(_ count: Int) -> Data? {
    guard count >= 0, count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  mutating func counted() -> Data? { word().flatMap { Int(exactly: $0) }.flatMap { bytes($0) } }

  mutating func text() -> String? { counted().flatMap { String(validating: $0, as: UTF8.self) } }
}
