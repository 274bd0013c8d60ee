import FoundationEssentials
import HTTPWire
import Randomness
import Testing

/// The bytes of a file that count after a crash.
@Suite("Bytes of journals") struct JournalBytesTests {
  private static let description = TransferDescription(
    kind: .download, url: "https://example.com/", method: "GET", fields: [:], created: 0, boot: "boot")
  private static let version = Representation(length: 100, validator: "\"v\"")
  private let journal = Journal(hashes: SumOfBytes())

  private func received(
    _ records: JournalRecord..., boot: String = "boot", fileSize: Int64 = 100
  ) throws -> String {
    try #require(JournalState([.described(Self.description)] + records))
      .received(boot: boot, fileSize: fileSize).text
  }

  private static let begun = JournalRecord.identified(version, boot: "boot")
  private static func wrote(_ ranges: Range<Int>...) -> JournalRecord { .wrote(ByteRanges(ranges)) }
  private static func present(_ ranges: Range<Int>...) -> JournalRecord { .present(ByteRanges(ranges)) }

  @Test("Written bytes count as long as the system runs, those on the disk after a restart as well")
  func boots() throws {
    let records = [Self.begun, Self.present(0..<10, 50..<60), Self.wrote(10..<20), Self.wrote(80..<90)]
    let state = try #require(JournalState([.described(Self.description)] + records))
    #expect(state.received(boot: "boot", fileSize: 100).text == "0-19,50-59,80-89")
    #expect(state.received(boot: "other", fileSize: 100).text == "0-9,50-59")
    #expect(state.representation == Self.version)
  }

  @Test("A boot that is not known is another one") func unknownBoot() throws {
    let begun = JournalRecord.identified(Self.version, boot: "")
    #expect(try received(begun, Self.wrote(0..<50), Self.present(0..<20), boot: "") == "0-19")
    let head = StoredHead(ResponseHead(status: 200))
    #expect(try received(.responded(head, offset: 0, boot: ""), .synced(size: 20), boot: "") == "0-19")
  }

  @Test("A shorter file has the bytes up to its size, and no journal has bytes beyond the file")
  func fileSizes() throws {
    for (size, expected) in [(0, ""), (1, "0-0"), (25, "0-9,20-24"), (.max, "0-9,20-29"), (-1, "")]
      as [(Int64, String)]
    {
      #expect(try received(Self.begun, Self.present(0..<10), Self.wrote(20..<30), fileSize: size) == expected)
    }
    #expect(
      try received(Self.begun, Self.wrote(0..<Int.max), fileSize: 7) == "0-6", "the file is appended to")
  }

  @Test("Without a representation, no bytes count; with another one, the earlier ones do not")
  func identities() throws {
    #expect(try received(Self.wrote(0..<10), Self.present(0..<10)) == "")
    let other = JournalRecord.identified(Representation(length: 90, validator: nil), boot: "boot")
    #expect(try received(Self.begun, Self.wrote(0..<10), Self.present(0..<5), other) == "")
    #expect(try received(Self.begun, Self.wrote(0..<10), other, Self.wrote(4..<6)) == "4-5")
    let head = StoredHead(ResponseHead(status: 206))
    #expect(try received(.responded(head, offset: 40, boot: "boot"), other) == "")
  }

  @Test("The bytes of a complete file are on the disk, up to the offset of a later response")
  func completion()
    throws
  {
    let head = StoredHead(ResponseHead(status: 206))
    let complete = [
      JournalRecord.responded(head, offset: 0, boot: "boot"), .completed(size: 80), .restarted,
      .responded(head, offset: 40, boot: "boot"),
    ]
    let state = try #require(JournalState([.described(Self.description)] + complete))
    #expect(state.received(boot: "other", fileSize: 100).text == "0-39")
    #expect(state.received(boot: "boot", fileSize: 100).text == "0-99", "the file is appended to")
  }

  @Test("Records that come twice change nothing") func duplicates() throws {
    let records = [Self.begun, Self.present(0..<10), Self.wrote(5..<20)]
    let twice = records.flatMap { [$0, $0] } + [.described(Self.description)]
    let once = try #require(JournalState([.described(Self.description)] + records))
    #expect(JournalState([.described(Self.description)] + twice) == once)
  }

  @Test("Numbers below zero or beyond the file do not trap, and do not count bytes that the file lacks")
  func numbers() throws {
    let head = StoredHead(ResponseHead(status: 206))
    for number in [Int64.min, -1, 0, .max - 1, .max] {
      for fileSize in [Int64.min, -1, 0, 50, .max] {
        for record in [
          JournalRecord.responded(head, offset: number, boot: "boot"), .synced(size: number),
          .completed(size: number),
        ] {
          var state = try #require(JournalState([.described(Self.description), Self.begun, record]))
          let count = state.received(boot: "boot", fileSize: fileSize).count
          #expect(count <= max(0, fileSize), "\(record)")
          #expect(state.receivedSize(boot: "other", fileSize: fileSize) <= max(0, fileSize))
          _ = state.continuation(boot: "boot", fileSize: fileSize, isAtDestination: false)
          state.apply(.restarted)
          #expect(JournalState(state.records) == state)
        }
      }
    }
  }

  @Test("A journal that was cut or damaged at any byte counts no byte that was not written", .seeded)
  func damage() throws {
    var generator = Seed.generator()
    for _ in 0..<3 {
      var records = [JournalRecord.described(Self.description), Self.begun]
      var (written, onDisk) = (ByteRanges(), ByteRanges())
      for _ in 0..<6 {
        let start = Int.random(in: 0..<90, using: &generator)
        let range = start..<(start + Int.random(in: 1...10, using: &generator))
        written.insert(range)
        records.append(.wrote(ByteRanges([range])))
        if Bool.random(using: &generator) {
          onDisk = written
          records.append(.present(onDisk))
        }
      }
      let bytes = try #require(journal.lines(of: records))
      for position in 0...bytes.count {
        var damaged = [bytes.prefix(position), bytes.prefix(position) + Data(count: 9)]
        if position < bytes.count {
          var changed = bytes
          changed[position] ^= 1 << UInt8.random(in: 0...7, using: &generator)
          damaged += [changed, bytes.prefix(position) + bytes.dropFirst(position + 1)]
        }
        for bytes in damaged {
          let state = journal.state(of: bytes)
          let (now, later) = (
            state?.received(boot: "boot", fileSize: 100), state?.received(boot: "later", fileSize: 100)
          )
          #expect(now?.ranges.allSatisfy { written.contains($0) } ?? true, "\(position)")
          #expect(later?.ranges.allSatisfy { onDisk.contains($0) } ?? true, "\(position)")
        }
      }
    }
  }
}
