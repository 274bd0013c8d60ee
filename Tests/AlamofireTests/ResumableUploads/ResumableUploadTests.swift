import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Randomness
import Testing

/// Resumable uploads against the server of the tests.
@Suite("Resumable uploads", .timeLimit(.minutes(5)))
struct ResumableUploadTests {
  static let dialects: [UploadEndpoint.Dialect] = [.draft, .tus]

  @Test("An upload without a failure is stored once", arguments: dialects, [0, 1, 1000, 300_000])
  func undisturbed(dialect: UploadEndpoint.Dialect, count: Int) async throws {
    let fixture = try UploadFixture(dialect)
    let bytes = UploadFixture.content(count)
    let response = await fixture.upload(bytes)
    #expect(response.error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [bytes] && fixture.uploads.processedCount == 1)
    let isEmpty = count == 0
    #expect(fixture.requests == (dialect == .draft ? ["POST"] : isEmpty ? ["POST"] : ["POST", "PATCH 0"]))
    #expect(response.response?.statusCode == (dialect == .draft ? 200 : isEmpty ? 201 : 204))
    if dialect == .draft { #expect(response.data == Data("stored \(count)".utf8)) }
  }

  @Test("A broken upload of a file continues at the offset of the server", arguments: dialects)
  func brokenFile(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let bytes = UploadFixture.content(500_000)
    let file = try folder.file("file", Data(bytes))
    fixture.uploads.enqueue(.cut(afterBytes: 100_001), .cut(afterBytes: 0), .cut(afterBytes: 3))
    // A reset can destroy the informational response while the content is sent.
    let options = fixture.options { $0.createsWithContent = false }
    let response = await fixture.session.upload(file, to: fixture.url, method: .put)
      .resumable(options).validate().response()
    #expect(response.error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [bytes] && fixture.uploads.processedCount == 1)
    #expect(fixture.uploads.receivedByteCount == bytes.count)
    let first = [dialect == .draft ? "PUT" : "POST", "PATCH 0"]
    #expect(
      fixture.requests == first + ["HEAD", "PATCH 100001", "HEAD", "PATCH 100001", "HEAD", "PATCH 100004"])
  }

  @Test("Content stays the same and is stored once after cuts at every byte", .seeded, arguments: dialects)
  func everyCut(dialect: UploadEndpoint.Dialect) async throws {
    let bytes = UploadFixture.content(40)
    let fixture = try UploadFixture(dialect)
    var random = Seed.generator()
    for cut in 0...40 {
      // The second connection breaks after a byte, if there is one.
      fixture.uploads.enqueue(.cut(afterBytes: cut))
      if cut < 39 { fixture.uploads.enqueue(.cut(afterBytes: Int.random(in: 0..<40 - cut, using: &random))) }
      // A reset can destroy the informational response that names the resource, and then a POST is not sent again.
      let response = await fixture.upload(bytes) { $0.createsWithContent = false }
      #expect(response.error == nil, "cut after \(cut)")
      #expect(fixture.uploads.uploads.last?.content == bytes, "cut after \(cut)")
    }
    #expect(fixture.uploads.uploads.count == 41 && fixture.uploads.processedCount == 41)
    #expect(fixture.uploads.receivedByteCount == 41 * 40)
    #expect(fixture.uploads.pendingFaultCount == 0)
  }

