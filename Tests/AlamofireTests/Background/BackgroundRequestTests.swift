import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The properties of a background request, which all its attempts have, in every session.
@Suite("Requests of background transfers", .timeLimit(.minutes(5))) struct BackgroundRequestTests {
  private let fixture: BackgroundFixture
  /// A storage with a cookie for the test server.
  private let storage: HTTPCookieStorage

  init() throws {
    fixture = try BackgroundFixture()
    storage = try #require(URLSessionConfiguration.af.ephemeral.httpCookieStorage)
    let cookie = HTTPCookie(properties: [.name: "own", .value: "1", .domain: "127.0.0.1", .path: "/"])
    storage.setCookie(try #require(cookie))
  }

  private func makeSession() -> Session {
    fixture.session {
      $0.httpCookieStorage = storage
      $0.httpCookieAcceptPolicy = .always
    }
  }

  private func makeRequest(_ url: String, handlesCookies: Bool) throws -> URLRequest {
    var request = try URLRequest(url: url, method: .get)
    request.httpShouldHandleCookies = handlesCookies
    request.mainDocumentURL = URL(string: "http://127.0.0.1/page")
    return request
  }

  /// Whether the requests had a `Cookie` field, in their order.
  private func hadCookies(_ server: HTTPTestServer) -> [Bool] {
    server.recordedRequests.map { $0.header("Cookie") != nil }
  }

  private var cookieNames: [String]? { storage.cookies?.map(\.name).sorted() }

  /// Runs a download until `count` bytes have arrived, and releases its session then.
  ///
  /// - Parameter finish: Called with the request just before.
  private func abandon(
    after count: Int64, _ make: (Session) throws -> DownloadRequest,
    finish: (DownloadRequest) -> Void = { _ in }
  ) async throws {
    let session = makeSession()
    let arrived = Latch()
    let request = try make(session).downloadProgress(queue: .global()) {
      if $0.completedUnitCount >= count { arrived.open() }
    }
    let ending = Task { await request.ended() }
    await arrived.wait()
    finish(request)
    withExtendedLifetime((session, ending)) {}
  }

  @Test("A repeated download handles cookies as its first attempt did", arguments: [true, false])
  func repeatedDownload(handlesCookies: Bool) async throws {
    let file = VersionedFile(size: 30_000)
    file.breakAfter(10_000)
    let server = try HTTPTestServer(
      routes: .none.adding("/file") { request, _ in
        file.reply(to: request).with(header: "Set-Cookie", value: "set=1")
      })
    let session = makeSession()
    let request = session.download(
      try makeRequest(server.url("/file"), handlesCookies: handlesCookies), to: fixture.destination("file"))
    let response = await request.ended()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=10000-"])
    #expect(hadCookies(server) == [handlesCookies, handlesCookies])
    if !handlesCookies { #expect(cookieNames == ["own"], "no response may store a cookie") }
  }

  @Test("The parts of a resumable upload handle cookies as its first request did", arguments: [true, false])
  func resumableUpload(handlesCookies: Bool) async throws {
    let uploads = try UploadFixture(.tus)
    var request = try makeRequest(uploads.url, handlesCookies: handlesCookies)
    request.method = .post
    let session = makeSession()
    let upload = session.upload(Data(UploadFixture.content(100)), with: request)
      .resumable(uploads.options { $0.maximumPartSize = 50 })
    #expect(await upload.ended().error == nil)
    #expect(uploads.uploads.uploads.map(\.content) == [UploadFixture.content(100)])
    #expect(uploads.requests.count > 1, "the upload has to have several parts")
    #expect(hadCookies(uploads.server).allSatisfy { $0 == handlesCookies }, "\(hadCookies(uploads.server))")
  }

  @Test("A restored download has the properties of the first session's request", arguments: [true, false])
  func restoredDownload(handlesCookies: Bool) async throws {
    let file = StallingFile(size: 60_000, stallingAfter: 40_000)
    let server = try HTTPTestServer(routes: file.routes)
    try await abandon(after: 40_000) { session in
      session.download(
        try makeRequest(server.url("/file"), handlesCookies: handlesCookies), to: fixture.destination("file"))
    }
    let session = makeSession()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(restored.originalRequest?.httpShouldHandleCookies == handlesCookies)
    #expect(restored.originalRequest?.mainDocumentURL?.absoluteString == "http://127.0.0.1/page")
    #expect(await restored.ended().error == nil)
    #expect(hadCookies(server) == [handlesCookies, handlesCookies])
  }

  @Test("A restored request that had transport options waits until it is resumed, and has new ones then")
  func ownOptions() async throws {
    let file = StallingFile(size: 60_000, stallingAfter: 40_000)
    let server = try HTTPTestServer(routes: file.routes)
    try await abandon(after: 40_000) { session in
      session.download(server.url("/file"), to: fixture.destination("file"))
        .transportOptions { $0.redirectLimit = 3 }
    }
    // The second time, the mark is there although nothing was resumed.
    for _ in 0..<2 {
      let session = makeSession()
      let waiting = try #require(session.restoredRequests.first as? DownloadRequest)
      #expect(waiting.isInitialized, "it was sent without the options that it had")
      withExtendedLifetime(session) {}
    }
    let session = makeSession()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await restored.transportOptions { $0.bodySizeLimit = 10_000 }.ended()
    #expect((response.error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=40000-"])
  }

  @Test(
    "A restored request that waits for its options survives the end of its session's tasks",
    arguments: ["handler before", "handler after", "resumed after"])
  func endOfTasks(order: String) async throws {
    let file = StallingFile(size: 60_000, stallingAfter: 40_000)
    let server = try HTTPTestServer(routes: file.routes)
    try await abandon(after: 40_000) { session in
      session.download(server.url("/file"), to: fixture.destination("file"))
        .transportOptions { $0.redirectLimit = 3 }
    }
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let waiting = try #require(session.restoredRequests.first as? DownloadRequest)
      let errors = Recorder<AFError?>()
      if order != "handler before" { session.session.finishTasksAndInvalidate() }
      if order == "resumed after" { waiting.resume() }
      waiting.response(queue: .global()) { errors.add($0.error) }
      if order == "handler before" { session.session.finishTasksAndInvalidate() }
      #expect(await errors.wait(for: 1).first??.isSessionInvalidatedError == true)
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    let session = makeSession()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(restored.isInitialized && !restored.mayHaveBeenDelivered)
    #expect(await restored.ended().error == nil)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=40000-"])
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
  }

  /// Leaves the journal of a download that had transport options.
  private func leaveConfigured(_ server: HTTPTestServer) async throws {
    try await abandon(after: 40_000) { session in
      session.download(server.url("/file"), to: fixture.destination("file"))
        .transportOptions { $0.redirectLimit = 3 }
    }
  }

  /// Ends the tasks of a session whose restored request waits for its options. Calls `body` with the request while that
  /// is ending, and returns the error that its handler gets.
  private func errorAfterEndOfTasks(_ body: @escaping @Sendable (DownloadRequest) -> Void) async throws
    -> AFError?
  {
    let session = fixture.session(startRequestsImmediately: false)
    let waiting = try #require(session.restoredRequests.first as? DownloadRequest)
    let errors = Recorder<AFError?>()
    let serializer = CallingSerializer { [weak waiting] in
      if let waiting { body(waiting) }
    }
    waiting.response(queue: .global(), responseSerializer: serializer) { errors.add($0.error) }
    session.session.finishTasksAndInvalidate()
    let error = await errors.wait(for: 1).first.flatMap { $0 }
    withExtendedLifetime(session) {}
    return error
  }

  @Test(
    "A restored request that is resumed while it ends with its session's tasks stays for the next session")
  func resumedInEnd() async throws {
    let file = StallingFile(size: 60_000, stallingAfter: 40_000)
    let server = try HTTPTestServer(routes: file.routes)
    try await leaveConfigured(server)
    let error = try await errorAfterEndOfTasks { $0.resume() }
    #expect(error?.isSessionInvalidatedError == true, "\(String(describing: error))")
    #expect(await fixture.isReleased())
    let session = makeSession()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(restored.isInitialized && !restored.mayHaveBeenDelivered)
    #expect(await restored.ended().error == nil)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=40000-"])
  }

  @Test("A restored request that waits for its options does not run, also if requests are set up at once")
  func eagerSetup() async throws {
    let file = StallingFile(size: 60_000, stallingAfter: 40_000)
    let server = try HTTPTestServer(routes: file.routes)
    try await leaveConfigured(server)
    do {
      let session = fixture.session(startRequestsImmediately: false, requestSetup: .eager)
      let waiting = try #require(session.restoredRequests.first as? DownloadRequest)
      session.cancelAllRequests()
      #expect(waiting.isInitialized, "it is none of the running requests")
      let errors = Recorder<AFError?>()
      waiting.response(queue: .global()) { errors.add($0.error) }
      session.session.finishTasksAndInvalidate()
      #expect(await errors.wait(for: 1).first??.isSessionInvalidatedError == true, "it never ends")
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    let session = fixture.session(requestSetup: .eager)
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await restored.transportOptions { $0.redirectLimit = 3 }.ended()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=40000-"])
  }

  @Test("A restored request that is cancelled while it ends with its session's tasks is removed")
  func cancelledInEnd() async throws {
    let server = try HTTPTestServer(routes: StallingFile(size: 60_000, stallingAfter: 40_000).routes)
    try await leaveConfigured(server)
    let error = try await errorAfterEndOfTasks { $0.cancel() }
    #expect(error != nil)
    #expect(await fixture.isReleased())
    #expect(makeSession().restoredRequests.isEmpty, "the next session has a request that was cancelled")
    #expect(fixture.files.isEmpty, "\(fixture.files)")
  }

  @Test("Options that a running request gets are noted, too") func laterOptions() async throws {
    let file = StallingFile(size: 60_000, stallingAfter: 30_000)
    let server = try HTTPTestServer(routes: file.routes)
    try await abandon(after: 30_000) { session in
      session.download(server.url("/file"), to: fixture.destination("file"))
    } finish: { request in
      request.transportOptions { $0.redirectLimit = 3 }
    }
    let session = makeSession()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(restored.isInitialized, "it was sent without the options that it had")
    #expect(await restored.ended().error == nil)
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
  }
}

/// A serializer that calls a closure, and fails if its request has.
private struct CallingSerializer: DownloadResponseSerializerProtocol {
  let body: @Sendable () -> Void

  func serializeDownload(
    request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
  ) throws -> URL? {
    body()
    if let error { throw error }
    return fileURL
  }
}
