import Alamofire
import Foundation
import FoundationNetworking
import Glibc
import HTTPTestServer
import Testing

/// The permissions of downloaded files.
@Suite("Modes of downloads", .timeLimit(.minutes(5))) struct DownloadModeTests {
  private let folder: TemporaryFolder
  private let server: HTTPTestServer

  init() throws {
    folder = try TemporaryFolder()
    server = try HTTPTestServer()
  }

  private func mode(_ url: URL) throws -> Int {
    let value = try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? NSNumber
    return try #require(value?.intValue)
  }

  /// Returns the mode of a file that is created with 0666, less the umask.
  private func expected() throws -> Int {
    let probe = folder["probe"]
    let descriptor = open(probe.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
    #expect(descriptor >= 0)
    close(descriptor)
    defer { unlink(probe.path) }
    return try mode(probe)
  }

  private func end(_ request: DownloadRequest) async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  @Test("A file at its destination has the mode that the umask gives")
  func destination() async throws {
    for options in [[], .removePreviousFile] as [DownloadRequest.Options] {
      let target = folder["file"]
      let response = await end(
        Session.real().download(server.url("/bytes/100"), to: { _, _ in (target, options) }))
      #expect(response.error == nil)
      #expect(try mode(target) == (try expected()))
    }
  }

  @Test(
    "A file without a destination is readable by its owner alone, also if no body was written to it",
    arguments: [("/bytes/100", 100), ("/status/204", 0), ("/redirect/1", 0)])
  func temporary(path: String, count: Int) async throws {
    let response = await end(Session.real().download(server.url(path)).redirect(using: .doNotFollow))
    let url = try #require(response.fileURL)
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(try mode(url) == 0o600)
    #expect(try Data(contentsOf: url).count == count)
  }

  @Test("A body without bytes has the same mode") func empty() async throws {
    let target = folder["empty"]
    let response = await end(
      Session.real().download(server.url("/status/204"), to: { _, _ in (target, []) }))
    #expect(response.error == nil)
    #expect(try mode(target) == (try expected()))
  }

  @Test("A background download has the same mode") func background() async throws {
    let fixture = try BackgroundFixture()
    let session = fixture.session()
    let request = session.download(server.url("/bytes/100"), to: fixture.destination("file"))
    #expect(await request.ended().error == nil)
    #expect(try mode(fixture.folder["file"]) == (try expected()))
    let other = await session.download(server.url("/bytes/100")).ended()
    let url = try #require(other.fileURL)
    #expect(await fixture.isEmptied())
    if url.path.hasPrefix(FileManager.default.temporaryDirectory.path) {
      #expect(try mode(url) == 0o600)
      try? FileManager.default.removeItem(at: url)
    }
  }
}
