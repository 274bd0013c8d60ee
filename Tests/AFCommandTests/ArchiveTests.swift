import AFCommand
import Foundation
import HTTPTestServer
import Testing

/// HTTP archives by `--har`.
@Suite(.timeLimit(.minutes(5))) struct ArchiveTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  private func entries() throws -> [[String: Any]] {
    let data = try Data(contentsOf: URL(fileURLWithPath: folder.path("a.har")))
    let document = try JSONSerialization.jsonObject(with: data) as? [String: Any]
    let log = try #require(document?["log"] as? [String: Any])
    return try #require(log["entries"] as? [[String: Any]])
  }

  private func urls() throws -> [String] {
    try entries().map { ($0["request"] as? [String: Any])?["url"] as? String ?? "" }
  }

  @Test("--har writes each request without its secrets, and the output stays")
  func requests() async throws {
    server.enqueue(.redirect(to: "/b?token=planted"), .text("done\n"))
    let run = await Terminal.pipe.run(
      "--har", folder.path("a.har"), "-a", "ann:planted", server.url("/a?api_key=planted"),
      "X-Api-Key:planted")
    #expect(run.status == .success && run.output == "done\n" && run.error == "")
    #expect(try urls() == [server.url("/a?api_key=redacted"), server.url("/b?token=redacted")])
    let request = try #require(try entries().first?["request"] as? [String: Any])
    let headers = try #require(request["headers"] as? [[String: String]])
    #expect(headers.contains { $0["name"] == "Host" })
    #expect(headers.contains(["name": "Authorization", "value": "Basic <redacted>"]))
    let text = try String(contentsOfFile: folder.path("a.har"), encoding: .utf8)
    #expect(!text.contains("planted") && !text.contains("YW5u"))
  }

  @Test("A new archive can be read by its owner alone, also through a link") func newPermissions()
    async throws
  {
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("target"))
    for (path, target) in [("a.har", "a.har"), ("link", "target")] {
      #expect(await Terminal.pipe.run("--har", folder.path(path), server.url("/get")).status == .success)
      var information = stat()
      #expect(lstat(folder.path(target), &information) == 0, "\(path)")
      #expect(information.st_mode & (S_IFMT | 0o777) == S_IFREG | 0o600, "\(path)")
    }
  }

  @Test("--har keeps the permissions of an earlier archive") func permissions() async throws {
    let path = try folder.file("a.har", "{}")
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    #expect(await Terminal.pipe.run("--har", path, server.url("/get")).status == .success)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o640)
    #expect((attributes[.size] as? NSNumber)?.intValue ?? 0 > 2)
  }

  @Test(
    "A session that cannot be stored after the response is a failure, and the archive is written",
    arguments: ["GET", "sse"])
  func lostSession(word: String) async throws {
    let events = Reply(headers: [.contentType("text/event-stream")], body: .parts(["data: 1\n\n"]))
    server.enqueue(events, .status(204))
    var terminal = Terminal.pipe
    let (place, jar) = (folder.path("lost"), folder.path("lost/jar"))
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    terminal.onOutput = { _ in try? FileManager.default.removeItem(atPath: place) }
    let run = await terminal.run("--har", folder.path("a.har"), "--cookie-jar", jar, word, server.url("/x"))
    #expect(run.status == .failure)
    #expect(run.error == "af: '\(jar)' cannot be written: No such file or directory.\n")
    #expect(try urls().first == server.url("/x"))
  }

  @Test("--har writes a failed request, an upload, events and a download in segments")
  func kinds() async throws {
    let failed = await Terminal.pipe.run("--har", folder.path("a.har"), "http://127.0.0.1:1/x")
    #expect(failed.status == .failure)
    #expect(try urls() == ["http://127.0.0.1:1/x"])
    let form = await Terminal.pipe.run("--har=\(folder.path("a.har"))", "-f", server.url("/post"), "a=b")
    #expect(form.status == .success)
    #expect(try entries().map { ($0["request"] as? [String: Any])?["method"] as? String } == ["POST"])
    server.enqueue(
      Reply(headers: [HTTPHeader(name: "Content-Type", value: "text/event-stream")], body: .bytes([])),
      .status(204))
    _ = await Terminal.pipe.run("--har", folder.path("a.har"), "sse", server.url("/events"))
    #expect(try urls().first == server.url("/events"))
    server.enqueue(.text("content"))
    let file = await Terminal.pipe.run(
      "--har", folder.path("a.har"), "--segments", "2", "-o", folder.path("file"), server.url("/file"))
    #expect(file.status == .success)
    #expect(try urls().allSatisfy { $0 == server.url("/file") } && !entries().isEmpty)
  }

  @Test("A file that cannot be written is found before a request is sent")
  func unwritable() async throws {
    let run = await Terminal.pipe.run("--har", folder.path("none/a.har"), server.url("/get"))
    #expect(run.status == .usage && run.error.contains("cannot be written: No such file or directory."))
    #expect(server.requestCount == 0)
  }

  @Test("An archive without requests is refused", arguments: ["--offline", "--curl"])
  func nothing(option: String) async throws {
    let run = await Terminal.pipe.run("--har", folder.path("a.har"), option, server.url("/get"))
    #expect(run.status == .usage && run.error.contains("leave out --offline and --curl"))
    #expect(!FileManager.default.fileExists(atPath: folder.path("a.har")))
  }
}
