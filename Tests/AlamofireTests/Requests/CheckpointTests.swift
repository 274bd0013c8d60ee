import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// Resume data of downloads that are running.
@Suite(.timeLimit(.minutes(2))) struct CheckpointTests {
  private let session = Session.real()
  private let file = StallingFile(size: 300_000, stallingAfter: 120_000)

  /// Returns a download that has stalled, and its checkpoint.
  private func stalled(_ server: HTTPTestServer) async throws -> (DownloadRequest, Data) {
    let arrived = Latch()
    let request = session.download(server.url("/file"))
      .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 120_000 { arrived.open() } }
    #expect(request.checkpoint() == nil)
    request.resume()
    await arrived.wait()
    return (request, try #require(request.checkpoint()))
  }

  /// Returns the file of resume data, and the number of its bytes that count, also after a restart of the machine.
  private func received(_ data: Data) throws -> (path: String, size: Int64) {
    let part = try part(namedBy: data)
    let state = try #require(Journal.standard.state(of: data))
    return (part.path, state.receivedSize(boot: "another", fileSize: .max))
  }

  @Test("A checkpoint names the bytes that are there, and the download goes on") func running() async throws {
    let server = try HTTPTestServer(routes: file.routes)
    let (request, data) = try await stalled(server)
    let part = try received(data)
    #expect(part.size == 120_000)
    #expect(try Data(contentsOf: URL(fileURLWithPath: part.path)) == file.bytes.prefix(120_000))
    // Another download does not write to the file.
    let other = await session.download(resumingWith: data).ended()
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=120000-", nil])
    let url = try #require(other.fileURL)
    #expect(try Data(contentsOf: url) == file.bytes)
    try FileManager.default.removeItem(at: url)
    request.cancel(producingResumeData: true)
    let ended = await request.ended()
    let rest = await session.download(resumingWith: try #require(ended.resumeData)).ended()
    let whole = try #require(rest.fileURL)
    #expect(try Data(contentsOf: whole) == file.bytes)
    try FileManager.default.removeItem(at: whole)
    #expect(request.checkpoint() == nil)
  }

  @Test("The file of a checkpoint is removed with a cancelled download") func cancelled() async throws {
    let server = try HTTPTestServer(routes: file.routes)
    let (request, data) = try await stalled(server)
    request.cancel()
    #expect(await request.ended().error?.isExplicitlyCancelledError == true)
    #expect(!FileManager.default.fileExists(atPath: try received(data).path))
  }

  @Test("A download goes on from its checkpoint after the process was killed") func killed() async throws {
    let server = try HTTPTestServer(routes: file.routes)
    let folder = try TemporaryFolder()
    setenv("ALAMOFIRE_CHECKPOINT", folder["checkpoint"].path, 1)
    setenv("ALAMOFIRE_CHECKPOINT_URL", server.url("/file"), 1)
    await #expect(processExitsWith: .signal(SIGKILL)) {
      let environment = ProcessInfo.processInfo.environment
      let (url, path) = (
        try #require(environment["ALAMOFIRE_CHECKPOINT_URL"]),
        try #require(environment["ALAMOFIRE_CHECKPOINT"])
      )
      let session = Session(configuration: .isolated)
      let arrived = Latch()
      let request = session.download(url)
        .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 120_000 { arrived.open() } }
      request.resume()
      await arrived.wait()
      try request.checkpoint()?.write(to: URL(fileURLWithPath: path), options: .atomic)
      kill(getpid(), SIGKILL)
    }
    // The folder is swept for files of ended processes.
    TemporaryFiles.removeOrphans(in: FileManager.default.temporaryDirectory.path)
    let data = try Data(contentsOf: folder["checkpoint"])
    let response = await session.download(resumingWith: data).ended()
    #expect(response.response?.statusCode == 206)
    let url = try #require(response.fileURL)
    #expect(try Data(contentsOf: url) == file.bytes)
    try FileManager.default.removeItem(at: url)
  }

  @Test("A download of a range that the caller sets has no resume data") func ownRange() async throws {
    let file = VersionedFile(size: 100_000)
    file.breakAfter(5000)
    let server = try HTTPTestServer(routes: file.routes)
    let response = await session.download(server.url("/file"), headers: ["Range": "bytes=100-"]).ended()
    #expect(response.error != nil)
    #expect(response.resumeData == nil)
  }

  @Test(
    "A response with another number of bytes than its range has fails, and so does a part without a request for it",
    arguments: [(9, "bytes=0-9", true), (10, "bytes=0-9", false), (11, "bytes=0-9", true), (10, nil, true)])
  func unaskedPart(count: Int, range: String?, isFailure: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply(
        status: 206, headers: [.init(name: "Content-Range", value: "bytes 0-9/20")],
        body: .chunks([String(repeating: "a", count: count)])))
    let headers = range.map { HTTPHeaders(["Range": $0]) }
    let response = await session.download(server.url("/"), headers: headers).ended()
    #expect((response.error != nil) == isFailure)
    if let file = response.fileURL { try FileManager.default.removeItem(at: file) }
  }

  @Test("A range that the caller sets is not continued beyond its end") func firstBytes() async throws {
    let bytes = Array(VersionedFile(size: 10_000).bytes)
    let server = try HTTPTestServer(
      routes: .none.adding("/file") { _, _ in
        var reply = Reply.data(bytes).with(header: "ETag", value: "\"v1\"")
          .with(header: "Content-Range", value: "bytes 0-9999/100000")
          .with(effect: .closeAfterBody(bytes: 5000))
        reply.status = 206
        return reply
      })
    let response = await session.download(server.url("/file"), headers: ["Range": "bytes=0-9999"]).ended()
    #expect(response.error != nil)
    #expect(response.resumeData == nil)
  }
}
