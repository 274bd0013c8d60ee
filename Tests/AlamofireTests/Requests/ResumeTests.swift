import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ResumeTests {
  private let session = Session.real()

  private func end(_ request: DownloadRequest) async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  /// Returns the resume data of a download that broke off after `count` bytes.
  private func broken(_ file: VersionedFile, _ server: HTTPTestServer, after count: Int) async throws -> Data
  {
    file.breakAfter(count)
    let response = await end(session.download(server.url("/file")))
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(response.fileURL == nil)
    return try #require(response.resumeData)
  }

  private func contents(_ response: AFDownloadResponse<URL?>) throws -> Data {
    let url = try #require(response.fileURL, "\(String(describing: response.error))")
    defer { try? FileManager.default.removeItem(at: url) }
    return try Data(contentsOf: url)
  }

  @Test("A broken download is resumed", arguments: [VersionedFile.Validator.entityTag, .date])
  func resume(validator: VersionedFile.Validator) async throws {
    let file = VersionedFile(size: 400_000, validator: validator)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 123_456)
    let (counts, totals) = (Recorder<Int64>(), Recorder<Int64>())
    let response = await end(
      session.download(resumingWith: data)
        .downloadProgress(queue: .global()) {
          counts.add($0.completedUnitCount)
          totals.add($0.totalUnitCount)
        })
    #expect(response.response?.statusCode == 206)
    #expect(try contents(response) == file.bytes)
    #expect(server.recordedRequests.last?.header("Range") == "bytes=123456-")
    #expect(counts.values.allSatisfy { $0 > 123_456 })
    #expect(Set(totals.values) == [400_000], "the total has the bytes of the first download, too")
    // Also without an observer.
    let unwatched = session.download(resumingWith: try await broken(file, server, after: 123_456))
    #expect(try contents(await end(unwatched)) == file.bytes)
    #expect(unwatched.downloadProgress.completedUnitCount == 400_000)
    #expect(unwatched.downloadProgress.totalUnitCount == 400_000)
  }

  @Test("Resume data contain the request before its adapters, which run again")
  func adapted() async throws {
    let file = VersionedFile(size: 400_000)
    let server = try HTTPTestServer(routes: file.routes)
    let adapter = SpyInterceptor(adapt: { request, count in
      var request = request
      request.headers.update(.authorization(bearerToken: "secret-\(count)"))
      request.url = request.url.flatMap { URL(string: "\($0.absoluteString)?signature=secret-\(count)") }
      return .success(request)
    })
    file.breakAfter(123_456)
    let response = await end(session.download(server.url("/file"), interceptor: adapter))
    let data = try #require(response.resumeData)
    #expect(data.range(of: Data("secret".utf8)) == nil)
    #expect(data.range(of: Data("\"\(server.url("/file"))\"".utf8)) != nil)
    let resumed = await end(session.download(resumingWith: data, interceptor: adapter))
    #expect(try contents(resumed) == file.bytes)
    let last = try #require(server.recordedRequests.last)
    #expect(last.target == "/file?signature=secret-2")
    #expect(last.header("Authorization") == "Bearer secret-2")
    #expect(last.header("Range") == "bytes=123456-")
  }

  @Test("An error of a retrier leaves the resume data") func refusedRetry() async throws {
    let file = VersionedFile(size: 100_000)
    let server = try HTTPTestServer(routes: file.routes)
    file.breakAfter(50_000)
    let spy = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) })
    let request = session.download(server.url("/file"), interceptor: spy)
    let response = await withCheckedContinuation { continuation in
      request.responseData(queue: .global()) { continuation.resume(returning: $0) }
    }
    defer { response.removeFile() }
    #expect(
      response.error?.isRequestRetryError == true && spy.retryCount == 2, "the serializer has failed, too")
    #expect(response.resumeData != nil)
  }

  @Test("The bytes of a failed download count until the machine restarts") func boots() async throws {
    let file = VersionedFile(size: 100_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 10_000)
    let state = try #require(Journal.standard.state(of: data))
    #expect(state.receivedSize(boot: PartialFile.boot, fileSize: .max) == 10_000)
    #expect(state.receivedSize(boot: "another", fileSize: .max) == 0)
    #expect(state.description.url == server.url("/file"))
    try FileManager.default.removeItem(at: try part(namedBy: data))
  }

  @Test("The resume data of a resumed download stay valid if it is cancelled before its response")
  func cancelledBeforeResponse() async throws {
    let file = VersionedFile(size: 100_000)
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .none.adding("/file") { request, _ in
        let reply = file.reply(to: request)
        return request.header("Range") == nil ? reply : reply.held(by: gate)
      })
    let data = try await broken(file, server, after: 50_000)
    let request = session.download(resumingWith: data)
    async let response = end(request)
    await gate.waitUntilReached()
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    gate.open()
    #expect(try contents(await end(session.download(resumingWith: data))) == file.bytes)
    #expect(server.recordedRequests.last?.header("Range") == "bytes=50000-")
  }

  @Test("The resume data of a resumed download stay valid if it is cancelled while its file grows")
  func cancelledDuringResponse() async throws {
    let file = StallingFile(size: 300_000, stallingAfter: 120_000, 60_000)
    let server = try HTTPTestServer(routes: file.routes)
    /// Cancels a download that has stalled after this number of bytes.
    func cancel(_ request: DownloadRequest, after count: Int64, producingData: Bool) async -> Data? {
      let arrived = Latch()
      request.downloadProgress(queue: .global()) { if $0.completedUnitCount >= count { arrived.open() } }
      async let response = end(request)
      await arrived.wait()
      request.cancel(producingResumeData: producingData)
      return await response.resumeData
    }
    let first = await cancel(session.download(server.url("/file")), after: 120_000, producingData: true)
    let data = try #require(first)
    let resumed = session.download(resumingWith: data)
    #expect(await cancel(resumed, after: 180_000, producingData: false) == nil)
    #expect(try contents(await end(session.download(resumingWith: data))) == file.bytes)
    #expect(server.recordedRequests.last?.header("Range") == "bytes=120000-")
  }

  @Test("A download can be resumed repeatedly") func repeatedResume() async throws {
    let file = VersionedFile(size: 100_000)
    let server = try HTTPTestServer(routes: file.routes)
    var data = try await broken(file, server, after: 10_000)
    for _ in 0..<5 {
      file.breakAfter(9_999)
      data = try #require(await end(session.download(resumingWith: data)).resumeData)
    }
    #expect(try contents(await end(session.download(resumingWith: data))) == file.bytes)
  }

  @Test(
    "A changed file is downloaded from the beginning", arguments: [VersionedFile.Validator.entityTag, .date])
  func changedFile(validator: VersionedFile.Validator) async throws {
    let file = VersionedFile(size: 50_000, validator: validator)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    let part = try part(namedBy: data)
    #expect(try Data(contentsOf: part) == file.bytes.prefix(20_000))
    file.change()
    let response = await end(session.download(resumingWith: data))
    #expect(response.response?.statusCode == 200)
    #expect(try contents(response) == file.bytes)
    #expect(!FileManager.default.fileExists(atPath: part.path), "the part is of no use any more")
  }

  @Test("A wrong range starts the download again") func wrongRange() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    file.sendWrongRanges()
    let response = await end(session.download(resumingWith: data))
    #expect(try contents(response) == file.bytes)
    for name in ["Range", "If-Range"] {
      #expect(server.recordedRequests.map { $0.header(name) != nil } == [false, true, false], "\(name)")
    }
  }

  @Test("A missing part starts the download again") func missingPart() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let before = try FileManager.default.contentsOfDirectory(
      atPath: FileManager.default.temporaryDirectory.path)
    let data = try await broken(file, server, after: 17_003)
    for name in try FileManager.default.contentsOfDirectory(
      atPath: FileManager.default.temporaryDirectory.path)
    where name.hasPrefix("Alamofire_") && !before.contains(name) {
      let path = FileManager.default.temporaryDirectory.appendingPathComponent(name)
      if (try? Data(contentsOf: path)) == file.bytes.prefix(17_003) {
        try FileManager.default.removeItem(at: path)
      }
    }
    let response = await end(session.download(resumingWith: data))
    #expect(response.response?.statusCode == 200)
    #expect(try contents(response) == file.bytes)
  }

  @Test("A resumed download whose part is missing asks for the whole file") func missingPartOfResumed()
    async throws
  {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let first = try await broken(file, server, after: 10_000)
    file.breakAfter(9_999)
    let data = try #require(await end(session.download(resumingWith: first)).resumeData)
    try FileManager.default.removeItem(at: try part(namedBy: data))
    let isWhole = try contents(await end(session.download(resumingWith: data))) == file.bytes
    #expect(isWhole)
    let fields = server.recordedRequests.map { [$0.header("Range"), $0.header("If-Range")] }
    #expect(fields == [[nil, nil], ["bytes=10000-", "\"v1\""], [nil, nil]])
  }

  @Test(
    "Without a strong validator there is no resume data", arguments: [VersionedFile.Validator.weakTag, .none])
  func weakValidators(validator: VersionedFile.Validator) async throws {
    let file = VersionedFile(size: 50_000, validator: validator)
    let server = try HTTPTestServer(routes: file.routes)
    file.breakAfter(10_000)
    let response = await end(session.download(server.url("/file")))
    #expect(response.error != nil)
    #expect(response.resumeData == nil)
  }

  @Test("Invalid resume data is an error") func invalidData() async throws {
    let response = await end(session.download(resumingWith: Data("not ours".utf8)))
    #expect((response.error?.underlyingError as? URLError)?.code == .cannotDecodeRawData)
    #expect(response.error?.localizedDescription.contains("resume data") == true)
  }

  @Test("Cancelling by resume data calls the completion once") func completion() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let answers = Recorder<Bool>()
    let idle = session.download(server.url("/file"), shouldAutomaticallyResume: false)
    idle.cancel(byProducingResumeData: { answers.add($0 == nil) })
    #expect(await answers.wait(for: 1) == [true])
    let over = session.download(server.url("/file"))
    let response = await end(over)
    over.cancel(byProducingResumeData: { answers.add($0 == nil) })
    #expect(await answers.wait(for: 2) == [true, true])
    _ = try contents(response)
  }

  @Test("A cancelled download has resume data on demand", arguments: [true, false])
  func cancelled(wanted: Bool) async throws {
    let gate = Gate()
    let bytes = [UInt8](repeating: 7, count: 100_000)
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply(body: .parts([.bytes(bytes), .gate(gate), .bytes(bytes)])).with(header: "ETag", value: "\"a\""))
    let started = Recorder<Bool>()
    let request = session.download(server.url("/"))
      .downloadProgress(queue: .global()) { _ in started.add(true) }
    async let response = end(request)
    await started.wait(for: 1)
    request.cancel(producingResumeData: wanted)
    let answer = await response
    defer { answer.removeFile() }
    gate.open()
    #expect(answer.error?.isExplicitlyCancelledError == true)
    #expect((answer.resumeData != nil) == wanted)
    #expect((request.resumeData != nil) == wanted)
  }

  @Test(
    "An invalid partial response starts the download again",
    arguments: [RestOfAFile.endsEarly, .encoded, .otherTag, .tooLong])
  func invalidRest(rest: RestOfAFile) async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    server.enqueue(rest.reply)
    let response = await end(session.download(resumingWith: data))
    #expect(try contents(response) == file.bytes)
    for name in ["Range", "If-Range"] {
      #expect(server.recordedRequests.map { $0.header(name) != nil } == [false, true, false], "\(name)")
    }
  }

  @Test("A server that says that it has no ranges gives no resume data") func noRanges() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(
      routes: .none.adding("/file") { request, _ in
        file.reply(to: request).with(header: "Accept-Ranges", value: "none")
      })
    file.breakAfter(10_000)
    let response = await end(session.download(server.url("/file")))
    #expect(response.error != nil && response.resumeData == nil)
  }

  @Test("A date within a second of the response is a weak validator") func recentDate() async throws {
    let date = "Mon, 01 Jan 2024 00:00:00 GMT"
    let server = try HTTPTestServer(routes: .none)
    let whole = Reply.bytes(50_000).with(header: "Last-Modified", value: date)
    for reply in [whole, whole.with(header: "Date", value: date)] {
      server.enqueue(reply.with(effect: .closeAfterBody(bytes: 10_000)))
      #expect(await end(session.download(server.url("/"))).resumeData == nil)
    }
  }

  @Test("An error response does not remove the part") func errorResponse() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    server.enqueue(.status(503), .bytes(500).with(effect: .closeAfterBody(bytes: 100)))
    let refused = await end(session.download(resumingWith: data).validate())
    // The body of the error response. The part is still needed.
    if let url = refused.fileURL { try FileManager.default.removeItem(at: url) }
    #expect(refused.error?.responseCode == 503)
    #expect(refused.resumeData == data)
    // Another file without a validator.
    let replaced = await end(session.download(resumingWith: data))
    #expect(replaced.error != nil)
    #expect(replaced.resumeData == data)
    let response = await end(session.download(resumingWith: data))
    #expect(response.response?.statusCode == 206)
    #expect(try contents(response) == file.bytes)
  }

  /// Resumes as if an earlier process was killed while it resumed, and the server has the older version again.
  @Test("A part is not overwritten by another version") func otherVersion() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    let gate = Gate()
    server.enqueue(
      Reply(body: .parts([.pattern(30_000), .gate(gate), .pattern(20_000)])).framed(.contentLength)
        .with(header: "ETag", value: "\"v2\""))
    let started = Recorder<Int64>()
    let other = session.download(resumingWith: data)
      .downloadProgress(queue: .global()) { if $0.completedUnitCount == 30_000 { started.add(30_000) } }
    async let held = end(other)
    await started.wait(for: 1)
    let response = await end(session.download(resumingWith: data))
    #expect(response.response?.statusCode == 206)
    #expect(try contents(response) == file.bytes)
    other.cancel()
    #expect(await held.error?.isExplicitlyCancelledError == true)
  }

  @Test("Resume data is used by one download at a time") func exclusiveUse() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    let gate = Gate()
    server.enqueue(
      Reply(
        status: 206,
        headers: [.init(name: "Content-Range", value: "bytes 20000-49999/50000")],
        body: .parts([
          .bytes(Array(file.bytes[20_000..<30_000])), .gate(gate), .bytes(Array(file.bytes[30_000...])),
        ])
      ).with(header: "ETag", value: "\"v1\"").framed(.contentLength))
    let started = Recorder<Bool>()
    let first = session.download(resumingWith: data)
      .downloadProgress(queue: .global()) { _ in started.add(true) }
    async let held = end(first)
    await started.wait(for: 1)
    let second = await end(session.download(resumingWith: data))
    #expect(second.response?.statusCode == 200)
    #expect(try contents(second) == file.bytes)
    gate.open()
    #expect(try contents(await held) == file.bytes)
  }
}

