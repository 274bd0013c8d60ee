import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

@Suite(.timeLimit(.minutes(5))) struct DownloadTests {
  @Test("A file is moved to its destination") func destination() async throws {
    let server = try HTTPTestServer()
    let folder = try Folder()
    let file = try folder.file("it")
    let end = await Manager.isolated().download(.GET, server.url("/bytes/1000")) { _, response in
      #expect(response.statusCode == 200)
      return file
    }.end()
    #expect(end.error == nil)
    #expect(end.data == nil)
    #expect(try Data(contentsOf: file) == Data(Reply.patternBytes(1000)))
  }

  @Test("A download replaces no file and makes no folder") func noReplacement() async throws {
    let server = try HTTPTestServer()
    let folder = try Folder()
    let there = try folder.file("there", "old")
    let nowhere = folder.url.appendingPathComponent("none/it")
    let occupied = await Manager.isolated().download(.GET, server.url("/bytes/10")) { _, _ in there }.end()
    #expect(occupied.fault == "NSCocoaErrorDomain \(CocoaError.fileWriteFileExists.rawValue)")
    #expect(try String(contentsOf: there, encoding: .utf8) == "old")
    let homeless = await Manager.isolated().download(.GET, server.url("/bytes/10")) { _, _ in nowhere }.end()
    #expect(homeless.error?.domain == NSCocoaErrorDomain)
    #expect(!FileManager.default.fileExists(atPath: nowhere.path))
  }

  @Test("The file is moved before validators are called") func validators() async throws {
    let server = try HTTPTestServer()
    let file = try Folder().file("it")
    let folder = try Folder()
    let target = try folder.file("it")
    #expect(file != target)
    let request = Manager.isolated().download(.GET, server.url("/status/404")) { _, _ in target }
      .validate(statusCode: 200..<300)
    #expect(await request.end().fault == "com.alamofire.error -6003")
    #expect(FileManager.default.fileExists(atPath: target.path))
  }

  @Test("A cancelled download is resumed from its data", .steps) func resumeData() async throws {
    let server = try HTTPTestServer()
    let folder = try Folder()
    let file = try folder.file("whole")
    let size = 200_000
    let gate = Gate()
    let half = Array(Reply.patternBytes(size).prefix(100_000))
    server.enqueue(
      Reply(
        headers: [.init(name: "ETag", value: "\"1\""), .init(name: "Accept-Ranges", value: "bytes")],
        body: .parts([.bytes(half), .gate(gate), .bytes(Array(Reply.patternBytes(size).suffix(100_000)))])
      ).framed(.contentLength))
    let notes = Notes()
    let manager = Manager.isolated(starting: false)
    step("cancelled download")
    let request = manager.download(.GET, server.url("/file")) { _, _ in file }
      .progress { _, total, _ in if total == 100_000 { notes.add("half") } }
    request.resume()
    _ = await notes.wait(for: 1)
    request.cancel()
    let end = await request.end()
    #expect(end.fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    let resumeData = try #require(end.data)
    #expect(request.resumeData == resumeData)
    gate.open()
    server.enqueue(
      Reply(
        status: 206,
        headers: [
          .init(name: "ETag", value: "\"1\""),
          .init(name: "Content-Range", value: "bytes 100000-199999/200000"),
        ], body: .bytes(Array(Reply.patternBytes(size).suffix(100_000)))))
    step("resumed download")
    let rest = manager.download(resumeData: resumeData) { _, _ in file }
    rest.resume()
    #expect(await rest.end().error == nil)
    #expect(server.recordedRequests.last?.header("Range") == "bytes=100000-")
    #expect(try Data(contentsOf: file) == Data(Reply.patternBytes(size)))
    step("download with other data")
    let wrong = manager.download(resumeData: Data("no".utf8)) { _, _ in file }
    wrong.resume()
    #expect(await wrong.end().error != nil)
  }

  @Test("The suggested destination is a file of the folder") func suggestedDestination() throws {
    let url = try #require(URL(string: "http://example.com/a/report.pdf"))
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: [:]))
    let place = Request.suggestedDownloadDestination(directory: .cachesDirectory, domain: .userDomainMask)
    let folder = try #require(FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first)
    #expect(place(url, response) == folder.appendingPathComponent("report.pdf"))
  }
}
