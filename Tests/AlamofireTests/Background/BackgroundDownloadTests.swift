@testable import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Downloads of background sessions that end, and that later sessions continue.
@Suite(.timeLimit(.minutes(5))) struct BackgroundDownloadTests {
  private let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  /// Begins a download that stalls after `count` bytes, and releases its session then.
  private func abandon(_ server: HTTPTestServer, after count: Int64, to name: String = "file") async -> UUID {
    let session = fixture.session()
    let arrived = Latch()
    let request = session.download(server.url("/file"), to: fixture.destination(name))
      .downloadProgress(queue: .global()) { if $0.completedUnitCount >= count { arrived.open() } }
    let ending = Task { await request.ended() }
    await arrived.wait()
    withExtendedLifetime((session, ending)) {}
    return request.id
  }

  @Test("A download leaves nothing behind") func plain() async throws {
    let file = VersionedFile(size: 100_000)
    let server = try HTTPTestServer(routes: file.routes)
    let session = fixture.session()
    let response = await session.download(server.url("/file"), to: fixture.destination("file")).ended()
    #expect(response.error == nil)
    #expect(try Data(contentsOf: fixture.folder["file"]) == file.bytes)
    #expect(await fixture.isEmptied())
    #expect(session.restoredRequests.isEmpty)
  }

  @Test("Without a destination the file is moved to the temporary folder") func noDestination() async throws {
    let file = VersionedFile(size: 1000)
    let server = try HTTPTestServer(routes: file.routes)
    let session = fixture.session()
    let url = try await session.download(server.url("/file")).serializingDownloadedFileURL().value
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(await fixture.isEmptied())
    #expect(try Data(contentsOf: url) == file.bytes)
  }

  @Test("A destination that returns the temporary URL has the file in the temporary folder")
  func temporaryDestination() async throws {
    let file = VersionedFile(size: 1000)
    let server = try HTTPTestServer(routes: file.routes)
    let session = fixture.session()
    let response = await session.download(server.url("/file"), to: { file, _ in (file, []) }).ended()
    defer { response.removeFile() }
    #expect(response.error == nil)
    #expect(await fixture.isEmptied())
    let url = try #require(response.fileURL)
    #expect(try Data(contentsOf: url) == file.bytes)
    let mode = try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? NSNumber
    #expect(mode == 0o600, "other users may read the temporary folder")
  }

  @Test("An outcome that the delegate has seen does not wait for a handler") func delegateAlone() async throws
  {
    final class Receiver: SessionDelegate, @unchecked Sendable {
      let events = Recorder<String>()

      override func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
      ) { events.add("file \(FileManager.default.fileExists(atPath: location.path))") }

      override func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
      ) { events.add("end \(error == nil)") }
    }
    let server = try HTTPTestServer(routes: VersionedFile(size: 1000).routes)
    let receiver = Receiver()
    let session = fixture.session(delegate: receiver, startRequestsImmediately: false)
    let request = session.download(server.url("/file"), to: fixture.destination("file")).resume()
    #expect(await eventually { request.isFinished })
    #expect(receiver.events.values == ["file true", "end true"])
    #expect(await fixture.isEmptied(), "\(fixture.files)")
  }

  @Test("A download of a released session goes on where it was") func goesOn() async throws {
    let file = StallingFile(size: 300_000, stallingAfter: 120_000)
    let server = try HTTPTestServer(routes: file.routes)
    let id = await abandon(server, after: 120_000)
    let delegate = EndOfEvents()
    let session = fixture.session(delegate: delegate)
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(session.restoredRequests.count == 1)
    #expect(request.id == id)
    #expect(request.originalRequest?.url?.absoluteString == server.url("/file"))
    let counts = Recorder<Int64>()
    let response = await request.downloadProgress(queue: .global()) { counts.add($0.completedUnitCount) }
      .ended()
    #expect(response.error == nil)
    #expect(response.response?.statusCode == 206)
    #expect(response.fileURL == fixture.folder["restored-file"])
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=120000-"])
    #expect(counts.values.allSatisfy { $0 >= 120_000 })
    #expect(!request.mayHaveBeenDelivered)
    await delegate.calls.wait(for: 1)
    #expect(await fixture.isEmptied())
    #expect(delegate.calls.count == 1)
  }

  @Test("Resume data continue in a background session, and in the next one")
  func resumeData() async throws {
    let file = StallingFile(size: 300_000, stallingAfter: 80_000, 60_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await partOfOrdinaryDownload(server, count: 80_000)
    do {
      let session = fixture.session()
      let arrived = Latch()
      let request = session.download(resumingWith: data, to: fixture.destination("file"))
        .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 140_000 { arrived.open() } }
      let ending = Task { await request.ended() }
      await arrived.wait()
      withExtendedLifetime((session, ending)) {}
    }
    let session = fixture.session()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(restored.originalRequest?.headers["Range"] == nil)
    let response = await restored.ended()
    #expect(response.error == nil)
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    let ranges = server.recordedRequests.map { $0.header("Range") }
    #expect(ranges == [nil, "bytes=80000-", "bytes=140000-"])
    #expect(await fixture.isEmptied())
  }

  @Test("Without the file of the resume data, a background download begins again")
  func lostPart() async throws {
    let file = StallingFile(size: 100_000, stallingAfter: 80_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await partOfOrdinaryDownload(server, count: 80_000)
    try FileManager.default.removeItem(atPath: ResumeData(data).path)
    let session = fixture.session()
    let response = await session.download(resumingWith: data, to: fixture.destination("file")).ended()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, nil])
    #expect(try Data(contentsOf: fixture.folder["file"]) == file.bytes)
    let other = await session.download(resumingWith: Data("no resume data".utf8)).ended()
    #expect((other.error?.underlyingError as? URLError)?.code == .cannotDecodeRawData)
    #expect(await fixture.isEmptied())
  }

  @Test("Resume data of a complete file lead to the whole file, not to the page of a status 416")
  func completeResumeData() async throws {
    let file = VersionedFile(size: 10_000)
    let server = try HTTPTestServer(
      routes: .none.adding("/file", methods: ["GET"]) { request, _ in
        request.header("Range") == "bytes=10000-" ? .status(416) : file.reply(to: request)
      })
    let part = try fixture.folder.file("Alamofire_part.tmp", file.bytes)
    let request = try URLRequest(url: server.url("/file"), method: .get)
    let version = Representation(length: 10_000, validator: "\"v1\"")
    let data = try #require(
      ResumeData(request: request, version: version, file: part.path, received: 10_000)?.data(isOnDisk: true))
    let session = fixture.session()
    let response = await session.download(resumingWith: data, to: fixture.destination("file")).ended()
    #expect(response.error == nil)
    #expect(response.resumeData == nil && !FileManager.default.fileExists(atPath: part.path))
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil])
    #expect(try Data(contentsOf: fixture.folder["file"]) == file.bytes)
    #expect(await fixture.isEmptied())
  }

  /// Downloads `count` bytes in an ordinary session. Returns the resume data.
  private func partOfOrdinaryDownload(_ server: HTTPTestServer, count: Int64) async throws -> Data {
    let session = Session(configuration: .uncached)
    let arrived = Latch()
    let request = session.download(server.url("/file"))
      .downloadProgress(queue: .global()) { if $0.completedUnitCount >= count { arrived.open() } }
    let ending = Task { await request.ended() }
    await arrived.wait()
    return try await withCheckedThrowingContinuation { continuation in
      request.cancel { data in
        continuation.resume(with: data.map { .success($0) } ?? .failure(URLError(.cannotDecodeRawData)))
      }
      withExtendedLifetime(ending) {}
    }
  }

  @Test("A file that has changed is downloaded from the beginning") func changedFile() async throws {
    let file = StallingFile(size: 90_000, stallingAfter: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    _ = await abandon(server, after: 50_000)
    file.file.change()
    let session = fixture.session()
    let response = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(await response.ended().response?.statusCode == 200)
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    #expect(await fixture.isEmptied())
  }

  @Test("A complete download without a handler waits for one in another session") func undelivered()
    async throws
  {
    let file = VersionedFile(size: 70_000)
    let server = try HTTPTestServer(routes: file.routes)
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.download(server.url("/file"), to: fixture.destination("file")).resume()
      #expect(await eventually { request.isFinished })
      withExtendedLifetime(session) {}
    }
    #expect(fixture.files.count == 1, "\(fixture.files)")
    for _ in 0..<2 {
      // Without a handler it stays.
      let session = fixture.session()
      let request = try #require(session.restoredRequests.first)
      #expect(await eventually { request.isFinished })
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await request.validate().ended()
    #expect(response.error == nil)
    #expect(response.response?.statusCode == 200)
    #expect(response.response?.headers["ETag"] == "\"v1\"")
    #expect(response.fileURL == fixture.folder["file"])
    #expect(server.recordedRequests.count == 1)
    #expect(await fixture.isEmptied())
    #expect(try Data(contentsOf: fixture.folder["file"]) == file.bytes)
  }

  @Test("A transfer stays in its journal until its last handler has returned") func handlers() async throws {
    let file = VersionedFile(size: 1000)
    let server = try HTTPTestServer(routes: file.routes)
    let session = fixture.session(startRequestsImmediately: false)
    let (first, last) = (DispatchQueue(label: "first"), DispatchQueue(label: "last"))
    let calls = Recorder<String>()
    last.suspend()
    session.download(server.url("/file"), to: fixture.destination("file"))
      .response(queue: first) { _ in calls.add("first") }
      .response(queue: last) { [fixture] _ in
        calls.add(fixture.record == nil ? "too late" : "last")
      }.resume()
    #expect(await calls.wait(for: 1) == ["first"])
    // The handler has returned, and so has the code after it.
    first.sync {}
    #expect(fixture.record != nil)
    last.resume()
    #expect(await calls.wait(for: 2) == ["first", "last"])
    #expect(await fixture.isEmptied())
    withExtendedLifetime(session) {}
  }

  @Test("The URL of a redirected response is stored") func redirected() async throws {
    let file = VersionedFile(size: 1000)
    let server = try HTTPTestServer(
      routes: file.routes.adding("/start") { _, _ in .status(302).with(header: "Location", value: "/file") })
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.download(server.url("/start"), to: fixture.destination("file")).resume()
      #expect(await eventually { request.isFinished })
      withExtendedLifetime(session) {}
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(await request.ended().response?.url?.absoluteString == server.url("/file"))
    #expect(server.recordedRequests.map(\.path) == ["/start", "/file"])
    #expect(await fixture.isEmptied())
  }

  @Test("A cancelled download leaves nothing, or its resume data") func cancelled() async throws {
    for wantsData in [false, true] {
      let file = StallingFile(size: 60_000, stallingAfter: 40_000)
      let server = try HTTPTestServer(routes: file.routes)
      let session = fixture.session()
      let arrived = Latch()
      let request = session.download(server.url("/file"), to: fixture.destination("cancelled"))
        .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 40_000 { arrived.open() } }
      async let ending = request.ended()
      await arrived.wait()
      request.cancel(producingResumeData: wantsData)
      let response = await ending
      #expect(response.error?.isExplicitlyCancelledError == true)
      #expect((response.resumeData != nil) == wantsData)
      #expect(await fixture.isEmptied())
      guard let data = response.resumeData else { continue }
      let rest = await session.download(resumingWith: data, to: fixture.destination("cancelled")).ended()
      #expect(rest.response?.statusCode == 206)
      #expect(try Data(contentsOf: fixture.folder["cancelled"]) == file.bytes)
    }
  }

  @Test("A lost connection does not end a download") func lostConnection() async throws {
    let file = VersionedFile(size: 80_000)
    file.breakAfter(10_000, 20_000)
    let server = try HTTPTestServer(routes: file.routes)
    let session = fixture.session()
    let response = await session.download(server.url("/file"), to: fixture.destination("file")).ended()
    #expect(response.error == nil)
    #expect(try Data(contentsOf: fixture.folder["file"]) == file.bytes)
    #expect(
      server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=10000-", "bytes=30000-"])
    #expect(await fixture.isEmptied())
  }

  @Test("A retry after a complete response begins from the start") func retryOfResponse() async throws {
    let file = VersionedFile(size: 5000)
    let server = try HTTPTestServer(routes: file.routes)
    server.enqueue(.status(503))
    let session = fixture.session(interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.01))
    let target = fixture.folder["file"]
    let response = await session.download(
      server.url("/file"), to: { _, _ in (target, [.removePreviousFile]) }
    )
    .validate().ended()
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, nil])
    #expect(response.response?.statusCode == 200)
    #expect(try Data(contentsOf: target) == file.bytes)
    #expect(await fixture.isEmptied())
  }

  @Test("A page instead of the rest of a file leaves the part of the file", arguments: [503, 302])
  func pageInsteadOfRest(status: Int) async throws {
    let file = StallingFile(size: 300_000, stallingAfter: 120_000)
    let server = try HTTPTestServer(routes: file.routes)
    _ = await abandon(server, after: 120_000)
    let gate = Gate()
    server.enqueue(Self.page(status).held(by: gate))
    let session = fixture.session(interceptor: Self.oneRetry)
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    async let ending = request.redirect(using: .doNotFollow).validate().ended()
    await gate.waitUntilReached()
    gate.open()
    let response = await ending
    #expect(response.error == nil)
    #expect(response.response?.statusCode == 206)
    let ranges = server.recordedRequests.map { $0.header("Range") }
    #expect(ranges == [nil, "bytes=120000-", "bytes=120000-"])
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    #expect(await fixture.isEmptied())
  }

  @Test("A page instead of the rest of a file is the file of a request that accepts it")
  func acceptedPage() async throws {
    let file = StallingFile(size: 300_000, stallingAfter: 120_000)
    let server = try HTTPTestServer(routes: file.routes)
    _ = await abandon(server, after: 120_000)
    server.enqueue(Self.page(503))
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await request.ended()
    #expect(response.error == nil)
    #expect(response.response?.statusCode == 503)
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == Data("page".utf8))
    #expect(await fixture.isEmptied())
  }

  /// Makes a page of a status that is not a file.
  private static func page(_ status: Int) -> Reply {
    var reply = Reply.text("page").with(header: "Location", value: "/elsewhere")
    reply.status = status
    return reply
  }

  /// A retrier that sends a request one more time.
  private static var oneRetry: Retrier {
    Retrier { request, _, _, completion in completion(request.retryCount == 0 ? .retry : .doNotRetry) }
  }

  /// Makes a server whose first response breaks after 100,000 bytes.
  private static func breakingOnce(_ file: VersionedFile) throws -> HTTPTestServer {
    let hasBroken = Mutex(false)
    return try HTTPTestServer(
      routes: .none.adding("/file", methods: ["GET"]) { request, _ in
        let breaks = hasBroken.withLock { isBroken in
          defer { isBroken = true }
          return !isBroken
        }
        let reply = file.reply(to: request)
        guard breaks else { return reply }
        let part = Reply.data(Array(file.bytes.prefix(100_000))).with(header: "ETag", value: "\"v1\"")
        return part.framed(.chunked).with(effect: .badChunk)
      })
  }

  @Test("A failure that only the delegate sees leaves resume data") func failureBeforeDelegate() async throws
  {
    final class Receiver: SessionDelegate, @unchecked Sendable {
      override func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
      ) {}
    }
    let file = VersionedFile(size: 200_000)
    let server = try Self.breakingOnce(file)
    let session = fixture.session(delegate: Receiver(), startRequestsImmediately: false)
    let request = session.download(server.url("/file"), to: fixture.destination("file")).resume()
    #expect(await eventually { request.isFinished })
    #expect(await fixture.isEmptied(), "\(fixture.files)")
    let data = try #require(request.resumeData)
    let rest = await Session.real().download(resumingWith: data, to: fixture.destination("rest")).ended()
    #expect(rest.error == nil && rest.response?.statusCode == 206)
  }

  @Test("A handler that is added at the end of a failed run gets resume data") func handlerAtTheEnd()
    async throws
  {
    let file = VersionedFile(size: 200_000)
    let server = try Self.breakingOnce(file)
    let data = Recorder<Data?>()
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "test.monitor"))
    monitor.requestDidCompleteTaskWithError = { request, _, _ in
      (request as? DownloadRequest)?.response(queue: .global()) { data.add($0.resumeData) }
    }
    let session = fixture.session(startRequestsImmediately: false, eventMonitors: [monitor])
    let request = session.download(server.url("/file"), to: fixture.destination("file")).resume()
    #expect(await data.wait(for: 1).first?.map { !$0.isEmpty } == true)
    _ = request
  }

  @Test("The part of a download that failed without a handler stays for the next session")
  func unobservedFailure() async throws {
    let file = VersionedFile(size: 200_000)
    let server = try Self.breakingOnce(file)
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.download(server.url("/file"), to: fixture.destination("file")).resume()
      #expect(await eventually { request.isFinished })
      #expect((request.error?.underlyingError as? URLError)?.code == .badServerResponse)
      #expect(fixture.files.contains("Alamofire_\(request.id.uuidString).tmp"), "\(fixture.files)")
      withExtendedLifetime(session) {}
    }
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await request.ended()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=100000-"])
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    #expect(await fixture.isEmptied())
  }

  @Test("The second session of an identifier fails with a clear error, the first goes on") func inUse()
    async throws
  {
    let file = VersionedFile(size: 1000)
    let server = try HTTPTestServer(routes: file.routes)
    let first = fixture.session()
    let second = fixture.session()
    let refused = await second.download(server.url("/file")).ended()
    let failure = try #require(refused.error?.underlyingError as? URLError)
    #expect(failure.code == .backgroundSessionInUseByAnotherProcess)
    #expect(failure.localizedDescription.contains("org.alamofire.tests"))
    #expect(await first.download(server.url("/file"), to: fixture.destination("file")).ended().error == nil)
    #expect(await second.request(server.url("/file")).ended().error == nil, "data requests need no journal")
  }

  @Test("Nothing is sent before the earliest date, and a cancellation ends the wait") func earliestBegin()
    async throws
  {
    let server = try HTTPTestServer(routes: .none.adding("/**") { _, _ in .text("ok") })
    let session = fixture.session()
    let late = session.download(server.url("/late")).earliestBeginDate(Date() + 3600)
    async let ending = late.ended()
    let soon = session.download(server.url("/soon"), to: fixture.destination("soon"))
      .earliestBeginDate(Date() - 1)
    #expect(await soon.ended().error == nil)
    #expect(server.recordedRequests.map(\.path) == ["/soon"])
    #expect(fixture.files.filter { $0.hasSuffix(".journal") }.count <= 2)
    late.cancel()
    #expect(await ending.error?.isExplicitlyCancelledError == true)
    #expect(await fixture.isEmptied())
    #expect(server.recordedRequests.count == 1)
  }

  @Test("Discretionary downloads begin one after the other, in their order") func discretionary() async throws
  {
    let all = Mutex<[DownloadRequest]>([])
    let ended = Recorder<Int>()
    let server = try HTTPTestServer(
      routes: .none.adding("/**") { _, _ in
        ended.add(all.withLock { $0 }.filter(\.isFinished).count)
        return .bytes(1000)
      })
    let session = fixture.session(isDiscretionary: true)
    let requests = (0..<8).map { session.download(server.url("/\($0)"), to: fixture.destination("\($0)")) }
    all.withLock { $0 = requests }
    let responses = Recorder<AFError?>()
    for request in requests { request.response(queue: .global()) { responses.add($0.error) } }
    #expect(await responses.wait(for: 8).allSatisfy { $0 == nil })
    #expect(ended.values == Array(0..<8))
    #expect(await fixture.isEmptied())
    all.withLock { $0 = [] }
  }
}

/// Records the calls at the end of restored requests.
private final class EndOfEvents: SessionDelegate, @unchecked Sendable {
  let calls = Recorder<Bool>()

  override func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { calls.add(true) }
}