extension ResumeTests {
  @Test("Resume data that are used twice leave the file of the first download", arguments: [false, true])
  func usedTwice(isChanged: Bool) async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    let first = await end(session.download(resumingWith: data))
    #expect(first.response?.statusCode == 206)
    let (url, bytes) = (try #require(first.fileURL), file.bytes)
    defer { try? FileManager.default.removeItem(at: url) }
    if isChanged { file.change() } else { file.breakAfter(10_000) }
    let second = await end(session.download(resumingWith: data))
    #expect((second.error == nil) == isChanged)
    second.removeFile()
    #expect(try Data(contentsOf: url) == bytes)
    #expect(server.recordedRequests.map { $0.header("Range") } == [nil, "bytes=20000-", nil])
  }

  @Test("Another download does not change a file that is being moved to its destination")
  func usedDuringMove() async throws {
    let file = VersionedFile(size: 50_000)
    let server = try HTTPTestServer(routes: file.routes)
    let data = try await broken(file, server, after: 20_000)
    let path = try part(namedBy: data).path
    let folder = try TemporaryFolder()
    let failures = Recorder<TransportFailure.FailureKind?>()
    let destination: DownloadRequest.Destination = { _, _ in
      // The file of a second download, to which the server has sent the same response.
      let second = FileSink(
        path: folder["other"].path, continuing: { _ in .success(.part(path: path, offset: 20_000)) })
      failures.add(second.begin(ResponseHead(status: 206), wake: {})?.kind)
      return (folder["file"], [])
    }
    #expect(await end(session.download(resumingWith: data, to: destination)).error == nil)
    #expect(failures.values == [.cannotContinue])
    #expect(try Data(contentsOf: folder["file"]) == file.bytes)
  }

