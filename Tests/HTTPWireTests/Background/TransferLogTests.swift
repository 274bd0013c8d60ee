import FoundationEssentials
import HTTPWire
import Randomness
import Testing

/// The journal of a background transfer as bytes.
struct TransferLogTests {
  private let log = TransferLog(hashes: SumOfBytes())

  static let description: TransferDescription = {
    var description = TransferDescription(
      kind: .upload, url: "https://example.com/a?b=1", method: "PUT", fields: ["X-A": "ü\n\u{1F980}"],
      created: 1_700_000_000.25, boot: "boot")
    description.body = Data([0, 10, 255])
    description.bodyFile = .init(path: "/tmp/a b", isOwned: true, size: 7)
    description.bodyFile?.modified = 1_700_000_000.123456
    description.earliestBegin = 1_700_000_100
    description.resumption = UploadResumption.Policy()
    description.resumption?.dialect = .tus
    description.resumption?.metadata = "filename YQ=="
    return description
  }()

  static let records: [TransferRecord] = [
    .described(description), .sent,
    .responded(
      StoredHead(
        ResponseHead(status: 206, fields: [HTTPHeader(name: "ETag", value: "\"\u{E9}\"")])), offset: 5,
      boot: "b"),
    .synced(size: 1 << 40), .completed(size: 3), .moving(to: "/x\n", options: 3), .moved,
    .answered(hasBody: true), .restarted, .located(url: "https://a/"), .delivering,
    .uploading(StoredTransferTests.upload, mayBeComplete: true), .uploading(nil, mayBeComplete: false),
  ]

  private func bytes(_ records: [TransferRecord]) throws -> Data {
    try records.reduce(into: Data()) { $0 += try #require(log.line(of: $1)) }
  }

  @Test("Every record is read as it was written") func roundTrip() throws {
    let bytes = try bytes(Self.records)
    let (read, length) = log.records(in: bytes)
    #expect(read == Self.records)
    #expect(length == bytes.count)
  }

  @Test("A journal that ends at any byte has the records before it") func cuts() throws {
    let lines = try Self.records.map { try #require(log.line(of: $0)) }
    let whole = lines.reduce(into: Data()) { $0 += $1 }
    for cut in 0...whole.count {
      let (read, length) = log.records(in: whole.prefix(cut))
      var (count, end) = (0, 0)
      while count < lines.count, end + lines[count].count <= cut {
        end += lines[count].count
        count += 1
      }
      #expect(read == Array(Self.records.prefix(count)))
      #expect(length == end)
    }
  }

  @Test("A damaged byte ends the journal before its line") func damage() throws {
    let first = try #require(log.line(of: Self.records[0]))
    let whole = try bytes(Self.records)
    for position in first.count..<whole.count {
      var damaged = whole
      damaged[position] ^= 0x01
      let (read, length) = log.records(in: damaged)
      #expect(read.count < Self.records.count)
      #expect(read == Array(Self.records.prefix(read.count)))
      #expect(length <= position)
    }
  }

  @Test("Journals from before resumable uploads are read") func olderJournal() throws {
    let json =
      #"{"described":{"_0":{"bodyFile":{"isOwned":false,"path":"/a","size":7},"boot":"b","cachePolicy":0,"#
      + #""created":1000,"fields":{},"kind":"upload","method":"POST","timeout":60,"url":"https://a/"}}}"#
    let sum = try #require(SumOfBytes().text(.sha256, Array(json.utf8)))
    let line = Data("\(sum.prefix(16)) \(json)\n".utf8)
    let sent = try #require(log.line(of: .sent))
    let (records, length) = log.records(in: line + sent)
    #expect(length == line.count + sent.count)
    let stored = try #require(StoredTransfer(records))
    #expect(stored.description.bodyFile?.size == 7 && stored.description.bodyFile?.modified == nil)
    #expect(stored.description.resumption == nil && stored.upload == nil && stored.isSent)
    // A journal without the new options is written as before.
    var description = TransferDescription(
      kind: .upload, url: "https://a/", method: "POST", fields: [:], created: 1000, boot: "b")
    description.bodyFile = .init(path: "/a", isOwned: false, size: 7)
    #expect(try #require(log.line(of: .described(description))) == line)
  }

  @Test("Arbitrary bytes are no journal", .seeded) func noise() {
    var generator = Seed.generator()
    for _ in 0..<500 {
      let noise = Data(
        (0..<Int.random(in: 0...300, using: &generator)).map { _ in
          UInt8.random(in: 0...127, using: &generator)
        })
      #expect(log.records(in: noise).records.isEmpty)
    }
  }

  @Test("A slice of other bytes is read from its beginning") func slice() throws {
    let bytes = try bytes(Self.records)
    #expect(log.records(in: (Data([1, 2, 3]) + bytes).dropFirst(3)).records == Self.records)
  }
}

/// A weak checksum, which is enough to notice one changed bit.
private struct SumOfBytes: HashFunctions {
  func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? {
    var sum: UInt64 = 14_695_981_039_346_656_037
    for byte in bytes { sum = (sum ^ UInt64(byte)) &* 1_099_511_628_211 }
    return (0..<8).map { UInt8(truncatingIfNeeded: sum >> ($0 * 8)) }
  }

  func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? { nil }
}
