import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

@testable import Alamofire

/// The requests of resumable uploads: their fields, secrets, progress and checkpoints.
@Suite("Requests of resumable uploads", .timeLimit(.minutes(5)))
struct ResumableUploadRequestTests {
  private static let dialects = ResumableUploadTests.dialects
  private static let bytes = UploadFixture.content(100)

  // MARK: Fields and secrets

  @Test("The caller's adapters, retriers and fields apply to each request", arguments: dialects)
  func adapters(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 10))
    let spy = SpyInterceptor(adapt: { request, count in
      var request = request
      request.headers.update(name: "X-Count", value: String(count))
      return .success(request)
    })
    let request = fixture.session.upload(
      Data(Self.bytes), to: fixture.url,
      headers: ["X-Own": "1", "Content-Type": "text/plain", "Content-MD5": "x"],
      interceptor: spy
    ).resumable(fixture.options())
    #expect(await request.response().error == nil)
    let recorded = fixture.server.recordedRequests
    #expect(recorded.map { $0.header("X-Count") } == (1...recorded.count).map { String($0) })
    #expect(recorded.allSatisfy { $0.header("X-Own") == "1" })
    let partial = dialect == .draft ? "application/partial-upload" : "application/offset+octet-stream"
    let types = recorded.map { $0.header("Content-Type") }
    #expect(types == (dialect == .draft ? ["text/plain", nil, partial] : [nil, partial, nil, partial]))
    #expect(recorded.dropFirst().allSatisfy { $0.header("Content-MD5") == nil })
    #expect(spy.retryCount == 1)
  }

  @Test("No cache answers the question for the offset", arguments: dialects)
  func cachePolicy(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 10))
    let policies = Recorder<URLRequest.CachePolicy>()
    let spy = SpyInterceptor(adapt: { request, _ in
      if request.httpMethod == "HEAD" { policies.add(request.cachePolicy) }
      return .success(request)
    })
    let request = fixture.session.upload(Data(Self.bytes), to: fixture.url, interceptor: spy)
      .resumable(fixture.options())
    #expect(await request.response().error == nil)
    #expect(policies.values == [.reloadIgnoringLocalCacheData])
  }

  @Test("Trailers are not sent, because a request has a part of the body", arguments: dialects)
  func trailers(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 10))
    let calls = Recorder<Bool>()
    let request = fixture.session.upload(
      Data(Self.bytes), to: fixture.url, interceptor: SpyInterceptor(retries: 3)
    ).trailers(announcing: ["X-End"]) {
      calls.add(true)
      return ["X-End": "1"]
    }.resumable(fixture.options())
    #expect(await request.response().error == nil)
    let recorded = fixture.server.recordedRequests
    #expect(recorded.count > 2 && calls.count == 0)
    #expect(recorded.allSatisfy { $0.trailers.isEmpty && !$0.isChunked && $0.header("Trailer") == nil })
  }

  @Test("Monitors are notified once of a body whose rest is sent by further requests", arguments: dialects)
  func monitors(dialect: UploadEndpoint.Dialect) async throws {
    let spy = EventSpy()
    let fixture = try UploadFixture(dialect, session: .real(eventMonitors: [spy]))
    fixture.uploads.enqueue(.cut(afterBytes: 10))
    #expect(await fixture.upload(Self.bytes).error == nil)
    #expect(fixture.requests.count > 2)
    #expect(spy.reported.count { $0 == "didCreateUploadable" } == 1)
  }

  @Test("Monitors are notified of the end of each task, and of the failure of one", arguments: dialects)
  func endsOfTasks(dialect: UploadEndpoint.Dialect) async throws {
    let spy = EventSpy()
    let fixture = try UploadFixture(dialect, session: .real(eventMonitors: [spy]))
    fixture.uploads.enqueue(.cut(afterBytes: 10))
    #expect(await fixture.upload(Self.bytes).error == nil)
    // The request that creates the upload has a body only in the draft. The first request with a body is cut.
    let ends = dialect == .draft ? ["error", "nil", "nil"] : ["nil", "error", "nil", "nil"]
    let reported = spy.reported
    #expect(fixture.requests.count == ends.count)
    #expect(
      reported.filter { $0.hasPrefix("didCompleteTask") } == ends.map { "didCompleteTask \($0)" })
    #expect(
      reported.filter { $0.hasPrefix("didCompleteWithError") }.map { $0.hasSuffix(" nil") }
        == ends.map { $0 == "nil" })
    #expect(reported.count { $0 == "didCreateTask" } == ends.count)
  }

  @Test("Secrets stay at the origin of the request", arguments: dialects, [true, false])
  func secrets(dialect: UploadEndpoint.Dialect, isForeign: Bool) async throws {
    let other = try HTTPTestServer(routes: .none)
    var options = UploadEndpoint.Options()
    if isForeign { options.locationPrefix = other.url("") }
    let uploads = UploadEndpoint(dialect, options)
    let server = try HTTPTestServer(routes: Routes.none.adding(uploads, at: "/files"))
    let store = try HTTPTestServer(routes: Routes.none.adding(uploads, at: "/files"))
    _ = store
    uploads.enqueue(.cut(afterBytes: 10))
    other.enqueue(.status(403))
    let configuration = URLSessionConfiguration.isolated
    configuration.httpAdditionalHeaders = ["Authorization": "Bearer secret", "X-Public": "1"]
    let request = Session.real(configuration: configuration).upload(
      Data(Self.bytes), to: server.url("/files"), headers: ["Cookie": "a=b"]
    ).resumable(UploadFixture.options(uploads.scheme))
    let response = await request.response()
    let first = try #require(server.recordedRequests.first)
    #expect(first.header("Authorization") == "Bearer secret" && first.header("Cookie") == "a=b")
    guard isForeign else {
      #expect(response.error == nil)
      return #expect(server.recordedRequests.allSatisfy { $0.header("Authorization") == "Bearer secret" })
    }
    #expect(response.error?.responseCode == 403)
    let foreign = try #require(other.recordedRequests.first)
    #expect(foreign.header("X-Public") == "1")
    #expect(foreign.header("Authorization") == nil && foreign.header("Cookie") == nil)
  }

  @Test("An upload of another origin gets no credential for a challenge") func challenge() async throws {
    let other = try HTTPTestServer(routes: .none)
    other.enqueue(Reply.status(401).with(header: "WWW-Authenticate", value: "Basic realm=\"x\""))
    var options = UploadEndpoint.Options()
    options.locationPrefix = other.url("")
    let fixture = try UploadFixture(.tus, options)
    let request = fixture.session.upload(Data(Self.bytes), to: fixture.url).authenticate(
      username: "u", password: "p"
    )
    .resumable(fixture.options())
    #expect(await request.response().error?.responseCode == 401)
    #expect(other.recordedRequests.map(\.method) == ["PATCH"])
  }

  @Test("An upload that leaves TLS is refused") func downgrade() async throws {
    let plain = try HTTPTestServer(routes: .none)
    var options = UploadEndpoint.Options()
    options.locationPrefix = plain.url("")
    var transport = TransportOptions()
    transport.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let session = Session.real(options: transport)
    let tus = try UploadFixture(.tus, options, session: session, security: .tls(.localhost))
    #expect(await tus.upload(Self.bytes).error?.uploadError == .unusableUploadURL)
    let draft = try UploadFixture(.draft, options, session: session, security: .tls(.localhost))
    draft.uploads.enqueue(.cut(afterBytes: 10))
    #expect(await draft.upload(Self.bytes).error?.transferCode == .networkConnectionLost)
    #expect(plain.requestCount == 0)
  }

  @Test("Uploads over TLS continue", arguments: dialects) func secure(dialect: UploadEndpoint.Dialect)
    async throws
  {
    var transport = TransportOptions()
    transport.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let fixture = try UploadFixture(dialect, session: .real(options: transport), security: .tls(.localhost))
    fixture.uploads.enqueue(.cut(afterBytes: 10), .cut(afterBytes: 50))
    #expect(await fixture.upload(Self.bytes).error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes])
  }

  @Test("A redirect of the creation is followed, and the upload is where it leads") func redirect()
    async throws
  {
    for dialect in Self.dialects {
      let uploads = UploadEndpoint(dialect)
      let routes = Routes.none.adding(uploads, at: "/new/files").adding("/old") { _, _ in
        Reply.status(307).with(header: "Location", value: "/new/files")
      }
      let server = try HTTPTestServer(routes: routes)
      uploads.enqueue(.cut(afterBytes: 10))
      let request = Session.real().upload(Data(Self.bytes), to: server.url("/old"))
        .resumable(UploadFixture.options(uploads.scheme))
      #expect(await request.response().error == nil)
      #expect(uploads.uploads.map(\.content) == [Self.bytes] && uploads.processedCount == 1)
    }
  }

  @Test("A token that expires is renewed in the middle of the upload") func renewedToken() async throws {
    let fixture = try UploadFixture(.draft)
    fixture.uploads.enqueue(.cut(afterBytes: 10), .status(401), .pass, .status(401))
    let spy = SpyInterceptor(retry: { request, _, _ in
      request.response?.statusCode == 401 ? .retry : .doNotRetry
    })
    let request = fixture.session.upload(Data(Self.bytes), to: fixture.url, interceptor: spy)
      .resumable(fixture.options()).validate()
    #expect(await request.response().error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes])
  }

  // MARK: Events

  @Test("Handlers and monitors see the last response alone", arguments: dialects)
  func handlers(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 10))
    let heads = Recorder<Int>()
    let validations = Recorder<Int>()
    let completions = Recorder<String>()
    let monitor = ClosureEventMonitor()
    monitor.taskDidComplete = { _, task, error in
      completions.add("\(task.originalRequest?.httpMethod ?? "") \(error == nil)")
    }
    monitor.requestIsRetrying = { _ in completions.add("retry") }
    let session = Session.real(eventMonitors: [monitor])
    let request = session.upload(Data(Self.bytes), to: fixture.url).resumable(fixture.options())
      .onHTTPResponse { heads.add($0.statusCode) }
      .validate { _, response, _ in
        validations.add(response.statusCode)
        return .success(())
      }
    let response = await request.response()
    let status = dialect == .draft ? 200 : 204
    #expect(response.error == nil && response.response?.statusCode == status)
    #expect(await heads.wait(for: 1) == [status])
    #expect(validations.values == [status])
    let first = dialect == .draft ? ["POST false"] : ["POST true", "PATCH false"]
    #expect(completions.values == first + ["retry", "HEAD true", "PATCH true"])
  }

  @Test("Progress counts the whole upload and never falls", arguments: dialects, [true, false])
  func progress(dialect: UploadEndpoint.Dialect, isObserved: Bool) async throws {
    let fixture = try UploadFixture(dialect)
    let bytes = UploadFixture.content(1_000_000)
    fixture.uploads.enqueue(.cut(afterBytes: 600_000))
    let counts = Recorder<(attempt: Int, completed: Int64, total: Int64)>()
    let queue = DispatchQueue(label: "test.progress")
    let request = fixture.session.upload(Data(bytes), to: fixture.url)
      .resumable(fixture.options { $0.maximumPartSize = 700_000 })
    if isObserved {
      request.uploadProgress(queue: queue) { [weak request] progress in
        counts.add((request?.retryCount ?? 0, progress.completedUnitCount, progress.totalUnitCount))
      }
    }
    #expect(await request.response().error == nil)
    queue.sync {}
    #expect(request.uploadProgress.completedUnitCount == 1_000_000)
    #expect(request.uploadProgress.totalUnitCount == 1_000_000)
    #expect(counts.values.isEmpty != isObserved)
    #expect(counts.values.allSatisfy { $0.total == 1_000_000 && $0.completed <= 1_000_000 })
    let second = counts.values.filter { $0.attempt == 1 }.map(\.completed)
    #expect(second == second.sorted() && second.allSatisfy { $0 >= 600_000 })
  }

  @Test("Progress does not fall if the server has fewer bytes than were sent") func keptProgress() throws {
    let body = UploadBody(fileManager: .default, transfer: nil, runsUserCode: false, isSpent: nil) {
      .data(Data(Self.bytes))
    }
    var policy = UploadResumption.Policy()
    policy.dialect = .draft
    let resumer = body.resumer(orAdd: UploadResumer(.success(policy)))
    let kind = UploadKind(upload: body)
    let request = try URLRequest(url: "http://a.test/files", method: .post)
    _ = try resumer.request(from: request) { body.made() }
    var (count, last) = (ByteCount(), ByteCount())
    for (sent, total) in [(60, 60), (10, 60), (70, 70)] as [(Int64, Int64)] {
      count.sent = sent
      last = kind.count(count, after: last)
      #expect(last.sent == total && last.expectedToSend == 100, "\(sent) bytes of a request were sent")
    }
  }

  @Test("An upload that is suspended continues") func suspension() async throws {
    let fixture = try UploadFixture(.draft)
    fixture.uploads.enqueue(.cut(afterBytes: 10))
    let spy = SpyInterceptor(retry: { request, _, _ in
      request.suspend()
      return .doNotRetry
    })
    let request = fixture.session.upload(Data(Self.bytes), to: fixture.url, interceptor: spy)
      .resumable(fixture.options())
    async let response = request.response()
    #expect(await eventually { request.isSuspended && request.retryCount == 1 })
    #expect(fixture.requests == ["POST"])
    request.resume()
    #expect(await response.error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes])
  }

  // MARK: Checkpoints

  /// Breaks an upload of a file, and returns its checkpoint.
  private static func checkpoint(_ fixture: UploadFixture, _ file: URL) async throws -> Data {
    fixture.uploads.enqueue(.cut(afterBytes: 60))
    let checkpoints = Recorder<Data>()
    let request = fixture.session.upload(file, to: fixture.url)
      .resumable(fixture.options { $0.maximumFailureCount = 0 })
      .onUploadCheckpoint(on: .global()) { checkpoints.add($0) }
    #expect(await request.response().error != nil)
    let data = try #require(request.uploadCheckpoint)
    #expect(await checkpoints.wait(for: 1) == [data])
    return data
  }

  @Test("A checkpoint has the URL before the adapters, which run again") func adaptedURL() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("file", Data(Self.bytes))
    let fixture = try UploadFixture(.tus)
    let adapter = SpyInterceptor(adapt: { request, count in
      var request = request
      request.url = request.url.flatMap { URL(string: "\($0.absoluteString)?signature=secret-\(count)") }
      return .success(request)
    })
    fixture.uploads.enqueue(.cut(afterBytes: 60))
    let request = fixture.session.upload(file, to: fixture.url, interceptor: adapter)
      .resumable(fixture.options { $0.maximumFailureCount = 0 })
    #expect(await request.response().error != nil)
    let data = try #require(request.uploadCheckpoint)
    #expect(data.range(of: Data("secret".utf8)) == nil)
    #expect(data.range(of: Data("\"\(fixture.url)\"".utf8)) != nil)
  }

  /// Makes an upload of a file in five parts.
  private static func uploadInParts(
    _ fixture: UploadFixture, _ folder: TemporaryFolder
  ) throws -> UploadRequest {
    let file = try folder.file("file", Data(bytes))
    return fixture.session.upload(file, to: fixture.url)
      .resumable(fixture.options { $0.maximumPartSize = Int64(max(1, bytes.count / 5)) })
  }

  @Test("A checkpoint handler is called once for each URL of the upload", arguments: dialects)
  func checkpointCalls(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let (checkpoints, queues) = (Recorder<Data>(), Recorder<String>())
    let queue = DispatchQueue(label: "checkpoints")
    let request = try Self.uploadInParts(fixture, folder)
      .onUploadCheckpoint(on: queue) {
        queues.add(queueLabel())
        checkpoints.add($0)
      }
    #expect(await request.response().error == nil)
    queue.sync {}
    #expect(fixture.requests.count > 4, "\(fixture.requests)")
    #expect(checkpoints.count == 1 && queues.values == ["checkpoints"])
  }

  @Test("An upload that is sent again calls the checkpoint handler for its new URL", arguments: dialects)
  func checkpointOfUploadSentAgain(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let checkpoints = Recorder<Data>()
    let queue = DispatchQueue(label: "checkpoints")
    let request = try Self.uploadInParts(fixture, folder)
      .onUploadCheckpoint(on: queue) { checkpoints.add($0) }
    #expect(await request.response().error == nil)
    fixture.session.retryRequest(request, withDelay: nil)
    #expect(await request.response().error == nil)
    queue.sync {}
    #expect(fixture.uploads.processedCount == 2)
    #expect(Set(checkpoints.values).count == 2, "each upload has a URL, and a checkpoint")
  }

  @Test("Another session continues from a checkpoint", arguments: dialects)
  func continued(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let file = try folder.file("file", Data(Self.bytes))
    let data = try await Self.checkpoint(fixture, file)
    #expect(fixture.uploads.uploads.first?.content == Array(Self.bytes.prefix(60)))
    let request = Session.real().upload(
      resumingWith: data, file: file, as: UploadFixture.options(), headers: ["Authorization": "Bearer a"])
    #expect(await request.response().error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes] && fixture.uploads.processedCount == 1)
    #expect(fixture.requests.suffix(2) == ["HEAD", "PATCH 60"])
    #expect(fixture.server.recordedRequests.suffix(2).allSatisfy { $0.header("Authorization") == "Bearer a" })
    // What is complete is not sent again.
    let again = Session.real().upload(resumingWith: data, file: file, as: UploadFixture.options())
    #expect(await again.response().error == nil)
    #expect(fixture.requests.last == "HEAD" && fixture.uploads.processedCount == 1)
  }

  @Test("A symbolic link is continued like its file", arguments: dialects, [true, false])
  func link(dialect: UploadEndpoint.Dialect, beginsWithLink: Bool) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let file = try folder.file("file", Data(Self.bytes))
    let link = folder["link"]
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
    let data = try await Self.checkpoint(fixture, beginsWithLink ? link : file)
    let request = Session.real().upload(
      resumingWith: data, file: beginsWithLink ? file : link, as: UploadFixture.options())
    #expect(await request.response().error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes] && fixture.uploads.processedCount == 1)
    #expect(fixture.requests.suffix(2) == ["HEAD", "PATCH 60"])
  }

  @Test("A checkpoint is refused for another file, and for a lost upload", arguments: dialects)
  func refusedCheckpoint(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let file = try folder.file("file", Data(Self.bytes))
    let data = try await Self.checkpoint(fixture, file)
    let session = Session.real()
    let shorter = try folder.file("shorter", Data(Self.bytes.dropLast()))
    let other = session.upload(resumingWith: data, file: shorter, as: UploadFixture.options())
    #expect(await other.response().error?.uploadError == .fileHasChanged)
    fixture.uploads.enqueue(.forget)
    let gone = session.upload(resumingWith: data, file: file, as: UploadFixture.options())
    #expect(await gone.response().error?.uploadError == .uploadIsGone)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: file.path)
    let touched = session.upload(resumingWith: data, file: file, as: UploadFixture.options())
    #expect(await touched.response().error?.uploadError == .fileHasChanged)
  }

  @Test("A checkpoint from before the first release is continued", arguments: dialects)
  func version1(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let file = try folder.file("file", Data(Self.bytes))
    let state = try #require(Journal.standard.state(of: try await Self.checkpoint(fixture, file)))
    let (upload, body) = (try #require(state.upload), try #require(state.description.bodyFile))
    #expect(body.path.isEmpty, "the checkpoint is for other machines too")
    let list: [String: Any] = [
      "version": 1, "url": upload.url, "creationURL": upload.creationURL, "method": state.description.method,
      "isTus": upload.dialect == .tus, "file": ["size": body.size, "modified": try #require(body.modified)],
    ]
    let data = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    let request = Session.real().upload(resumingWith: data, file: file, as: UploadFixture.options())
    #expect(await request.response().error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [Self.bytes] && fixture.uploads.processedCount == 1)
    for (key, value) in [("version", 2), ("url", "ftp://a/"), ("file", ["size": -1, "modified": 0])]
      as [(String, Any)]
    {
      let other = list.merging([key: value]) { $1 }
      let data = try PropertyListSerialization.data(fromPropertyList: other, format: .binary, options: 0)
      let request = Session.real().upload(resumingWith: data, file: file)
      #expect(await request.response().error?.uploadError == .invalidCheckpoint, "\(key)")
    }
  }

  @Test("A checkpoint that was cut anywhere, or forged, is refused") func forgedCheckpoints() async throws {
    let file = try TemporaryFolder().file("file")
    func journal(
      _ url: String = "https://a/1", size: Int64 = 0, modified: Double? = 0, _ records: JournalRecord...
    )
      throws -> Data
    {
      var description = TransferDescription(
        kind: .upload, url: "https://a/", method: "POST", fields: [:], created: 0, boot: "")
      description.bodyFile = .init(path: "", isOwned: true, size: size)
      description.bodyFile?.modified = modified
      let creation = try #require(UploadResource(url: "https://a/"))
      let upload = StoredUpload(try #require(UploadResource(url: url)), creation: creation, dialect: .draft)
      return try #require(
        Journal.standard.lines(
          of: [.described(description), .uploading(upload, mayBeComplete: true)] + records))
    }
    let whole = try journal()
    let forged =
      [
        try journal(size: -1), try journal(modified: nil), try journal("http://a/1"),
        try journal("https://a/1", .uploading(nil, mayBeComplete: false)),
      ] + stride(from: 0, to: whole.count, by: 29).map { whole.prefix($0) }
    for data in forged {
      let request = Session.real().upload(resumingWith: data, file: file)
      #expect(await request.response().error?.uploadError == .invalidCheckpoint)
    }
  }

  @Test("Data that are not a checkpoint are refused") func invalidCheckpoint() async throws {
    let file = try TemporaryFolder().file("file")
    for data in [Data(), Data("bplist00".utf8), Data(UploadFixture.content(200))] {
      let request = Session.real().upload(resumingWith: data, file: file)
      #expect(await request.response().error?.uploadError == .invalidCheckpoint)
    }
  }

  @Test("A broken upload can be removed from the server", arguments: dialects)
  func removal(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let file = try folder.file("file", Data(Self.bytes))
    let data = try await Self.checkpoint(fixture, file)
    let response = await Session.real().removeUpload(data).validate().serializingData(emptyResponseCodes: [
      204
    ]).response
    #expect(response.error == nil && response.response?.statusCode == 204)
    #expect(fixture.uploads.uploads.first?.isForgotten == true)
    #expect(fixture.requests.last == "DELETE")
  }
}
