import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Resumable uploads of background sessions that end, and that later sessions continue.
@Suite(.timeLimit(.minutes(5))) struct BackgroundResumableUploadTests {
  private static let dialects = ResumableUploadTests.dialects
  private static let bytes = UploadFixture.content(100)
  private let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private func file(_ bytes: [UInt8] = bytes) throws -> URL { try fixture.folder.file("body", Data(bytes)) }

  /// Begins an upload, and releases its session when the connection has broken. Returns the identifier of the request.
  @discardableResult
  private func abandon(
    _ retrier: UndecidedRetrier = UndecidedRetrier(), _ make: (Session) -> UploadRequest
  ) async -> UUID {
    func begin() async -> UUID {
      let session = fixture.session(interceptor: retrier)
      let request = make(session)
      let ending = Task { await request.ended() }
      await retrier.reached.wait()
      return withExtendedLifetime((session, ending)) { request.id }
    }
    let id = await begin()
    // The call of the retrier may hold the session for another moment.
    #expect(await fixture.isReleased())
    return id
  }

  /// Begins the upload of a file, breaks its connection after 60 bytes, and releases its session.
  @discardableResult
  private func abandon(
    _ uploads: UploadFixture, _ file: URL, _ method: HTTPMethod = .post, after count: Int = 60
  ) async -> UUID {
    uploads.uploads.enqueue(.cut(afterBytes: count))
    return await abandon { session in
      // A reset can destroy the informational response while the content is sent.
      session.upload(file, to: uploads.url, method: method)
        .resumable(uploads.options { $0.createsWithContent = false })
    }
  }

  /// Returns the only restored request of another session.
  private func restored(_ session: Session) throws -> UploadRequest {
    #expect(session.restoredRequests.count == 1)
    return try #require(session.restoredRequests.first as? UploadRequest)
  }

  private static func beginning(_ uploads: UploadFixture, _ method: HTTPMethod = .post) -> [String] {
    [uploads.uploads.dialect == .draft ? method.rawValue : "POST", "PATCH 0"]
  }

  @Test(
    "An upload continues at the offset of the server, also by POST", arguments: dialects, ["POST", "PUT"])
  func continued(dialect: UploadEndpoint.Dialect, method: String) async throws {
    let uploads = try UploadFixture(dialect)
    let method = HTTPMethod(rawValue: method)
    let id = await abandon(uploads, try file(), method)
    #expect(uploads.requests == Self.beginning(uploads, method))
    let session = fixture.session()
    let request = try restored(session)
    #expect(request.id == id)
    #expect(request.originalRequest?.url?.absoluteString == uploads.url)
    #expect(request.originalRequest?.method == method)
    let response = await request.validate().ended()
    #expect(response.error == nil)
    #expect(response.response?.url?.absoluteString == uploads.url + "/0")
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes] && uploads.uploads.processedCount == 1)
    #expect(uploads.uploads.receivedByteCount == Self.bytes.count)
    #expect(uploads.requests == Self.beginning(uploads, method) + ["HEAD", "PATCH 60"])
    #expect(await fixture.isEmptied())
    #expect(try Data(contentsOf: fixture.folder["body"]) == Data(Self.bytes))
  }

  @Test("A symbolic link is continued like its file", arguments: dialects)
  func link(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    let link = fixture.folder["link"]
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: try file())
    await abandon(uploads, link)
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error == nil)
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes] && uploads.uploads.processedCount == 1)
    #expect(uploads.requests == Self.beginning(uploads) + ["HEAD", "PATCH 60"])
    #expect(await fixture.isEmptied())
  }

  @Test("Bytes and forms continue from a file of the journal", arguments: dialects, [true, false])
  func spooled(dialect: UploadEndpoint.Dialect, isForm: Bool) async throws {
    let uploads = try UploadFixture(dialect)
    uploads.uploads.enqueue(.cut(afterBytes: 60))
    await abandon { session in
      let request =
        isForm
        ? session.upload(
          multipartFormData: { $0.append(Data(Self.bytes), withName: "a") }, to: uploads.url,
          usingThreshold: 0)
        : session.upload(Data(Self.bytes), to: uploads.url)
      return request.resumable(uploads.options { $0.createsWithContent = false })
    }
    let session = fixture.session()
    let request = try restored(session)
    #expect(await request.ended().error == nil)
    // Only the journal has the file.
    #expect(request.uploadCheckpoint == nil)
    let content = try #require(uploads.uploads.uploads.first?.content)
    #expect(isForm ? content.count > Self.bytes.count : content == Self.bytes)
    #expect(uploads.uploads.uploads.count == 1 && uploads.uploads.receivedByteCount == content.count)
    #expect(uploads.requests.suffix(2) == ["HEAD", "PATCH 60"])
    #expect(await fixture.isEmptied())
  }

  @Test("The protocol that the server was asked for is asked for once", arguments: dialects)
  func automatic(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    uploads.uploads.enqueue(.cut(afterBytes: 60))
    let file = try file()
    await abandon { session in
      var options = UploadFixture.options()
      options.createsWithContent = false
      options.maximumPartSize = 70
      return session.upload(file, to: uploads.url, headers: ["X-Own": "1"]).resumable(options)
    }
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error == nil)
    #expect(uploads.requests == ["OPTIONS", "POST", "PATCH 0", "HEAD", "PATCH 60"])
    #expect(uploads.server.recordedRequests.allSatisfy { $0.header("X-Own") == "1" })
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes])
    #expect(await fixture.isEmptied())
  }

  @Test("An upload of which the server has all bytes is not sent again", arguments: dialects)
  func lostResponse(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    if dialect == .tus { uploads.uploads.enqueue(.pass) }
    uploads.uploads.enqueue(.loseResponse)
    let file = try file()
    await abandon { $0.upload(file, to: uploads.url).resumable(uploads.options()) }
    let session = fixture.session()
    let response = await (try restored(session)).ended()
    #expect(response.error == nil && response.response?.statusCode == (dialect == .draft ? 204 : 200))
    #expect(uploads.requests.last == "HEAD")
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes] && uploads.uploads.processedCount == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("An upload that the server has lost begins again if bytes were missing", arguments: dialects)
  func expired(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    // Larger than the buffers of the sockets, so that its end was not sent.
    let bytes = UploadFixture.content(32 << 20)
    await abandon(uploads, try file(bytes))
    uploads.uploads.enqueue(.forget)
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error == nil)
    #expect(uploads.uploads.uploads.map(\.content.count) == [60, bytes.count])
    #expect(uploads.uploads.uploads.last?.content == bytes && uploads.uploads.processedCount == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("An upload that the server has lost fails if it may have had all bytes", arguments: dialects)
  func gone(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    await abandon(uploads, try file())
    uploads.uploads.enqueue(.forget)
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error?.uploadError == .uploadIsGone)
    #expect(uploads.requests == Self.beginning(uploads) + ["HEAD"])
    #expect(await fixture.isEmptied())
  }

  @Test("A file that has changed is not continued", arguments: dialects, [true, false])
  func changedFile(dialect: UploadEndpoint.Dialect, changesSize: Bool) async throws {
    let uploads = try UploadFixture(dialect)
    let file = try file()
    await abandon(uploads, file)
    if changesSize { try Data(Self.bytes + [0]).write(to: file) }
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: file.path)
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error?.uploadError == .fileHasChanged)
    #expect(uploads.requests == Self.beginning(uploads))
    #expect(await fixture.isEmptied())
  }

  @Test("A file that is gone is an error that says so") func missingFile() async throws {
    let uploads = try UploadFixture(.tus)
    let file = try file()
    await abandon(uploads, file)
    try FileManager.default.removeItem(at: file)
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error?.transferCode == .fileDoesNotExist)
    #expect(uploads.requests == Self.beginning(uploads))
    #expect(await fixture.isEmptied())
  }

  @Test("A response that no handler has received is delivered by another session", arguments: dialects)
  func undelivered(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    do {
      let session = fixture.session(startRequestsImmediately: false)
      let request = session.upload(try file(), to: uploads.url).resumable(uploads.options()).resume()
      #expect(await eventually { request.isFinished })
      withExtendedLifetime(session) {}
    }
    let requests = uploads.requests
    let session = fixture.session()
    let response = await (try restored(session)).validate().ended()
    #expect(response.error == nil && response.response?.statusCode == (dialect == .draft ? 200 : 204))
    if dialect == .draft { #expect(response.data == Data("stored 100".utf8)) }
    #expect(uploads.requests == requests)
    #expect(await fixture.isEmptied())
  }

  @Test("The journal has the URL of a response before the adapters", arguments: dialects, [true, false])
  func adaptedURL(dialect: UploadEndpoint.Dialect, createsWithContent: Bool) async throws {
    let uploads = try UploadFixture(dialect)
    let adapter = SpyInterceptor(adapt: { request, _ in
      var request = request
      request.url = request.url.flatMap { URL(string: "\($0.absoluteString)?key=secret") }
      return .success(request)
    })
    do {
      let session = fixture.session(interceptor: adapter, startRequestsImmediately: false)
      let request = session.upload(try file(), to: uploads.url)
        .resumable(uploads.options { $0.createsWithContent = createsWithContent }).resume()
      #expect(await eventually { request.isFinished })
      withExtendedLifetime(session) {}
    }
    let targets = uploads.server.recordedRequests.map(\.target)
    #expect(!targets.isEmpty && targets.allSatisfy { $0.hasSuffix("?key=secret") }, "\(targets)")
    let journal = try String(contentsOf: try #require(fixture.record), encoding: .utf8)
    #expect(journal.contains("answered") && !journal.contains("secret"), "\(journal)")
    let session = fixture.session()
    let response = await (try restored(session)).ended()
    let isCreation = dialect == .draft && createsWithContent
    #expect(response.response?.url?.absoluteString == uploads.url + (isCreation ? "" : "/0"))
    #expect(uploads.server.recordedRequests.count == targets.count)
    #expect(await fixture.isEmptied())
  }

  @Test("A checkpoint continues in a background session, and in the next one", arguments: dialects)
  func checkpoint(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    let file = try file()
    uploads.uploads.enqueue(.cut(afterBytes: 40))
    let request = uploads.session.upload(file, to: uploads.url)
      .resumable(
        uploads.options {
          $0.createsWithContent = false
          $0.maximumFailureCount = 0
        })
    #expect(await request.response().error != nil)
    let checkpoint = try #require(request.uploadCheckpoint)
    uploads.uploads.enqueue(.cut(afterBytes: 20))
    await abandon { $0.upload(resumingWith: checkpoint, file: file, as: UploadFixture.options()) }
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error == nil)
    #expect(uploads.requests.dropFirst(2) == ["HEAD", "PATCH 40", "HEAD", "PATCH 60"])
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes] && uploads.uploads.processedCount == 1)
    #expect(await fixture.isEmptied())
    // A removal is not a transfer in the journal.
    let removal = session.removeUpload(checkpoint)
    let (files, fixture) = (Recorder<[String]>(), fixture)
    removal.onHTTPResponse(on: .global()) { (_: HTTPURLResponse) in files.add(fixture.files) }
    #expect(await removal.ended().response?.statusCode == 204)
    #expect(files.values == [[]])
  }

  @Test("An upload continues in its own session after a failure", arguments: dialects)
  func sameSession(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    uploads.uploads.enqueue(.cut(afterBytes: 60), .cut(afterBytes: 10))
    let session = fixture.session(interceptor: SpyInterceptor(retries: 2))
    let request = session.upload(try file(), to: uploads.url)
      .resumable(uploads.options { $0.createsWithContent = false })
    #expect(await request.ended().error == nil)
    #expect(uploads.requests == Self.beginning(uploads) + ["HEAD", "PATCH 60", "HEAD", "PATCH 70"])
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes])
    #expect(await fixture.isEmptied())
  }

  @Test("A finished upload is sent again from its beginning", arguments: dialects, [true, false])
  func sentAgain(dialect: UploadEndpoint.Dialect, hasHandler: Bool) async throws {
    let uploads = try UploadFixture(dialect)
    let session = fixture.session(startRequestsImmediately: false)
    let request = session.upload(try file(), to: uploads.url).resumable(uploads.options())
    if hasHandler {
      #expect(await request.resume().ended().error == nil)
      #expect(await fixture.isEmptied())
    } else {
      request.resume()
      #expect(await eventually { request.isFinished })
    }
    let first = uploads.requests
    session.retryRequest(request, withDelay: nil)
    let response = await request.ended()
    #expect(response.error == nil)
    #expect(uploads.uploads.processedCount == 2)
    #expect(uploads.requests == first + first)
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes, Self.bytes])
    #expect(await fixture.isEmptied())
    withExtendedLifetime(session) {}
  }

  @Test("The journal of a checkpoint that is sent again names its upload", arguments: dialects)
  func checkpointSentAgain(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    let file = try file()
    uploads.uploads.enqueue(.cut(afterBytes: 40))
    let broken = uploads.session.upload(file, to: uploads.url)
      .resumable(
        uploads.options {
          $0.createsWithContent = false
          $0.maximumFailureCount = 0
        })
    #expect(await broken.response().error != nil)
    let checkpoint = try #require(broken.uploadCheckpoint)
    let session = fixture.session(startRequestsImmediately: false)
    let request = session.upload(resumingWith: checkpoint, file: file, as: UploadFixture.options()).resume()
    #expect(await eventually { request.isFinished })
    // The server responds to nothing more.
    uploads.server.stop()
    session.retryRequest(request, withDelay: nil)
    let journal = try String(contentsOf: try #require(fixture.record), encoding: .utf8)
    #expect(!journal.contains("answered") && journal.contains("/files/0"))
    request.cancel()
    #expect(await request.ended().error != nil)
    #expect(await fixture.isEmptied())
  }

  @Test("An upload that became resumable after it had begun is an ordinary one for the next session")
  func lateResumable() async throws {
    let uploads = try UploadFixture(.draft)
    uploads.uploads.enqueue(.cut(afterBytes: 60), .cut(afterBytes: 30))
    let file = try file()
    let options = uploads.options { $0.createsWithContent = false }
    let retrier = UndecidedRetrier { ($0 as? UploadRequest)?.resumable(options) }
    await abandon(retrier) { $0.upload(file, to: uploads.url, method: .put) }
    #expect(uploads.requests == ["PUT", "PUT", "PATCH 0"])
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error == nil)
    #expect(uploads.requests == ["PUT", "PUT", "PATCH 0", "PUT"])
    #expect(uploads.uploads.processedCount == 1 && uploads.uploads.receivedByteCount == 60 + 30 + 100)
    #expect(await fixture.isEmptied())
  }

  @Test("A refused part is sent again in smaller ones, although its end was sent") func smallerParts()
    async throws
  {
    var options = UploadEndpoint.Options()
    options.maximumAppendSize = 60
    let uploads = try UploadFixture(.draft, options)
    let session = fixture.session()
    let request = session.upload(try file(), to: uploads.url).resumable(uploads.options())
    #expect(await request.ended().error == nil)
    #expect(uploads.requests == ["POST", "POST", "PATCH 60"])
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes])
    #expect(await fixture.isEmptied())
  }

  /// Begins an upload in parts of 30 bytes, and breaks its connection after ten bytes of the second part.
  private func abandonInParts(_ uploads: UploadFixture) async throws {
    uploads.uploads.enqueue(.pass, .pass, .cut(afterBytes: 10))
    let file = try file()
    await abandon { session in
      session.upload(file, to: uploads.url)
        .resumable(
          uploads.options {
            $0.createsWithContent = false
            $0.maximumPartSize = 30
          })
    }
    #expect(uploads.requests == Self.beginning(uploads) + ["PATCH 30"])
  }

  @Test("An upload in parts continues in such parts", arguments: dialects)
  func parts(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    try await abandonInParts(uploads)
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error == nil)
    #expect(uploads.requests.dropFirst(3) == ["HEAD", "PATCH 40", "PATCH 70"])
    let parts = uploads.server.recordedRequests.filter { $0.method == "PATCH" }
    #expect(parts.map { $0.header("Content-Length") } == ["30", "30", "30", "30"])
    #expect(uploads.uploads.uploads.map(\.content) == [Self.bytes] && uploads.uploads.processedCount == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("An upload that the server has lost before the last part begins again, in parts", arguments: dialects)
  func lostParts(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    try await abandonInParts(uploads)
    uploads.uploads.enqueue(.forget)
    let session = fixture.session()
    #expect(await (try restored(session)).ended().error == nil)
    let again = Self.beginning(uploads) + ["PATCH 30", "PATCH 60", "PATCH 90"]
    #expect(Array(uploads.requests.dropFirst(3)) == ["HEAD"] + again)
    #expect(uploads.uploads.uploads.map(\.content.count) == [40, 100] && uploads.uploads.processedCount == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("A cancelled upload leaves nothing behind", arguments: dialects)
  func cancelled(dialect: UploadEndpoint.Dialect) async throws {
    let uploads = try UploadFixture(dialect)
    await abandon(uploads, try file())
    // The request cannot continue before it is cancelled.
    uploads.server.stop()
    let session = fixture.session()
    let request = try restored(session)
    request.cancel()
    #expect(await request.ended().error != nil)
    #expect(await fixture.isEmptied())
  }

  @Test("An upload with a journal that was cut anywhere is stored once", arguments: dialects)
  func cutJournal(dialect: UploadEndpoint.Dialect) async throws {
    let file = try file()
    var (cut, length) = (0, 1)
    while cut <= length {
      let uploads = try UploadFixture(dialect)
      await abandon(uploads, file, .put)
      let record = try #require(fixture.record)
      let journal = try Data(contentsOf: record)
      length = journal.count
      try journal.prefix(cut).write(to: record)
      let firstLine = try #require(journal.firstIndex(of: UInt8(ascii: "\n"))) + 1
      let session = fixture.session()
      #expect((session.restoredRequests.count == 1) == (cut >= firstLine), "\(cut)")
      if let request = session.restoredRequests.first as? UploadRequest {
        #expect(await request.ended().error == nil, "\(cut)")
        #expect(uploads.uploads.uploads.last?.content == Self.bytes && uploads.uploads.processedCount == 1)
      }
      #expect(await fixture.isEmptied(), "\(fixture.files) after a cut at \(cut)")
      cut += 23
    }
  }
}

/// A retrier that does not decide before its session ends. With a change of the request, it retries once before.
private final class UndecidedRetrier: RequestInterceptor {
  let reached = Latch()
  private let completions = Recorder<@Sendable (RetryResult) -> Void>()
  private let change: (@Sendable (Request) -> Void)?

  init(_ change: (@Sendable (Request) -> Void)? = nil) { self.change = change }

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    if let change, request.retryCount == 0 {
      change(request)
      return completion(.retry)
    }
    completions.add(completion)
    reached.open()
  }
}