  @Test("A large file that breaks fifty times is sent little more than once", arguments: dialects)
  func largeFile(dialect: UploadEndpoint.Dialect) async throws {
    let size = 64 << 20
    let fixture = try UploadFixture(dialect)
    let folder = try TemporaryFolder()
    let bytes = [UInt8](repeating: 0, count: size).indices.map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 9) }
    let file = try folder.file("file", Data(bytes))
    fixture.uploads.enqueue((0..<50).map { _ in .cut(afterBytes: size / 51) })
    // A reset can destroy the informational response while the content is sent.
    let options = fixture.options { $0.createsWithContent = false }
    let request = fixture.session.upload(file, to: fixture.url).resumable(options)
    let response = await request.response()
    #expect(response.error == nil)
    #expect(fixture.uploads.uploads.count == 1 && fixture.uploads.processedCount == 1)
    #expect(fixture.uploads.uploads.first?.content == bytes)
    #expect(fixture.uploads.receivedByteCount == size && fixture.uploads.pendingFaultCount == 0)
    #expect(request.retryCount == 50)
    #expect(request.requests.count == 1 && request.allMetrics.count == 1)
  }

  @Test("The response to the last byte may be lost", arguments: dialects)
  func lostResponse(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    if dialect == .tus { fixture.uploads.enqueue(.pass) }
    fixture.uploads.enqueue(.loseResponse)
    let response = await fixture.upload(UploadFixture.content(1000))
    #expect(response.error == nil)
    #expect(fixture.uploads.processedCount == 1 && fixture.uploads.uploads.count == 1)
    #expect(fixture.requests == (dialect == .draft ? ["POST", "HEAD"] : ["POST", "PATCH 0", "HEAD"]))
    #expect(response.response?.statusCode == (dialect == .draft ? 204 : 200))
    #expect(response.data == nil)
  }

  @Test("Large uploads go in parts", arguments: dialects)
  func parts(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.pass, .cut(afterBytes: 7))
    let bytes = UploadFixture.content(45)
    let response = await fixture.upload(bytes) { $0.maximumPartSize = 10 }
    #expect(response.error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [bytes] && fixture.uploads.processedCount == 1)
    #expect(
      fixture.requests
        == (dialect == .draft
          ? ["POST", "PATCH 10", "HEAD", "PATCH 17", "PATCH 27", "PATCH 37"]
          : ["POST", "PATCH 0", "HEAD", "PATCH 7", "PATCH 17", "PATCH 27", "PATCH 37"]))
  }

  @Test("The server's limits are respected") func limits() async throws {
    var options = UploadEndpoint.Options()
    options.maximumAppendSize = 20
    let fixture = try UploadFixture(.draft, options)
    let bytes = UploadFixture.content(45)
    // The first request is larger than the limit that its refusal reports.
    #expect(await fixture.upload(bytes).error == nil)
    #expect(fixture.requests == ["POST", "POST", "PATCH 20", "PATCH 40"])
    #expect(fixture.uploads.uploads.map(\.content) == [bytes])
    // The limit is known before.
    let automatic = try UploadFixture(.draft, options)
    let request = automatic.session.upload(Data(bytes), to: automatic.url).resumable(UploadFixture.options())
    #expect(await request.response().error == nil)
    #expect(automatic.requests == ["OPTIONS", "POST", "PATCH 20", "PATCH 40"])
    options.maximumSize = 44
    for dialect in Self.dialects {
      let small = try UploadFixture(dialect, options)
      let request = small.session.upload(Data(bytes), to: small.url).resumable(UploadFixture.options())
      #expect(await request.response().error?.uploadError == .sizeNotAccepted(limit: 44))
      #expect(small.requests == ["OPTIONS"] && small.uploads.uploads.isEmpty)
    }
  }

  @Test("The protocol of the server is found", arguments: dialects)
  func discovery(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    fixture.uploads.enqueue(.cut(afterBytes: 5))
    let bytes = UploadFixture.content(10)
    var options = UploadFixture.options()
    options.metadata = ["filename": "ä.txt"]
    #expect(
      await fixture.session.upload(Data(bytes), to: fixture.url).resumable(options).response().error == nil)
    #expect(fixture.uploads.uploads.map(\.content) == [bytes])
    #expect(
      fixture.requests
        == (dialect == .draft ? ["OPTIONS", "POST"] : ["OPTIONS", "POST", "PATCH 0"]) + ["HEAD", "PATCH 5"])
    if dialect == .tus { #expect(fixture.uploads.uploads.first?.metadata == "filename w6QudHh0") }
  }

  @Test("A server without resumable uploads gets an ordinary request") func ordinaryServer() async throws {
    let server = try HTTPTestServer()
    for scheme in [ResumableUpload.Scheme.draft, .automatic] {
      let response = await Session.real().upload(Data("body".utf8), to: server.url("/post"))
        .resumable(UploadFixture.options(scheme)).validate().response()
      #expect(response.error == nil && response.response?.statusCode == 200)
    }
    #expect(
      server.recordedRequests.filter { $0.method == "POST" }.map(\.body) == [
        Array("body".utf8), Array("body".utf8),
      ])
    let tus = Session.real().upload(Data("body".utf8), to: server.url("/post"))
    #expect(
      await tus.resumable(UploadFixture.options(.tus)).response().error?.uploadError == .unsupportedByServer)
  }

  @Test("The careful creation sends the content after the response") func carefulCreation() async throws {
    var options = UploadEndpoint.Options()
    options.sendsInformational = false
    let fixture = try UploadFixture(.draft, options)
    let bytes = UploadFixture.content(100)
    fixture.uploads.enqueue(.pass, .cut(afterBytes: 30))
    #expect(await fixture.upload(bytes) { $0.createsWithContent = false }.error == nil)
    #expect(fixture.requests == ["POST", "PATCH 0", "HEAD", "PATCH 30"])
    #expect(fixture.uploads.uploads.map(\.content) == [bytes] && fixture.uploads.processedCount == 1)
  }

  @Test("Forms are uploaded resumably, and their file is removed") func forms() async throws {
    let fixture = try UploadFixture(.draft)
    fixture.uploads.enqueue(.cut(afterBytes: 2000), .cut(afterBytes: 10))
    let request = fixture.session.upload(
      multipartFormData: { $0.append(Data(UploadFixture.content(5000)), withName: "a") }, to: fixture.url,
      usingThreshold: 0
    ).resumable(fixture.options())
    #expect(await request.response().error == nil)
    #expect(request.uploadCheckpoint == nil)
    let form = try #require(fixture.uploads.uploads.first?.content)
    #expect(fixture.uploads.processedCount == 1 && fixture.uploads.uploads.count == 1 && form.count > 5000)
    #expect(String(decoding: form.suffix(8), as: UTF8.self).hasSuffix("--\r\n"))
    guard case .file(let url, true)? = request.uploadable else {
      Issue.record("no file")
      return
    }
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }

  @Test("A second call of resumable during an upload does not change its requests", arguments: dialects)
  func calledTwice(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let upload = Mutex<UploadRequest?>(nil)
    let interceptor = SpyInterceptor(
      adapt: { request, _ in
        upload.withLock { $0 }?.resumable(UploadFixture.options())
        return .success(request)
      }, retry: { _, _, _ in .doNotRetry })
    let request = fixture.session.upload(Data("abc".utf8), to: fixture.url, interceptor: interceptor)
    upload.withLock { $0 = request }
    #expect(await request.resumable(UploadFixture.options()).response().error == nil)
    #expect(fixture.uploads.processedCount == 1)
    #expect(fixture.uploads.uploads.map(\.content) == [Array("abc".utf8)])
    #expect(fixture.requests == ["OPTIONS", "POST"] + (dialect == .tus ? ["PATCH 0"] : []))
    upload.withLock { $0 = nil }
  }

  @Test("A later call changes the options alone", arguments: dialects)
  func changedOptions(dialect: UploadEndpoint.Dialect) async throws {
    let fixture = try UploadFixture(dialect)
    let file = try TemporaryFolder()
    let content = Data(UploadFixture.content(100))
    let url = try file.file("body", content)
    fixture.uploads.enqueue(.cut(afterBytes: 40))
    let broken = fixture.session.upload(url, to: fixture.url).resumable(
      fixture.options {
        $0.createsWithContent = false
        $0.maximumFailureCount = 0
      })
    #expect(await broken.response().error != nil)
    let checkpoint = try #require(broken.uploadCheckpoint)
    let request = fixture.session.upload(resumingWith: checkpoint, file: url)
      .resumable(fixture.options { $0.maximumPartSize = 50 })
    #expect(await request.response().error == nil)
    #expect(fixture.requests.dropFirst(2) == ["HEAD", "PATCH 40", "PATCH 90"])
    #expect(fixture.uploads.uploads.map(\.content) == [Array(content)])
  }

  @Test("A finished upload can be sent again") func sentAgain() async throws {
    let fixture = try UploadFixture(.draft)
    let request = fixture.session.upload(Data("abc".utf8), to: fixture.url).resumable(fixture.options())
    #expect(await request.response().error == nil)
    fixture.session.retryRequest(request, withDelay: nil)
    #expect(await request.response().error == nil)
    #expect(await eventually { fixture.uploads.processedCount == 2 })
  }
}
