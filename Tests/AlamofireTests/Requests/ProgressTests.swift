import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Progress", .timeLimit(.minutes(5)))
struct ProgressTests {
  @Test("A known length ends with a fraction of one") func knownLength() async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/bytes/300000"))
    let queue = DispatchQueue(label: "progress")
    let fractions = Recorder<(Int64, Double)>()
    #expect(request.downloadProgress.fractionCompleted == 0)
    request.downloadProgress(queue: queue) { fractions.add(($0.completedUnitCount, $0.fractionCompleted)) }
    _ = await request.end()
    queue.sync {}
    let counts = fractions.values.map(\.0)
    #expect(counts == counts.sorted())
    #expect(fractions.values.last?.0 == 300_000)
    #expect(fractions.values.last?.1 == 1)
    #expect(request.downloadProgress.totalUnitCount == 300_000)
  }

  @Test("A chunked body has no total") func chunkedBody() async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/stream-bytes/1000"))
    let totals = Recorder<Int64>()
    request.downloadProgress(queue: .global()) { totals.add($0.totalUnitCount) }
    _ = await request.end()
    #expect(await totals.wait(for: 1).last == -1)
    #expect(request.downloadProgress.completedUnitCount == 1000)
    #expect(request.downloadProgress.fractionCompleted == 0)
  }

  @Test("The body of the request is reported", arguments: [100, 300_000])
  func upload(size: Int) async throws {
    let server = try HTTPTestServer()
    var urlRequest = try URLRequest(url: server.url("/upload-sink"), method: .post)
    urlRequest.httpBody = Data(count: size)
    let request = Session.real().request(urlRequest)
    let counts = Recorder<Int64>()
    let queue = DispatchQueue(label: "progress")
    request.uploadProgress(queue: queue) { counts.add($0.completedUnitCount) }
    #expect(await request.end().error == nil)
    queue.sync {}
    #expect(counts.values.last == Int64(size))
    #expect(request.uploadProgress.fractionCompleted == 1)
  }

  @Test("The progress of an upload stays complete after a redirect to a page", arguments: [true, false])
  func redirectedUpload(isObserved: Bool) async throws {
    let server = try HTTPTestServer()
    let target = server.url("/redirect-to?url=/bytes/10&status_code=303")
    let request = Session.real().upload(Data(count: 1000), to: target)
    let parent = Progress(totalUnitCount: 1)
    if isObserved { parent.addChild(request.uploadProgress, withPendingUnitCount: 1) }
    let response = await request.end()
    #expect(response.error == nil && response.data?.count == 10)
    #expect(server.recordedRequests.map(\.method) == ["POST", "GET"])
    #expect(request.uploadProgress.completedUnitCount == 1000)
    #expect(request.uploadProgress.fractionCompleted == 1)
    if isObserved { #expect(parent.fractionCompleted == 1) }
  }

  @Test(
    "The progress is complete after the end", arguments: ["/bytes/1000", "/stream-bytes/1000", "/status/204"])
  func late(path: String) async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url(path))
    _ = await request.end()
    let isKnown = path == "/bytes/1000"
    #expect(request.downloadProgress.completedUnitCount == (path == "/status/204" ? 0 : 1000))
    #expect(request.downloadProgress.fractionCompleted == (isKnown ? 1 : 0))
    #expect(request.uploadProgress.completedUnitCount == 0)
  }

  @Test("A retry resets the progress") func retry() async {
    let gate = Latch()
    let reached = Latch()
    let fake = FakeTransport(
      .status(500, "12345", headers: [("Content-Length", "5")]), .text("123").held(by: gate, reached: reached)
    )
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1)).request(
      "http://a.test/"
    )
    .validate()
    let first = request.downloadProgress
    async let response = request.end()
    await reached.wait()
    #expect(first.completedUnitCount == 5)
    #expect(request.downloadProgress.completedUnitCount == 0)
    #expect(request.downloadProgress.totalUnitCount == 0)
    gate.open()
    _ = await response
    #expect(request.downloadProgress.fractionCompleted == 1)
  }

  @Test("The response after a redirect has progress, also if nothing else is observed") func redirected()
    async
  {
    let session = Session.retained(
      fake: FakeTransport(.redirect(302, to: "/next"), .text("ok")),
      observers: SessionObservers(eventMonitors: []))
    let (counts, queue) = (Recorder<Int64>(), DispatchQueue(label: "progress"))
    let request = session.request("http://a.test/")
    request.downloadProgress(queue: queue) { counts.add($0.completedUnitCount) }
    #expect(await request.end().data == Data("ok".utf8))
    queue.sync {}
    #expect(counts.values == [2])
  }

  @Test("The handlers are properties of the request") func handlers() {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    #expect(request.uploadProgressHandler == nil)
    #expect(request.downloadProgressHandler == nil)
    let queue = DispatchQueue(label: "progress")
    let seen = Recorder<Progress>()
    request.uploadProgress(queue: queue) { seen.add($0) }.downloadProgress { _ in }
    #expect(request.uploadProgressHandler?.queue === queue)
    #expect(request.downloadProgressHandler?.queue.label == DispatchQueue.main.label)
    request.uploadProgressHandler?.handler(Progress(totalUnitCount: 1))
    #expect(seen.count == 1)
  }

  @Test("Only the last handler is called") func lastHandler() async {
    let counts = Recorder<Int64>()
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    request.downloadProgress(queue: .global()) { _ in Issue.record("an earlier handler was called") }
    request.downloadProgress(queue: .global()) { counts.add($0.completedUnitCount) }
    _ = await request.end()
    #expect(await counts.wait(for: 1) == [2])
  }
}
