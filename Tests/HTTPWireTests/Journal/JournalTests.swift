import FoundationEssentials
import HTTPWire
import Randomness
import Testing

/// The records of unfinished transfers as bytes.
struct JournalTests {
  private let log = Journal(hashes: SumOfBytes())

  static let description: TransferDescription = {
    var description = TransferDescription(
      kind: .upload, url: "https://example.com/a?b=1", method: "PUT", fields: ["X-A": "ü\n\u{1F980}"],
      created: 1_700_000_000.25, boot: "boot")
    description.body = Data([0, 10, 255])
    description.bodyFile = .init(path: "/tmp/a b", isOwned: true, size: 7)
    description.bodyFile?.modified = 1_700_000_000.123456
    description.earliestBegin = 1_700_000_100
    description.handlesCookies = false
    description.mainDocument = "https://example.com/"
    description.resumption = UploadResumption.Policy()
    description.resumption?.dialect = .tus
    description.resumption?.metadata = "filename YQ=="
    return description
  }()

  static let records: [JournalRecord] = [
    .described(description), .sent,
    .responded(
      StoredHead(
        ResponseHead(status: 206, fields: [HTTPHeader(name: "ETag", value: "\"\u{E9}\"")])), offset: 5,
      boot: "b"),
    .synced(size: 1 << 40), .completed(size: 3), .moving(to: "/x\n", options: 3), .moved,
    .answered(hasBody: true), .restarted, .located(url: "https://a/"), .delivering,
    .uploading(JournalStateTests.upload, mayBeComplete: true), .uploading(nil, mayBeComplete: false),
    .identified(Representation(length: 9, validator: "\"a-b\""), boot: "b"),
    .identified(Representation(length: nil, validator: nil), boot: ""), .wrote(ByteRanges([3..<7])),
    .present(ByteRanges([0..<3, 5..<Int.max])), .present(ByteRanges()), .configured,
  ]

  /// Returns a line with a right checksum.
  private func line(_ json: String) throws -> Data {
    let sum = try #require(SumOfBytes().text(.sha256, Array(json.utf8)))
    return Data("\(sum.prefix(16)) \(json)\n".utf8)
  }

