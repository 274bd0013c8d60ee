import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The last call of a progress handler.
@Suite("The last progress", .timeLimit(.minutes(5)))
struct LastProgressTests {
  private let queue = DispatchQueue(label: "test.progress")
  private let seen = Recorder<String>()

  private func name(_ progress: Progress) -> String {
    "\(progress.completedUnitCount) \(progress.fractionCompleted == 1)"
  }

  private func lastBeforeEnd(_ request: DataRequest, download: Bool) async -> String? {
    let seen = seen
    return await withCheckedContinuation { continuation in
      if download {
        request.downloadProgress(queue: queue) { seen.add(name($0)) }
      } else {
        request.uploadProgress(queue: queue) { seen.add(name($0)) }
      }
      request.response(queue: queue) { _ in continuation.resume(returning: seen.values.last) }
    }
  }

  @Test("A download reports all bytes before the handler is called", arguments: [1, 1000, 3_000_000])
  func download(size: Int) async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/bytes/\(size)"))
    #expect(await lastBeforeEnd(request, download: true) == "\(size) true")
  }

  @Test("A download to a file reports all bytes")
  func file() async throws {
    let server = try HTTPTestServer()
    let seen = seen
    let request = Session.real().download(server.url("/bytes/300000"))
    request.downloadProgress(queue: queue) { seen.add(name($0)) }
    let last = await withCheckedContinuation { continuation in
      request.response(queue: queue) { response in
        response.removeFile()
        continuation.resume(returning: seen.values.last)
      }
    }
    #expect(last == "300000 true")
  }

  @Test("An upload reports all bytes before the handler is called", arguments: [1, 1000, 100_000, 3_000_000])
  func upload(size: Int) async throws {
    let server = try HTTPTestServer()
    let request = Session.real().upload(Data(count: size), to: server.url("/upload-sink"))
    #expect(await lastBeforeEnd(request, download: false) == "\(size) true")
  }

  @Test("A response from the cache reports all bytes")
  func cached() async throws {
    let server = try HTTPTestServer(
      routes: Routes.none.adding("/kept") { _, _ in
        Reply.text("body").with(header: "Cache-Control", value: "max-age=60")
      })
    let folder = try TemporaryFolder()
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: folder["cache"].path)
    let session = Session.real(configuration: .cached(by: cache))
    _ = await session.request(server.url("/kept")).end()
    let request = session.request(server.url("/kept"))
    #expect(await lastBeforeEnd(request, download: true) == "4 true")
    #expect(server.requestCount == 1)
  }

  @Test("A data: URL reports all bytes")
  func local() async {
    #expect(await lastBeforeEnd(Session.real().request("data:,abc"), download: true) == "3 true")
  }

  @Test("A handler that is added after the last byte is called before the end", arguments: [false, true])
  func late(isUpload: Bool) async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    let request =
      isUpload
      ? session.upload(Data(count: 100), to: server.url("/upload-sink"))
      : session.request(server.url("/bytes/100"))
    let seen = seen
    // A validator runs after the last byte.
    request.validate { [weak request] _, _, _ in
      if isUpload {
        request?.uploadProgress(queue: queue) { seen.add(name($0)) }
      } else {
        request?.downloadProgress(queue: queue) { seen.add(name($0)) }
      }
      return .success(())
    }
    let last = await withCheckedContinuation { continuation in
      request.response(queue: queue) { _ in continuation.resume(returning: seen.values) }
    }
    #expect(last == ["100 true"])
  }

  @Test(
    "A late handler is called after the cache was asked, whichever response the server confirms",
    arguments: ["1", "2"])
  func lateAndRevalidated(confirmed: String) async {
    let bench = CacheFixture(
      FakeTransport(
        .cacheable("body", "no-cache", tag: "1"), .status(304, headers: [("ETag", "\"\(confirmed)\"")]),
        .text("next")))
    _ = await bench.get()
    let request = bench.session.request("http://a.test/x")
    let seen = seen
    // A validator runs after the last byte.
    request.validate { [weak request] _, _, _ in
      request?.downloadProgress(queue: queue) { seen.add(name($0)) }
      return .success(())
    }
    let body = await withCheckedContinuation { continuation in
      request.response(queue: queue) { continuation.resume(returning: $0.data) }
    }
    #expect(body == Data((confirmed == "1" ? "body" : "next").utf8))
    #expect(seen.values.map { $0.first } == ["4"], "\(seen.values)")
  }

  @Test("An empty body has no progress, and an unknown length no total")
  func others() async throws {
    let server = try HTTPTestServer()
    #expect(await lastBeforeEnd(Session.real().request(server.url("/status/204")), download: true) == nil)
    let request = Session.real().request(server.url("/stream-bytes/1000"))
    #expect(await lastBeforeEnd(request, download: true) == "1000 false")
  }
}
