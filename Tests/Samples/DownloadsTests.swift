import Alamofire
import HTTPTestServer
import Testing

/// The samples are run that would wait forever if nothing started their requests.
@Suite("Guide to downloads", .timeLimit(.minutes(1))) struct DownloadsGuideTests {
  @Test("The loop over the progress ends with the download") func progressSample() async throws {
    let server = try HTTPTestServer()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }
    await DownloadsSamples().progress(url: server.url("/bytes/100000"), destination: { _, _ in (file, []) })
    #expect(server.requestCount == 1)
  }

  @Test("The loop that writes checkpoints ends with the download") func checkpointSample() async throws {
    let server = try HTTPTestServer()
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("film")
    try await DownloadsSamples().checkpoints(
      session: Session(), url: server.url("/bytes/100000"),
      checkpointFile: folder.appendingPathComponent("checkpoint"),
      destination: { _, _ in (file, []) })
    #expect(try Data(contentsOf: file).count == 100_000)
  }
}
