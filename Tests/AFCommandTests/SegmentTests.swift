import AFCommand
import Foundation
import HTTPTestServer
import Testing

/// Downloads in segments, and checksums.
@Suite(.timeLimit(.minutes(5))) struct SegmentTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  /// The SHA-256 of "body".
  private let checksum = "sha256:230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5"

  @Test("a file with the expected checksum is saved")
  func match() async throws {
    server.enqueue(.text("body"))
    let run = await Terminal().run("-o", folder.path("f"), "--checksum", checksum, server.url("/"))
    #expect(run.status == .success, "\(run.error)")
    #expect(FileManager.default.contents(atPath: folder.path("f")) == Data("body".utf8))
    #expect(run.bytes.isEmpty)
  }

  @Test("a file with another checksum is removed, and the failure names the option")
  func mismatch() async {
    server.enqueue(.text("other"))
    let run = await Terminal().run("-o", folder.path("f"), "--checksum", checksum, server.url("/"))
    #expect(run.status == .failure)
    #expect(run.error.contains("--checksum"))
    #expect(!FileManager.default.fileExists(atPath: folder.path("f")))
  }

  @Test("segments are requested at a time, and make the whole file")
  func segments() async throws {
    let count = 5_000_000
    let whole = await Terminal.pipe.run(server.url("/range/\(count)")).bytes
    server.forgetRequests()
    let run = await Terminal().run(
      "-o", folder.path("f"), "--segments", "3", server.url("/range/\(count)"), "X-A:1")
    #expect(run.status == .success, "\(run.error)")
    #expect(FileManager.default.contents(atPath: folder.path("f")) == whole)
    let requests = server.recordedRequests
    #expect(requests.count > 1)
    #expect(requests.allSatisfy { $0.header("Range") != nil && $0.header("X-A") == "1" })
  }

  @Test("a failure has the exit status of its response")
  func failure() async {
    let run = await Terminal().run("-o", folder.path("f"), "--segments", "2", server.url("/status/404"))
    #expect(run.status == .clientError)
    #expect(!FileManager.default.fileExists(atPath: folder.path("f")))
  }

  @Test(
    "options that do not fit are refused",
    arguments: [
      ["--segments", "2"], ["--segments", "0", "-o", "f"], ["--checksum", "md5:00", "-o", "f"],
      ["--checksum", "sha256:00", "-o", "f"], ["--segments", "2", "-co", "f"],
      ["--segments", "2", "-o", "f", "-f", "a=b"],
    ])
  func mistakes(arguments: [String]) {
    #expect(throws: UsageError.self) { try ArgumentParser.parse(["example.com"] + arguments) }
  }
}
