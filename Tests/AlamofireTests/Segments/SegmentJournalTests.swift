import Alamofire
import Foundation
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

private let KiB = 1024

/// The record next to a partial file after a crash. Whatever it says, the download ends with the right file.
@Suite("Records of segments", .timeLimit(.minutes(5))) struct SegmentJournalTests {
  private let folder: SegmentedDownloadFolder
  private let file = SegmentedFile(size: 200 * KiB)
  private let server: HTTPTestServer

  init() throws {
    folder = try SegmentedDownloadFolder()
    server = try file.server()
  }

  /// Downloads with the remaining files, whose bytes outside of `present` are wrong. Returns the number of bytes that
  /// were requested.
  private func requested(
    after record: Data, present: ByteRanges = ByteRanges(), size: Int? = nil
  ) async throws -> Int {
    defer { folder.remove() }
    var bytes = Data(count: file.size)
    for range in present.ranges { bytes.replaceSubrange(range, with: file.bytes[range]) }
    try folder.putPart((bytes + Data(count: 10)).prefix(size ?? file.size), record)
    let response = await Session.real()
      .segmentedDownload(server.url("/file"), minimumSegmentSize: 64 * KiB, to: folder.destination).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    return file.ranges.map(\.count).reduce(0, +)
  }

  private func record(
    _ records: JournalRecord..., url: String? = nil, boot: String = PartialFile.boot
  ) throws -> Data {
    try SegmentedDownloadFolder.record(url ?? server.url("/file"), size: file.size, boot: boot, records)
  }

  private static let part = ByteRanges([10_000..<50_000, 90_000..<100_000])
  private static let wrote = JournalRecord.wrote(part)
  private static let present = JournalRecord.present(part)

  @Test("Written bytes are not requested again, also if their lines come twice") func written() async throws {
    let record = try record(Self.wrote, Self.present, Self.wrote, Self.present)
    #expect(try await requested(after: record, present: Self.part) == file.size - Self.part.count)
  }

  @Test(
    "Written bytes of another boot are requested again, those on the disk are not", arguments: ["other", ""])
  func otherBoot(boot: String) async throws {
    let record = try record(.present(ByteRanges([10_000..<50_000])), Self.wrote, boot: boot)
    let onDisk = ByteRanges([10_000..<50_000])
    #expect(try await requested(after: record, present: onDisk) == file.size - onDisk.count)
  }

  @Test("A shorter file is continued with the bytes that it has") func shorter() async throws {
    #expect(
      try await requested(after: try record(Self.present), present: Self.part, size: 30_000) == file.size
        - 20_000)
  }

  @Test("A longer file begins again") func longer() async throws {
    #expect(try await requested(after: try record(Self.present), size: file.size + 1) == file.size)
  }

  @Test("A record that was cut or damaged anywhere ends with the right file") func damage() async throws {
    let whole = try record(.present(ByteRanges([10_000..<50_000])), .wrote(ByteRanges([90_000..<100_000])))
    for position in stride(from: 0, to: whole.count, by: 41) {
      var changed = whole
      changed[position] ^= 1
      for record in [whole.prefix(position), changed] {
        let before = file.ranges.map(\.count).reduce(0, +)
        let count = try await requested(after: record, present: Self.part) - before
        #expect([0, 40_000, 50_000].contains(file.size - count), "\(position)")
      }
    }
  }

  @Test("Records of another URL, of other versions of the library, and without a version begin again")
  func others() async throws {
    let head =
      "segmented download 1\nurl \(server.url("/file"))\nlength \(file.size)\nvalidator \"v1\"\n"
      + "boot \(PartialFile.boot)\nranges 10000-49999\n"
    let json = #"{"shrunk":{"size":3}}"#
    let sum = try #require(OpenSSLHashes().text(.sha256, Array(json.utf8)))
    for record in [
      Data("\(head)check \(FNVHash(head).text)\n".utf8), try record(Self.present, url: server.url("/other")),
      try record(Self.present) + Data("\(sum.prefix(16)) \(json)\n".utf8),
      try record(
        Self.present, .identified(Representation(length: file.size, validator: nil), boot: ""), Self.present),
      try record(
        Self.present, .identified(Representation(length: nil, validator: "\"v1\""), boot: ""), Self.present),
      Data(), Data("\n".utf8),
    ] {
      let before = file.ranges.map(\.count).reduce(0, +)
      #expect(
        try await requested(after: record) - before == file.size, "\(String(decoding: record, as: UTF8.self))"
      )
    }
  }
}
