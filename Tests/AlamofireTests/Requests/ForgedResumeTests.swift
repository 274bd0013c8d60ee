import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// Modified resume data, and servers with invalid lengths and ranges.
@Suite(.timeLimit(.minutes(5))) struct ForgedResumeTests {
  private let session = Session.real()
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func end(_ request: DownloadRequest) async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  /// Returns resume data that continue after five bytes of `file`, without a total length.
  private func resumeData(_ url: String, file: String, _ changes: [String: Any] = [:]) throws -> Data {
    var list: [String: Any] = [
      "version": 1, "url": url, "method": "GET", "headers": [String: String](), "file": file, "received": 5,
      "validator": "\"v1\"",
    ]
    for (key, value) in changes { list[key] = value }
    return try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
  }

  /// Returns resume data as a journal, whose lines have correct checksums.
  private func journal(_ url: String, file: String?, _ records: JournalRecord...) throws -> Data {
    var description = TransferDescription(
      kind: .download, url: url, method: "GET", fields: [:], created: 0, boot: "")
    description.file = file
    return try #require(Journal.standard.lines(of: [.described(description)] + records))
  }

  private static let version = JournalRecord.identified(
    Representation(length: nil, validator: "\"v1\""), boot: PartialFile.boot)
  private static let five = JournalRecord.present(ByteRanges(first: 5))

  private func isRefused(_ response: AFDownloadResponse<URL?>) -> Bool {
    (response.error?.underlyingError as? URLError)?.code == .cannotDecodeRawData
  }

  @Test(
    "A file that is not a partial download is not changed",
    arguments: ["people.txt", "Alamofire_people.txt", "people.tmp", ""])
  func foreignFile(name: String) async throws {
    let file = try folder.file(name.isEmpty ? "other" : name, Data("keep this".utf8))
    let server = try HTTPTestServer()
    let (url, path) = (server.url("/bytes/20"), name.isEmpty ? folder.url.path + "/" : file.path)
    for data in [try resumeData(url, file: path), try journal(url, file: path, Self.version, Self.five)] {
      let whole = await end(session.download(resumingWith: data))
      #expect(isRefused(whole))
      let cancelled = session.download(resumingWith: data)
      cancelled.cancel()
      #expect(await end(cancelled).error != nil)
    }
    #expect(try Data(contentsOf: file) == Data("keep this".utf8))
    #expect(server.recordedRequests.isEmpty)
  }

  @Test("A part that has a second name is not continued") func secondName() async throws {
    let file = try folder.file("Alamofire_part.tmp", Data("01234".utf8))
    #expect(link(file.path, folder["other"].path) == 0)
    let server = try HTTPTestServer(routes: .none.adding("/") { _, _ in .text("all of it") })
    let data = try journal(server.url("/"), file: file.path, Self.version, Self.five)
    let response = await end(session.download(resumingWith: data))
    let url = try #require(response.fileURL, "\(String(describing: response.error))")
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(try String(contentsOf: url, encoding: .utf8) == "all of it")
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil])
    #expect(try folder.names == ["Alamofire_part.tmp", "other"])
  }

  @Test("A total length below the length of the part is refused", arguments: [Int64.min, -1, 0, 4])
  func totals(total: Int64) async throws {
    let data = try resumeData("http://127.0.0.1:1/", file: "Alamofire_x.tmp", ["total": total])
    #expect(isRefused(await end(session.download(resumingWith: data))))
  }

  @Test("A validator that would be several fields is refused, and one that is missing")
  func validators() async throws {
    for validator in ["\"a\"\r\nX: \"b\"", "Mon\nX: b", "", "\"a"] {
      let data = try resumeData("http://127.0.0.1:1/", file: "Alamofire_x.tmp", ["validator": validator])
      #expect(isRefused(await end(session.download(resumingWith: data))), "\(validator)")
      let version = JournalRecord.identified(Representation(length: 9, validator: validator), boot: "")
      let lines = try journal("http://127.0.0.1:1/", file: "Alamofire_x.tmp", version, Self.five)
      #expect(isRefused(await end(session.download(resumingWith: lines))), "\(validator)")
    }
    for records in [
      [], [Self.five], [.identified(Representation(length: 9, validator: nil), boot: ""), Self.five],
    ] {
      var data = try journal("http://127.0.0.1:1/", file: "Alamofire_x.tmp")
      data += try #require(Journal.standard.lines(of: records))
      #expect(isRefused(await end(session.download(resumingWith: data))), "\(records)")
    }
    let noFile = try journal("http://127.0.0.1:1/", file: nil, Self.version, Self.five)
    #expect(isRefused(await end(session.download(resumingWith: noFile))))
  }

  @Test("Bytes that may be lost, and more than the file can have, begin the download again")
  func uncountedBytes() async throws {
    let file = try folder.file("Alamofire_part.tmp", Data("01234".utf8))
    let other = JournalRecord.identified(Representation(length: nil, validator: "\"v1\""), boot: "another")
    let short = JournalRecord.identified(Representation(length: 4, validator: "\"v1\""), boot: "")
    for records in [
      [other, .wrote(ByteRanges(first: 5))], [short, Self.five], [Self.version],
      [Self.version, .present(ByteRanges([1..<5]))], [Self.version, Self.five, .completed(size: 5)],
      [Self.version, .present(ByteRanges(first: -1))],
    ] {
      let server = try HTTPTestServer(routes: .none)
      server.enqueue(.text("all of it"))
      let data =
        try journal(server.url("/"), file: file.path) + (try #require(Journal.standard.lines(of: records)))
      let response = await end(session.download(resumingWith: data))
      let url = try #require(response.fileURL, "\(records): \(String(describing: response.error))")
      defer { try? FileManager.default.removeItem(at: url) }
      #expect(try String(contentsOf: url, encoding: .utf8) == "all of it")
      #expect(server.recordedRequests.map { $0.header("Range") } == [nil], "\(records)")
    }
  }

  @Test("A shorter file is continued with the bytes that it has, and a longer one where the data end")
  func otherSizes() async throws {
    for (content, counted, range) in [("012", "012", "bytes 3-9/10"), ("01234xxx", "01234", "bytes 5-9/10")] {
      let file = try folder.file("Alamofire_part.tmp", Data(content.utf8))
      let server = try HTTPTestServer(routes: .none)
      var rest = Reply.text(String("0123456789".dropFirst(counted.count))).with(
        header: "ETag", value: "\"v1\""
      )
      .with(header: "Content-Range", value: range)
      rest.status = 206
      server.enqueue(rest)
      let response = await end(
        session.download(resumingWith: try journal(server.url("/"), file: file.path, Self.version, Self.five))
      )
      let url = try #require(response.fileURL, "\(String(describing: response.error))")
      defer { try? FileManager.default.removeItem(at: url) }
      #expect(try String(contentsOf: url, encoding: .utf8) == "0123456789")
      #expect(server.recordedRequests.map { $0.header("Range") } == ["bytes=\(counted.count)-"])
    }
  }

  @Test("Resume data that were cut anywhere begin the download again, or are refused") func cuts()
    async throws
  {
    let file = try folder.file("Alamofire_part.tmp", Data("01234".utf8))
    let server = try HTTPTestServer(routes: .none.adding("/") { _, _ in .text("all of it") })
    let whole = try journal(server.url("/"), file: file.path, Self.version, Self.five)
    for length in stride(from: 0, to: whole.count, by: 13) {
      let response = await end(session.download(resumingWith: whole.prefix(length)))
      if let url = response.fileURL {
        #expect(try String(contentsOf: url, encoding: .utf8) == "all of it")
        try FileManager.default.removeItem(at: url)
      } else {
        #expect(isRefused(response), "\(length)")
      }
    }
    #expect(server.recordedRequests.allSatisfy { $0.header("Range") == nil })
  }

  /// The response to the second request, which is for the whole file, counts.
  @Test(
    "An impossible range starts the download again",
    arguments: [
      "5-9223372036854775807/*", "5-9223372036854775806/9223372036854775807", "5--9/10", "5-4/10", "5-/10",
      "-/-",
      "+5-9/10", "5-9/9", "5-9/-9223372036854775808", "5-9/x", "5-9", "*/10",
    ])
  func impossibleRanges(range: String) async throws {
    let file = try folder.file("Alamofire_part.tmp", Data("01234".utf8))
    let server = try HTTPTestServer(routes: .none)
    var rest = Reply.text("56789").with(header: "ETag", value: "\"v1\"")
      .with(header: "Content-Range", value: "bytes \(range)")
    rest.status = 206
    server.enqueue(rest, .text("all of it"))
    let response = await end(
      session.download(resumingWith: try resumeData(server.url("/"), file: file.path))
        .downloadProgress(queue: .global()) { _ in })
    let url = try #require(response.fileURL, "\(String(describing: response.error))")
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(try String(contentsOf: url, encoding: .utf8) == "all of it")
    #expect(server.recordedRequests.map { $0.header("Range") } == ["bytes=5-", nil])
    #expect(server.recordedRequests.map { $0.header("If-Range") } == ["\"v1\"", nil])
    #expect(response.metrics?.transactionMetrics.count == 2)
  }

  /// Announces a length whose sum with the existing bytes would overflow.
  @Test("A length that contradicts the range starts the download again") func contradictoryLength()
    async throws
  {
    let file = try folder.file("Alamofire_part.tmp", Data("01234".utf8))
    let server = try HTTPTestServer(routes: .none)
    let head =
      "HTTP/1.1 206 OK\r\nETag: \"v1\"\r\nContent-Length: 9223372036854775807\r\n"
      + "Content-Range: bytes 5-9223372036854775806/9223372036854775807\r\n\r\n56789"
    server.enqueue(Reply(effect: .raw(Array(head.utf8), closes: true)), .text("all of it"))
    let response = await end(
      session.download(resumingWith: try resumeData(server.url("/"), file: file.path))
        .downloadProgress(queue: .global()) { _ in })
    let url = try #require(response.fileURL, "\(String(describing: response.error))")
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(try String(contentsOf: url, encoding: .utf8) == "all of it")
  }
}
