import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
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

  private func isRefused(_ response: AFDownloadResponse<URL?>) -> Bool {
    (response.error?.underlyingError as? URLError)?.code == .cannotDecodeRawData
  }

  @Test(
    "A file that is not a partial download is not changed",
    arguments: ["people.txt", "Alamofire_people.txt", "people.tmp", ""])
  func foreignFile(name: String) async throws {
    let file = try folder.file(name.isEmpty ? "other" : name, Data("keep this".utf8))
    let server = try HTTPTestServer()
    let data = try resumeData(server.url("/bytes/20"), file: name.isEmpty ? folder.url.path + "/" : file.path)
    let whole = await end(session.download(resumingWith: data))
    #expect(isRefused(whole))
    let cancelled = session.download(resumingWith: data)
    cancelled.cancel()
    #expect(await end(cancelled).error != nil)
    #expect(try Data(contentsOf: file) == Data("keep this".utf8))
    #expect(server.recordedRequests.isEmpty)
  }

  @Test("A total length below that of the part is refused", arguments: [Int64.min, -1, 0, 4])
  func totals(total: Int64) async throws {
    let data = try resumeData("http://127.0.0.1:1/", file: "Alamofire_x.tmp", ["total": total])
    #expect(isRefused(await end(session.download(resumingWith: data))))
  }

  /// The response to the second request, which is for the whole file, counts.
  @Test(
    "An impossible range starts the download again",
    arguments: [
      "5-9223372036854775807/*", "5-9223372036854775806/9223372036854775807", "5--9/10", "5-4/10", "5-/10",
      "-/-",
      "+5-9/10", "5-9/9",
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
  }

  @Test("A total length with a sign is ignored") func signedTotal() async throws {
    let file = try folder.file("Alamofire_part.tmp", Data("01234".utf8))
    let server = try HTTPTestServer(routes: .none)
    var rest = Reply.text("56789").with(header: "Content-Range", value: "bytes 5-9/-9223372036854775808")
      .with(header: "ETag", value: "\"v1\"")
    rest.status = 206
    server.enqueue(rest)
    let response = await end(session.download(resumingWith: try resumeData(server.url("/"), file: file.path)))
    let url = try #require(response.fileURL)
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(try String(contentsOf: url, encoding: .utf8) == "0123456789")
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
