import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Servers whose answers to a resumed download are not the rest of the same file.
@Suite("Scripted answers to resumed downloads", .timeLimit(.minutes(5))) struct ResumeScriptTests {
  private let folder: TemporaryFolder
  private static let date = "Mon, 01 Jan 2024 00:00:00 GMT"

  init() throws { folder = try TemporaryFolder() }

  private func end(_ request: DownloadRequest) async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  /// Returns resume data that continue after the first five bytes, which are `01234`.
  private func resumeData(_ server: HTTPTestServer, validator: String = "\"v1\"") throws -> Data {
    let file = try folder.file("Alamofire_part.tmp", Data("01234".utf8))
    return try PropertyListSerialization.data(
      fromPropertyList: [
        "version": 1, "url": server.url("/"), "method": "GET", "headers": [String: String](),
        "file": file.path,
        "received": 5, "validator": validator, "total": 10,
      ], format: .binary, options: 0)
  }

  private static func rest(_ fields: [(String, String)], _ text: String = "56789") -> Reply {
    var reply = Reply.text(text).with(header: "Content-Range", value: "bytes 5-9/10")
    for (name, value) in fields { reply = reply.with(header: name, value: value) }
    reply.status = 206
    return reply
  }

  private func text(_ response: AFDownloadResponse<URL?>) throws -> String {
    let url = try #require(response.fileURL, "\(String(describing: response.error))")
    defer { try? FileManager.default.removeItem(at: url) }
    return try String(contentsOf: url, encoding: .utf8)
  }

  @Test(
    "A rest without the strong validator of the part is not appended",
    arguments: [
      ("\"v1\"", []), ("\"v1\"", [("ETag", "W/\"v1\"")]), ("\"v1\"", [("ETag", "\"v2\"")]),
      ("\"v1\"", [("Last-Modified", date)]), (date, [("ETag", "\"v1\"")]),
      (date, [("Last-Modified", "Mon, 01 Jan 2024 00:00:01 GMT")]),
    ] as [(String, [(String, String)])])
  func unprovenRest(validator: String, fields: [(String, String)]) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.rest(fields, "other"), .text("all of it"))
    let response = await end(
      Session.real().download(resumingWith: try resumeData(server, validator: validator)))
    #expect(try text(response) == "all of it")
    #expect(server.recordedRequests.map { $0.header("If-Range") } == [validator, nil])
  }

  @Test(
    "A rest with the strong validator of the part is appended; a date in If-Range need not be repeated",
    arguments: [("\"v1\"", [("ETag", "\"v1\"")]), (date, [("Last-Modified", date)]), (date, [])]
      as [(String, [(String, String)])])
  func provenRest(validator: String, fields: [(String, String)]) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.rest(fields))
    let response = await end(
      Session.real().download(resumingWith: try resumeData(server, validator: validator)))
    #expect(try text(response) == "0123456789")
  }

  @Test("Bytes that follow the announced rest are an error, and the part stays")
  func longerRest() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.rest([("ETag", "\"v1\"")], "56789 and more").framed(.chunked))
    let data = try resumeData(server)
    let response = await end(Session.real().download(resumingWith: data))
    let code = (response.error?.underlyingError as? URLError)?.code
    #expect(code == .badServerResponse, "\(response.result)")
    server.enqueue(Self.rest([("ETag", "\"v1\"")]))
    let next = await end(Session.real().download(resumingWith: response.resumeData ?? data))
    #expect(try text(next).prefix(5) == "01234")
  }

  @Test("A rest that ends early is an error with resume data") func shorterRest() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.rest([("ETag", "\"v1\"")], "567").framed(.chunked), Self.rest([("ETag", "\"v1\"")]))
    let request = Session.real().download(resumingWith: try resumeData(server))
    let response = await end(request)
    #expect(
      (response.error?.underlyingError as? URLError)?.code == .networkConnectionLost, "\(response.result)")
    #expect(response.resumeData != nil)
    // A handler that is added after the end gets the same, not the data that the download continued from.
    #expect(await end(request).resumeData == response.resumeData)
  }

  @Test("The total of a rest without a length is not known") func unknownTotal() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.rest([("ETag", "\"v1\"")]).framed(.chunked))
    let request = Session.real().download(resumingWith: try resumeData(server))
    let (totals, queue) = (Recorder<Int64>(), DispatchQueue(label: "test.progress"))
    request.downloadProgress(queue: queue) { totals.add($0.totalUnitCount) }
    #expect(try text(await end(request)) == "0123456789")
    queue.sync {}
    #expect(Set(totals.values) == [-1], "\(totals.values)")
  }

  @Test("The earlier bytes do not count if the server sends the whole file") func wholeFile() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("another text"))
    let request = Session.real().download(resumingWith: try resumeData(server))
    let (counts, queue) = (Recorder<Int64>(), DispatchQueue(label: "test.progress"))
    request.downloadProgress(queue: queue) {
      counts.add($0.completedUnitCount)
      counts.add($0.totalUnitCount)
    }
    #expect(try text(await end(request)) == "another text")
    queue.sync {}
    #expect(Set(counts.values) == [12], "\(counts.values)")
    #expect(request.downloadProgress.completedUnitCount == 12)
  }

  @Test("bodySizeLimit holds for the file, not for the rest of it", arguments: [true, false])
  func limit(isChunked: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    let rest = Self.rest([("ETag", "\"v1\"")])
    for _ in 0..<2 { server.enqueue(isChunked ? rest.framed(.chunked) : rest) }
    for limit in [9, 10] as [Int64] {
      var options = TransportOptions()
      options.bodySizeLimit = limit
      let response = await end(
        Session.real(options: options).download(resumingWith: try resumeData(server)))
      if limit == 10 {
        #expect(try text(response) == "0123456789")
      } else {
        #expect((response.error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)
        #expect(try Data(contentsOf: folder["Alamofire_part.tmp"]) == Data("01234".utf8))
      }
    }
  }

  @Test("A status of success without a range leaves the part", arguments: [203, 204])
  func otherSuccess(status: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Reply.status(status).with(header: "ETag", value: "\"v1\""))
    let response = await end(Session.real().download(resumingWith: try resumeData(server)))
    #expect(response.response?.statusCode == status)
    #expect(try Data(contentsOf: folder["Alamofire_part.tmp"]) == Data("01234".utf8))
    if let url = response.fileURL { try? FileManager.default.removeItem(at: url) }
  }
}