  @Test("The file of a complete download has another name than the file of its checkpoints")
  func completeAfterCheckpoint() async throws {
    let gate = Gate()
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply(body: .parts([.pattern(60_000), .gate(gate), .pattern(40_000)])).framed(.contentLength)
        .with(header: "ETag", value: "\"v1\""))
    let arrived = Latch()
    let request = session.download(server.url("/"))
      .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 60_000 { arrived.open() } }
    async let ending = end(request)
    await arrived.wait()
    let data = try #require(request.checkpoint())
    gate.open()
    let url = try #require(await ending.fileURL)
    defer { try? FileManager.default.removeItem(at: url) }
    let part = try part(namedBy: data)
    #expect(url.lastPathComponent != part.lastPathComponent)
    #expect(!FileManager.default.fileExists(atPath: part.path))
    #expect(try Data(contentsOf: url).count == 100_000)
    server.enqueue(.bytes(10))
    let again = await end(session.download(resumingWith: data))
    #expect(server.recordedRequests.last?.header("Range") == nil)
    #expect(try contents(again).count == 10)
  }
}

/// An invalid response to a request for the bytes from 20,000 on.
enum RestOfAFile: Sendable {
  case endsEarly, encoded, otherTag, tooLong

  var reply: Reply {
    let end = self == .endsEarly ? 29_999 : 49_999
    var reply = Reply.bytes(end - 19_999)
      .with(header: "Content-Range", value: "bytes 20000-\(end)/\(self == .tooLong ? 50_001 : 50_000)")
      .with(header: "ETag", value: self == .otherTag ? "W/\"v2\"" : "\"v1\"")
    if self == .encoded { reply = reply.with(header: "Content-Encoding", value: "gzip") }
    reply.status = 206
    return reply
  }
}
