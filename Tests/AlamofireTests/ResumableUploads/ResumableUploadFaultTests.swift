import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Servers that fail, lie or lose uploads.
@Suite("Faults of resumable uploads", .timeLimit(.minutes(5)))
struct ResumableUploadFaultTests {
  private static let dialects = ResumableUploadTests.dialects
  private static let bytes = UploadFixture.content(100)

  /// Begins an upload that breaks after 60 bytes.
  private static func broken(_ dialect: UploadEndpoint.Dialect) throws -> UploadFixture {
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 60))
    return fixture
  }

  private static let beginning: [UploadEndpoint.Dialect: [String]] = [
    .draft: ["POST"], .tus: ["POST", "PATCH 0"],
  ]

  /// Cancels the request when its first task has ended.
  private final class Cancelling: SessionDelegate, @unchecked Sendable {
    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      task.cancel()
      super.urlSession(session, task: task, didCompleteWithError: error)
    }
  }

  @Test("The end of a task is announced once if the delegate cancels between two requests")
  func cancelledBetweenRequests() async throws {
    let spy = EventSpy()
    let session = Session(configuration: .uncached, delegate: Cancelling(), eventMonitors: [spy])
    let fixture = try UploadFixture(.tus, session: session)
    let response = await fixture.upload(Self.bytes)
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(fixture.requests == ["POST"])
    #expect(spy.reported.filter { $0.hasPrefix("didCompleteTask") } == ["didCompleteTask error"])
  }

  @Test("Without a response 104 a lost request is not repeated") func missingInformational() async throws {
    var options = UploadEndpoint.Options()
    options.sendsInformational = false
    for fault in [UploadEndpoint.Fault.cut(afterBytes: 60), .loseResponse] {
      let fixture = try UploadFixture(.draft, options)
      fixture.uploads.enqueue(fault)
      let response = await fixture.upload(Self.bytes)
      #expect(response.error?.transferCode == .networkConnectionLost)
      #expect(fixture.requests == ["POST"] && fixture.uploads.uploads.count == 1)
    }
  }

  @Test("A response 104 of another interop version is ignored") func interopVersion() async throws {
    var options = UploadEndpoint.Options()
    options.interopVersion = 7
    let other = try UploadFixture(.draft, options)
    other.uploads.enqueue(.cut(afterBytes: 60))
    #expect(await other.upload(Self.bytes).error?.transferCode == .networkConnectionLost)
    let same = try UploadFixture(.draft, options)
    same.uploads.enqueue(.cut(afterBytes: 60))
    #expect(await same.upload(Self.bytes) { $0.interopVersion = 7 }.error == nil)
    #expect(same.uploads.uploads.map(\.content) == [Self.bytes])
  }

  @Test("Wrong offsets end the upload", arguments: dialects, [101, 70_000, .max])
  func wrongOffset(dialect: UploadEndpoint.Dialect, offset: Int) async throws {
    let fixture = try Self.broken(dialect)
    fixture.uploads.enqueue(.offset(offset))
    let response = await fixture.upload(Self.bytes)
    let isInteger = offset <= 999_999_999_999_999
    #expect(response.error?.uploadError == .wrongOffset(isInteger ? Int64(offset) : nil))
    #expect(fixture.uploads.processedCount == 0)
  }

  @Test("An offset below an earlier one ends the upload", arguments: dialects)
  func fallingOffset(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try Self.broken(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 5), .offset(59))
    #expect(await fixture.upload(Self.bytes).error?.uploadError == .wrongOffset(59))
  }

  @Test("Another length ends the upload", arguments: dialects)
  func wrongLength(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try Self.broken(dialect)
    fixture.uploads.enqueue(.length(99))
    #expect(await fixture.upload(Self.bytes).error?.uploadError == .wrongLength(99))
  }

  @Test("Temporary failures are followed by HEAD", arguments: dialects, [408, 409, 423, 429, 500, 503])
  func temporaryFailures(dialect: UploadEndpoint.Dialect, status: Int) async throws {
    let fixture = try Self.broken(dialect)
    fixture.uploads.enqueue(.pass, .status(status), .status(status), .pass, .status(status))
    #expect(await fixture.upload(Self.bytes).error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes] && fixture.uploads.processedCount == 1)
    let rest = ["HEAD", "PATCH 60", "HEAD", "HEAD", "PATCH 60", "HEAD", "PATCH 60"]
    #expect(fixture.requests == (Self.beginning[dialect] ?? []) + rest)
  }

  @Test("Failures without progress end the upload with the last status", arguments: dialects)
  func endlessFailure(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try Self.broken(dialect)
    fixture.uploads.enqueue((0..<20).map { _ in .status(503) })
    let request = fixture.session.upload(Data(Self.bytes), to: fixture.url)
      .resumable(fixture.options { $0.maximumFailureCount = 3 })
    let response = await request.response()
    #expect(response.error?.responseCode == 503)
    #expect(fixture.requests == (Self.beginning[dialect] ?? []) + ["HEAD", "HEAD", "HEAD"])
    #expect(request.retryCount == 3)
  }

  @Test("Other refusals end the upload", arguments: dialects, [400, 403, 415])
  func refusals(dialect: UploadEndpoint.Dialect, status: Int) async throws {
    let fixture = try Self.broken(dialect)
    fixture.uploads.enqueue(.status(status))
    #expect(await fixture.upload(Self.bytes).error?.responseCode == status)
    #expect(fixture.uploads.processedCount == 0)
  }

  @Test("A refused creation is the response of the request") func refusedCreation() async throws {
    for status in [400, 403, 500, 503] {
      let fixture = try UploadFixture(.draft)
      fixture.uploads.enqueue(.status(status))
      let response = await fixture.upload(Self.bytes)
      #expect(response.error == nil && response.response?.statusCode == status)
      #expect(fixture.requests == ["POST"])
      let tus = try UploadFixture(.tus)
      tus.uploads.enqueue(.status(status))
      #expect(await tus.upload(Self.bytes).error?.responseCode == status)
      #expect(tus.requests == ["POST"])
    }
  }

  @Test("A lost upload begins again if bytes were missing, and never otherwise", arguments: dialects)
  func lostUpload(dialect: UploadEndpoint.Dialect) async throws {
    // The client has to know that it did not send everything, so the content is larger than the buffers of the sockets.
    let bytes = UploadFixture.content(32 << 20)
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 60), .forget)
    // A reset can destroy the informational response while the content is sent.
    #expect(await fixture.upload(bytes) { $0.createsWithContent = false }.error == nil)
    #expect(fixture.uploads.uploads.map(\.content.count) == [60, bytes.count])
    #expect(fixture.uploads.uploads.last?.content == bytes && fixture.uploads.processedCount == 1)
    let whole = try UploadFixture(dialect)
    if dialect == .tus { whole.uploads.enqueue(.pass) }
    whole.uploads.enqueue(.loseResponse, .forget)
    #expect(await whole.upload(Self.bytes).error?.uploadError == .uploadIsGone)
    #expect(whole.uploads.uploads.count == 1 && whole.uploads.processedCount == 1)
  }

  @Test("A failure of the server after the last byte is the result") func failureBehindLastByte()
    async throws
  {
    let fixture = try UploadFixture(.draft)
    fixture.uploads.enqueue(.statusAfterContent(500))
    #expect(await fixture.upload(Self.bytes).error?.uploadError == .failedAfterUpload(status: 500))
    let gateway = try UploadFixture(.draft)
    gateway.uploads.enqueue(.statusAfterContent(504))
    #expect(await gateway.upload(Self.bytes).error == nil)
    #expect(gateway.requests == ["POST", "HEAD"] && gateway.uploads.processedCount == 1)
  }

  @Test("A server that cannot be reached is tried again, as often as configured", arguments: dialects)
  func unreachable(dialect: UploadEndpoint.Dialect) async throws {
    let port = try HTTPTestServer.refusedPort()
    var options = UploadFixture.options(dialect == .draft ? .draft : .tus)
    options.maximumFailureCount = 2
    let request = Session.real().upload(Data(Self.bytes), to: "http://127.0.0.1:\(port)/").resumable(options)
    #expect(await request.response().error?.transferCode == .cannotConnectToHost)
    #expect(request.retryCount == 2)
  }

  @Test(
    "A creation that was redirected to a server that cannot be reached is not repeated", arguments: dialects,
    [301, 302, 303])
  func unreachableRedirect(dialect: UploadEndpoint.Dialect, status: Int) async throws {
    let port = try HTTPTestServer.refusedPort()
    let server = try HTTPTestServer(
      routes: .none.adding("/files") { _, _ in
        .status(status).with(header: "Location", value: "http://127.0.0.1:\(port)/")
      })
    let request = Session.real().upload(Data(Self.bytes), to: server.url("/files"))
      .resumable(UploadFixture.options(dialect == .draft ? .draft : .tus))
    #expect(await request.response().error?.transferCode == .cannotConnectToHost)
    #expect(server.recordedRequests.map(\.method) == ["POST"])
  }

  @Test("A server that comes back gets the rest") func restartedServer() async throws {
    let fixture = try UploadFixture(.draft)
    fixture.uploads.enqueue(.cut(afterBytes: 60))
    let reached = Recorder<Int>()
    let port = fixture.server.port
    let retrier = SpyInterceptor(retry: { _, _, count in
      if count == 1 { fixture.server.stop() }
      reached.add(count)
      return .doNotRetry
    })
    let request = fixture.session.upload(Data(Self.bytes), to: fixture.url, interceptor: retrier)
      .resumable(fixture.options { $0.maximumFailureCount = 100_000 })
    async let response = request.response()
    await reached.wait(for: 3)
    let routes = Routes.none.adding(fixture.uploads, at: "/files")
    let second = try HTTPTestServer(port: port, routes: routes)
    #expect(await response.error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes] && fixture.uploads.processedCount == 1)
    second.stop()
  }

  @Test("Streams cannot be uploaded resumably") func streams() async throws {
    let fixture = try UploadFixture(.draft)
    let request = fixture.session.upload(InputStream(data: Data(Self.bytes)), to: fixture.url)
      .resumable(fixture.options())
    #expect(await request.response().error?.uploadError == .bodyIsStream)
    #expect(fixture.requests.isEmpty)
  }

  @Test("A missing file has the error of any upload") func missingFile() async throws {
    let fixture = try UploadFixture(.draft)
    let missing = try TemporaryFolder()["missing"]
    let request = fixture.session.upload(missing, to: fixture.url).resumable(fixture.options())
    #expect(await request.response().error?.transferCode == .fileDoesNotExist)
  }

  @Test("The path of a URL of another scheme is not read as a file", arguments: ["https://localhost", ""])
  func otherScheme(beginning: String) async throws {
    let fixture = try UploadFixture(.draft)
    let url = try #require(URL(string: beginning + "/proc/self/status"))
    let request = fixture.session.upload(url, to: fixture.url).resumable(fixture.options())
    #expect(await request.response().error?.transferCode == .badURL)
    #expect(fixture.requests.isEmpty)
  }

  @Test("A file that changes during the upload ends it", arguments: dialects)
  func changedFile(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try Self.broken(dialect)
    let file = try TemporaryFolder().file("file", Data(Self.bytes))
    let folder = file.deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data(Self.bytes).write(to: file)
    let retrier = SpyInterceptor(retry: { _, _, _ in
      try? Data(Self.bytes + [0]).write(to: file)
      return .doNotRetry
    })
    let request = fixture.session.upload(file, to: fixture.url, interceptor: retrier).resumable(
      fixture.options())
    #expect(await request.response().error?.uploadError == .fileHasChanged)
    #expect(fixture.uploads.processedCount == 0)
  }

  @Test(
    "A file that changes after its upload was continued is not sent to its end", arguments: dialects,
    [Self.bytes.reversed(), Self.bytes + [0]])
  func lateChange(dialect: UploadEndpoint.Dialect, changed: [UInt8]) async throws {
    let fixture = try Self.broken(dialect)
    let file = try TemporaryFolder().file("file", Data(Self.bytes))
    let folder = file.deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data(Self.bytes).write(to: file)
    let interceptor = SpyInterceptor(
      adapt: { request, _ in
        guard request.httpMethod == "PATCH", request.headers["Upload-Offset"] != "0" else {
          return .success(request)
        }
        try? Data(changed).write(to: file)
        // The clock of the file system may not have moved since the file was written.
        let old = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1_000_000)]
        try? FileManager.default.setAttributes(old, ofItemAtPath: file.path)
        return .success(request)
      }, retry: { _, _, _ in .doNotRetry })
    let request = fixture.session.upload(file, to: fixture.url, interceptor: interceptor).resumable(
      fixture.options())
    #expect(await request.response().error?.uploadError == .fileHasChanged)
    #expect(fixture.uploads.processedCount == 0)
  }

  @Test("A file that has become shorter is not sent instead of its rest", arguments: dialects)
  func shorterFile(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try Self.broken(dialect)
    let folder = try TemporaryFolder()
    let file = try folder.file("file", Data(Self.bytes))
    // As many bytes as the server lacks, so that it would take the whole file for the rest.
    let rest = Data(Self.bytes.prefix(40))
    let interceptor = SpyInterceptor(
      adapt: { request, _ in
        if request.headers["Upload-Offset"] == "60" { try? rest.write(to: file) }
        return .success(request)
      }, retry: { _, _, _ in .doNotRetry })
    let request = fixture.session.upload(file, to: fixture.url, interceptor: interceptor).resumable(
      fixture.options())
    #expect(await request.response().error?.transferCode == .requestBodyStreamExhausted)
    #expect(fixture.uploads.processedCount == 0)
    #expect(fixture.requests == (Self.beginning[dialect] ?? []) + ["HEAD"])
    withExtendedLifetime(folder) {}
  }

  @Test("Invalid metadata end the upload before it is sent") func invalidMetadata() async throws {
    let fixture = try UploadFixture(.tus)
    let response = await fixture.upload(Self.bytes) { $0.metadata = ["a b": "c"] }
    #expect(response.error?.uploadError == .invalidMetadataKey("a b"))
    #expect(fixture.requests.isEmpty)
  }

  @Test("A cancelled upload stays on the server and is not continued", arguments: dialects)
  func cancellation(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try Self.broken(dialect)
    let retrier = SpyInterceptor(retry: { request, _, _ in
      request.cancel()
      return .doNotRetry
    })
    let request = fixture.session.upload(Data(Self.bytes), to: fixture.url, interceptor: retrier)
      .resumable(fixture.options())
    #expect(await request.response().error?.isExplicitlyCancelledError == false)
    #expect(request.isCancelled && fixture.requests == Self.beginning[dialect])
    #expect(fixture.uploads.uploads.first?.content == Array(Self.bytes.prefix(60)))
  }
}
