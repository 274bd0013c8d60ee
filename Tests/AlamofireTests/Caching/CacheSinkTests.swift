import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Downloads and streams from the cache", .timeLimit(.minutes(5))) struct CacheSinkTests {
  private static let body = String(repeating: "0123456789abcdef", count: 40_000)

  private func fixture(_ control: String = "max-age=60", _ more: FakeReply...) async -> CacheFixture {
    let fixture = CacheFixture(
      FakeTransport { _, index in .cacheable(Self.body + "\(index)", control, tag: "1") })
    _ = await fixture.get()
    return fixture
  }

  private func download(
    _ fixture: CacheFixture, _ headers: HTTPHeaders? = nil,
    policy: URLRequest.CachePolicy = .useProtocolCachePolicy,
    to destination: DownloadRequest.Destination? = nil
  ) async -> AFDownloadResponse<Data> {
    await fixture.session.download(
      "http://a.test/x", headers: headers, requestModifier: { $0.cachePolicy = policy }, to: destination
    ).serializingData().response
  }

  @Test("A fresh response is downloaded from the cache") func freshDownload() async throws {
    let fixture = await fixture()
    let folder = try TemporaryFolder()
    let response = await download(fixture) { _, _ in (folder["file"], []) }
    #expect(response.value == Data((Self.body + "0").utf8) && response.error == nil)
    #expect(response.fileURL == folder["file"])
    #expect(try Data(contentsOf: folder["file"]) == Data((Self.body + "0").utf8))
    #expect(response.response?.statusCode == 200 && response.response?.headers["Age"] == "0")
    #expect(response.metrics?.transactionMetrics.map(\.resourceFetchType) == [.localCache])
    #expect(response.resumeData == nil && fixture.fake.requests.count == 1)
  }

  @Test("Metrics and progress count the body, although nothing observed the transfer") func counts() async {
    let fixture = await fixture()
    let size = Int64(Self.body.utf8.count + 1)
    let download = fixture.session.download("http://a.test/x")
    let file = await download.serializingDownloadedFileURL().response
    file.removeFile()
    let stream = fixture.session.streamRequest("http://a.test/x")
    for await _ in stream.streamTask().streamingData() {}
    let data = fixture.session.request("http://a.test/x")
    _ = await data.serializingData().response
    for request in [download, stream, data] as [Request] {
      #expect(request.metrics?.transactionMetrics.map(\.resourceFetchType) == [.localCache])
      let counts = request.metrics?.transactionMetrics.map(\.countOfResponseBodyBytesAfterDecoding)
      #expect(counts == [size], "\(type(of: request))")
      #expect(request.downloadProgress.completedUnitCount == size, "\(type(of: request))")
    }
    #expect(fixture.fake.requests.count == 1)
  }

  @Test(
    "Progress of a response from the cache is reported as it is read, with its size",
    arguments: [false, true])
  func progress(isStream: Bool) async {
    let fixture = await fixture()
    let size = Int64(Self.body.utf8.count + 1)
    let queue = DispatchQueue(label: "test.progress")
    let seen = Recorder<(completed: Int64, total: Int64)>()
    let report = { @Sendable (progress: Progress) in
      seen.add((progress.completedUnitCount, progress.totalUnitCount))
    }
    await withCheckedContinuation { continuation in
      if isStream {
        fixture.session.streamRequest("http://a.test/x").downloadProgress(queue: queue, closure: report)
          .responseStream(on: queue) { if case .complete = $0.event { continuation.resume() } }
      } else {
        fixture.session.download("http://a.test/x").downloadProgress(queue: queue, closure: report)
          .response(queue: queue) { response in
            response.removeFile()
            continuation.resume()
          }
      }
    }
    #expect(fixture.fake.requests.count == 1)
    // The response has several pieces.
    #expect(seen.count > 1)
    #expect(seen.values.allSatisfy { $0.total == size }, "\(seen.values)")
    #expect(seen.values.map(\.completed) == seen.values.map(\.completed).sorted(), "\(seen.values)")
    #expect(seen.values.last?.completed == size, "\(seen.values)")
  }

  /// Records the counts of a transfer.
  private final class Counts: TransferObserver {
    let all = Recorder<ByteCount>()

    func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
    func headReceived(_ head: ResponseHead) -> HeadDisposition { .proceed }
    func bytesMoved(_ count: ByteCount) { all.add(count) }
    func transferEnded() {}
  }

  /// Records the sum of the sizes of the pieces, after each of them.
  private final class Sizes: BodySink {
    let sums = Recorder<Int64>()

    func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? { nil }
    func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
      sums.add((sums.values.last ?? 0) + Int64(bytes.count))
      return .more
    }
    func finish() -> TransportFailure? { nil }
  }

  @Test("Each piece of a stored body is counted, with the size of the body", arguments: [false, true])
  func countsOfPieces(hasSink: Bool) async throws {
    let body = Data(Self.body.utf8)
    let (sizes, counts) = (Sizes(), Counts())
    let transport = StoredTransport(
      answer: StoredAnswer(head: ResponseHead(status: 200), body: body), sink: hasSink ? sizes : nil)
    let url = "http://a.test/x"
    let request = WireRequest(
      url: url, origin: try #require(Origin(url: url)), profile: ConnectionProfile())
    let response = try await transport.response(to: request, observer: counts)
    #expect(response.body == (hasSink ? nil : body))
    #expect(counts.all.values.allSatisfy { $0.expectedToReceive == Int64(body.count) })
    #expect(counts.all.values.map(\.received) == (hasSink ? sizes.sums.values : [Int64(body.count)]))
    if hasSink { #expect(counts.all.count > 1) }
    #expect(counts.all.values.last?.received == Int64(body.count))
  }

  @Test("A stale response is not downloaded while another one is fetched in the background")
  func staleWhileRevalidate() async {
    let fixture = await fixture("max-age=60, stale-while-revalidate=600")
    fixture.clock.advance(70)
    let response = await download(fixture)
    #expect(response.value == Data((Self.body + "1").utf8))
    #expect(response.metrics?.transactionMetrics.map(\.resourceFetchType) == [.networkLoad])
    #expect(fixture.fake.requests.count == 2)
    response.removeFile()
  }

  @Test("The cache policy applies to downloads") func policies() async {
    let fixture = await fixture()
    func count(_ policy: URLRequest.CachePolicy) async -> Int {
      let response = await download(fixture, policy: policy)
      response.removeFile()
      return fixture.fake.requests.count
    }
    #expect(await count(.reloadIgnoringLocalCacheData) == 2)
    #expect(fixture.fake.requests.last?.value("Cache-Control") == nil)
    #expect(await count(.reloadRevalidatingCacheData) == 3)
    #expect(fixture.fake.requests.last?.value("If-None-Match") == nil)
    // The caches between here and the origin revalidate.
    #expect(fixture.fake.requests.last?.value("Cache-Control") == "max-age=0")
    fixture.clock.advance(100)
    #expect(await count(.returnCacheDataElseLoad) == 3)
    #expect(await count(.returnCacheDataDontLoad) == 3)
    // A stale response is not revalidated, and the new one is written to the file.
    #expect(await count(.useProtocolCachePolicy) == 4)
    #expect(fixture.fake.requests.last?.value("If-None-Match") == nil)
    // A download is not stored.
    #expect(await fixture.get().hops == "n")
  }

  @Test("A conditional or range request is sent", arguments: ["Range", "If-None-Match", "If-Range"])
  func requestsForParts(name: String) async {
    let fixture = await fixture()
    let response = await download(fixture, [name: name == "Range" ? "bytes=0-4" : "\"1\""])
    response.removeFile()
    #expect(fixture.fake.requests.count == 2)
  }

  @Test("Only complete responses are written to files") func completeResponses() async {
    let fixture = CacheFixture(
      FakeTransport(.status(404, "gone", headers: [("Cache-Control", "max-age=60")]), .text("there")))
    _ = await fixture.get()
    let response = await download(fixture)
    response.removeFile()
    #expect(response.value == Data("there".utf8) && fixture.fake.requests.count == 2)
  }

  @Test("A file that cannot be written fails the download, as without a cache") func unwritableFile()
    async throws
  {
    let fixture = await fixture()
    let folder = try TemporaryFolder()
    try Data("mine".utf8).write(to: folder["file"])
    let response = await download(fixture) { _, _ in (folder["file"], []) }
    #expect(response.error != nil && fixture.fake.requests.count == 1)
    #expect(try Data(contentsOf: folder["file"]) == Data("mine".utf8))
  }

  @Test("A stream is served from the cache") func stream() async throws {
    let fixture = await fixture()
    var text = ""
    for try await piece in fixture.session.streamRequest("http://a.test/x").streamTask().streamingStrings() {
      text += piece.value ?? ""
    }
    #expect(text == Self.body + "0" && fixture.fake.requests.count == 1)
  }

  /// Checks that the cache is at most a mebibyte ahead of a slow reader.
  @Test("A slow reader of a stored response causes back-pressure") func slowReader() async throws {
    let large = String(repeating: "x", count: 3 << 20)
    let fixture = CacheFixture(FakeTransport { _, _ in .cacheable(large, "max-age=60") })
    _ = await fixture.get()
    // Resumed after the loop has begun, because nothing waits for a loop that has not.
    let request = fixture.session.streamRequest("http://a.test/x", shouldAutomaticallyResume: false)
    let flow = request.flow
    var iterator = request.streamTask().streamingData().makeAsyncIterator()
    request.resume()
    var count = try #require(await iterator.next()?.value).count
    #expect(await eventually { flow.isFull })
    #expect(flow.heldBytes < 2 << 20)
    while let piece = await iterator.next() { count += piece.value?.count ?? 0 }
    #expect(count == 3 << 20 && fixture.fake.requests.count == 1)
  }

  @Test("A stream from the cache can be cancelled at its head") func cancelledStream() async {
    let fixture = await fixture()
    let error = await withCheckedContinuation { (continuation: CheckedContinuation<AFError?, Never>) in
      fixture.session.streamRequest("http://a.test/x")
        .onHTTPResponse(on: .global()) { _, completionHandler in completionHandler(.cancel) }
        .responseStream(on: .global()) { stream in
          if case .complete(let completion) = stream.event {
            continuation.resume(returning: completion.error)
          }
        }
    }
    #expect(error?.isExplicitlyCancelledError == true && fixture.fake.requests.count == 1)
  }
}
