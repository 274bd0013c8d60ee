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

  /// Returns the response with the bytes of the file from `start` on. It waits for the gate after some bytes.
  ///
  /// - Parameter status: The status if the response has all bytes.
  private func reply(
    from start: Int = 0, status: Int = 200, waitingAfter count: Int, for gate: Gate
  ) -> Reply {
    let bytes = Array(file.bytes)
    var reply = Reply(
      body: .parts([
        .bytes(Array(bytes[start..<start + count])), .gate(gate), .bytes(Array(bytes[(start + count)...])),
      ])
    ).framed(.contentLength).with(header: "ETag", value: "\"v1\"")
    reply.status = start > 0 ? 206 : status
    guard reply.status == 206 else { return reply }
    return reply.with(header: "Content-Range", value: "bytes \(start)-\(bytes.count - 1)/\(bytes.count)")
  }

  /// Begins a download that has a checkpoint at 120,000 bytes, then breaks off, and is retried. Returns when the server
  /// has the request of the retry.
  ///
  /// - Parameters:
  ///   - data: The resume data of 50,000 bytes from which the download is continued; `nil` for a new download.
  ///   - isRange: Whether the caller asks for a range, which has all bytes.
  private func retried(
    resuming data: Data?, isRange: Bool = false, _ server: HTTPTestServer, retry: Reply
  ) async throws -> (request: DownloadRequest, checkpoint: Data, retry: RecordedRequest) {
    let (start, gate, arrived) = (data == nil ? 0 : 50_000, Gate(), Latch())
    server.enqueue(
      reply(from: start, status: isRange ? 206 : 200, waitingAfter: 120_000 - start, for: gate)
        .with(effect: .closeAfterBody(bytes: 130_000 - start)), retry)
    let spy = SpyInterceptor(retries: 1)
    let headers: HTTPHeaders? = isRange ? ["Range": "bytes=0-"] : nil
    let request =
      data.map { session.download(resumingWith: $0, interceptor: spy) }
      ?? session.download(server.url("/file"), headers: headers, interceptor: spy)
    request.downloadProgress(queue: .global()) { if $0.completedUnitCount >= 120_000 { arrived.open() } }
    request.resume()
    await arrived.wait()
    let checkpoint = try #require(request.checkpoint())
    gate.open()
    _ = try await server.takeRequest()
    return (request, checkpoint, try await server.takeRequest())
  }

  /// Returns the bytes of the file of resume data; `nil` if there is no file.
  private func content(_ data: Data) throws -> Data? {
    FileManager.default.contents(atPath: try part(namedBy: data).path)
  }

  @Test("A retry of a new download begins again beside the file of its checkpoint") func retry() async throws
  {
    let (server, gate) = (try HTTPTestServer(routes: .none), Gate())
    let (request, checkpoint, retry) = try await retried(
      resuming: nil, server, retry: reply(waitingAfter: 60_000, for: gate))
    let bytes = file.bytes
    #expect(retry.header("Range") == nil)
    #expect(try content(checkpoint)?.prefix(120_000) == bytes.prefix(120_000), "the file is there no more")
    gate.open()
    let response = await request.ended()
    defer { response.removeFile() }
    #expect(try response.fileURL.map { try Data(contentsOf: $0) } == bytes)
    #expect(try content(checkpoint) == nil, "the download is complete")
  }

  @Test(
    "A retry that completes a new download with another status leaves no file of its checkpoint",
    arguments: [203, 206])
  func otherStatus(status: Int) async throws {
    let (server, gate) = (try HTTPTestServer(routes: .none), Gate())
    gate.open()
    let (request, checkpoint, _) = try await retried(
      resuming: nil, isRange: status == 206, server, retry: reply(status: status, waitingAfter: 1, for: gate))
    let response = await request.ended()
    defer { response.removeFile() }
    #expect(response.response?.statusCode == status)
    #expect(try response.fileURL.map { try Data(contentsOf: $0) } == file.bytes)
    #expect(response.resumeData == nil, "the download is complete")
    #expect(try content(checkpoint) == nil, "the file would stay for ever")
  }

  @Test(
    "A retry that is answered without a copy of the file, which a validator rejects, leaves the checkpoint")
  func rejectedRetry() async throws {
    let (server, gate) = (try HTTPTestServer(routes: .none), Gate())
    var notReady = Reply.text("not ready").held(by: gate)
    notReady.status = 202
    let (request, checkpoint, _) = try await retried(resuming: nil, server, retry: notReady)
    request.validate(statusCode: [200, 206])
    gate.open()
    let response = await request.ended()
    defer { response.removeFile() }
    #expect(response.error?.responseCode == 202 && response.resumeData == checkpoint)
    #expect(
      try content(checkpoint)?.prefix(120_000) == file.bytes.prefix(120_000), "the file is there no more")
  }

  @Test("A retry of a resumed download continues from its checkpoint") func retryOfResumed() async throws {
    let (server, gate) = (try HTTPTestServer(routes: .none), Gate())
    gate.open()
    server.enqueue(reply(waitingAfter: 1, for: gate).with(effect: .closeAfterBody(bytes: 50_000)))
    let broken = await session.download(server.url("/file")).ended()
    let data = try #require(broken.resumeData)
    _ = try await server.takeRequest()
    let end = Gate()
    let (request, checkpoint, retry) = try await retried(
      resuming: data, server, retry: reply(from: 120_000, waitingAfter: 60_000, for: end))
    let bytes = file.bytes
    #expect(retry.header("Range") == "bytes=120000-")
    #expect(try content(checkpoint)?.prefix(120_000) == bytes.prefix(120_000), "bytes were cut off")
    end.open()
    let response = await request.ended()
    defer { response.removeFile() }
    #expect(try response.fileURL.map { try Data(contentsOf: $0) } == bytes)
    #expect(try content(checkpoint) == nil, "the download is complete")
  }

  @Test("A retry that fails before its response leaves the checkpoint of the attempt before it")
  func failedRetry() async throws {
    let server = try HTTPTestServer(routes: .none)
    let (request, checkpoint, _) = try await retried(resuming: nil, server, retry: .garbage)
    let response = await request.ended()
    defer { response.removeFile() }
    #expect(response.error != nil && response.resumeData == checkpoint)
    #expect(try content(checkpoint)?.prefix(120_000) == file.bytes.prefix(120_000))
  }

  @Test("The file of a checkpoint is removed if the retry is cancelled") func cancelledRetry() async throws {
    let server = try HTTPTestServer(routes: .none)
    let (request, checkpoint, _) = try await retried(resuming: nil, server, retry: .stall)
    request.cancel()
    #expect(await request.ended().error?.isExplicitlyCancelledError == true)
    #expect(try content(checkpoint) == nil)
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