  private func bytes(_ records: [JournalRecord]) throws -> Data {
    try records.reduce(into: Data()) { $0 += try #require(log.line(of: $1)) }
  }

  @Test("Every record is read back unchanged") func roundTrip() throws {
    let bytes = try bytes(Self.records)
    let content = log.content(of: bytes)
    #expect(content.records == Self.records)
    #expect(content.length == bytes.count && !content.isOfLaterVersion)
  }

  @Test("A line has the JSON of an encoder, also of ranges, which are written without one") func encoding()
    throws
  {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    for record in Self.records + [.wrote(ByteRanges()), .wrote(ByteRanges([0..<3, 9..<Int.max]))] {
      let json = try encoder.encode(record)
      #expect(try log.line(of: record) == line(String(decoding: json, as: UTF8.self)))
    }
  }

  @Test("Records of which one cannot be encoded are no journal") func notEncodable() {
    var description = Self.description
    description.created = .nan
    #expect(log.line(of: .described(description)) == nil)
    #expect(log.lines(of: [.described(description), .sent]) == nil)
    #expect(log.lines(of: [.described(Self.description), .sent]) != nil)
  }

  @Test("A journal that ends at any byte has the records before it") func cuts() throws {
    let lines = try Self.records.map { try #require(log.line(of: $0)) }
    let whole = lines.reduce(into: Data()) { $0 += $1 }
    for cut in 0...whole.count {
      let content = log.content(of: whole.prefix(cut))
      var (count, end) = (0, 0)
      while count < lines.count, end + lines[count].count <= cut {
        end += lines[count].count
        count += 1
      }
      #expect(content.records == Array(Self.records.prefix(count)))
      #expect(content.length == end && !content.isOfLaterVersion)
    }
  }

  @Test("A damaged byte ends the journal before its line") func damage() throws {
    let first = try #require(log.line(of: Self.records[0]))
    let whole = try bytes(Self.records)
    for position in first.count..<whole.count {
      var damaged = whole
      damaged[position] ^= 0x01
      let content = log.content(of: damaged)
      #expect(content.records.count < Self.records.count && !content.isOfLaterVersion)
      #expect(content.records == Array(Self.records.prefix(content.records.count)))
      #expect(content.length <= position)
    }
  }

  @Test("Journals from before resumable uploads are read") func olderJournal() throws {
    let json =
      #"{"described":{"_0":{"bodyFile":{"isOwned":false,"path":"/a","size":7},"boot":"b","cachePolicy":0,"#
      + #""created":1000,"fields":{},"kind":"upload","method":"POST","timeout":60,"url":"https://a/"}}}"#
    let line = try line(json)
    let sent = try #require(log.line(of: .sent))
    let content = log.content(of: line + sent)
    #expect(content.length == line.count + sent.count)
    let stored = try #require(JournalState(content.records))
    #expect(stored.description.bodyFile?.size == 7 && stored.description.bodyFile?.modified == nil)
    #expect(stored.description.resumption == nil && stored.upload == nil && stored.isSent)
    // A journal without the new options is written as before.
    var description = TransferDescription(
      kind: .upload, url: "https://a/", method: "POST", fields: [:], created: 1000, boot: "b")
    description.bodyFile = .init(path: "/a", isOwned: false, size: 7)
    #expect(try #require(log.line(of: .described(description))) == line)
  }

  @Test(
    "An undamaged line with an unknown record, or with impossible values, ends the journal as one of a later version",
    arguments: [
      #"{"shrunk":{"size":3}}"#, #"{"wrote":{"_0":"9-0"}}"#, #"{"wrote":{"_0":"-1-3"}}"#,
      #"{"wrote":{"_0":"0-9223372036854775807"}}"#, #"{"present":{"_0":"5-6,0-3"}}"#,
      #"{"synced":{"size":9223372036854775808}}"#, #"{"synced":{"size":1e300}}"#,
      #"{"identified":{"_0":{"length":-1},"boot":""}}"#,
      #"{"identified":{"_0":{"validator":"\"a\"\r\nX: \"b\""},"boot":""}}"#,
      #"{"identified":{"_0":{"validator":"Mon\nX: b"},"boot":""}}"#,
      #"{"identified":{"_0":{"validator":"\"a"},"boot":""}}"#, "{}", "", "[]", #"{"sent":{},"moved":{}}"#,
      String(repeating: "[", count: 100_000),
    ])
  func laterVersion(json: String) throws {
    let first = try bytes([.described(Self.description), .synced(size: 3)])
    let content = log.content(of: first + (try line(json)) + (try bytes([.sent])))
    #expect(content.isOfLaterVersion)
    #expect(content.records == [.described(Self.description), .synced(size: 3)])
    #expect(content.length == first.count)
    #expect(log.state(of: first) != nil)
    #expect(log.state(of: first + (try line(json))) == nil, "the unknown record may take bytes back")
  }

  @Test("Arbitrary bytes are not a journal", .seeded) func noise() {
    var generator = Seed.generator()
    for _ in 0..<500 {
      let noise = Data(
        (0..<Int.random(in: 0...300, using: &generator)).map { _ in
          UInt8.random(in: 0...127, using: &generator)
        })
      #expect(log.content(of: noise).records.isEmpty)
    }
  }

  @Test("A slice of other bytes is read from its beginning") func slice() throws {
    let bytes = try bytes(Self.records)
    #expect(log.content(of: (Data([1, 2, 3]) + bytes).dropFirst(3)).records == Self.records)
  }
}

/// A weak checksum, which is enough to notice one changed bit.
struct SumOfBytes: HashFunctions {
  func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? {
    var sum: UInt64 = 14_695_981_039_346_656_037
    for byte in bytes { sum = (sum ^ UInt64(byte)) &* 1_099_511_628_211 }
    return (0..<8).map { UInt8(truncatingIfNeeded: sum >> ($0 * 8)) }
  }

  func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? { nil }
}
