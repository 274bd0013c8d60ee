import Alamofire
import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Randomness
import Scenarios
import Synchronization
import Testing

@Suite("Image downloader", .timeLimit(.minutes(2)))
struct ImageDownloaderTests {
  private let images: ImageServer
  private var server: HTTPTestServer { images.server }

  init() throws { images = try ImageServer() }

  /// Downloads with a completion on a global queue, and collects the results.
  private final class Results: Sendable {
    let all = Mutex<[String: [AFIResult<Image>]]>([:])
    private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)

    func completion(_ name: String) -> @Sendable (AFIDataResponse<Image>) -> Void {
      { response in
        self.all.withLock { $0[name, default: []].append(response.result) }
        self.continuation.yield()
      }
    }

    /// Waits until there are so many results.
    func wait(for count: Int) async {
      for await _ in stream where all.withLock({ $0.values.reduce(0) { $0 + $1.count } }) >= count { return }
    }

    subscript(name: String) -> [AFIResult<Image>] { all.withLock { $0[name] ?? [] } }
  }

  @discardableResult
  private func download(
    _ downloader: ImageDownloader, _ path: String, _ name: String, _ results: Results,
    filter: (any ImageFilter)? = nil
  ) throws -> RequestReceipt? {
    downloader.download(
      try images.request(path), receiptID: name, filter: filter, completionQueue: .global(),
      completion: results.completion(name))
  }

  @Test("An image is downloaded once, then the cache answers")
  func caching() async throws {
    let downloader = ImageDownloader.isolated()
    let request = try images.request("/image/30x20")
    let first = try await downloader.image(for: request)
    let second = try await downloader.image(for: request)
    #expect(first == second)
    #expect((first.pixelWidth, first.pixelHeight) == (30, 20))
    #expect(first.af.isInflated)
    #expect(server.requestCount == 1)
    var reload = request
    reload.cachePolicy = .reloadIgnoringLocalCacheData
    _ = try await downloader.image(for: reload)
    #expect(server.requestCount == 2)
    let results = Results()
    #expect(try download(downloader, "/image/30x20", "a", results) == nil)
    await results.wait(for: 1)
    #expect(try results["a"].first?.get() == first)
  }

  @Test("Results of filters are stored by their identifiers, or by the given key")
  func filteredCaching() async throws {
    let cache = AutoPurgingImageCache()
    let downloader = ImageDownloader.isolated(cache: cache)
    let request = try images.request("/image/40x40")
    let filter = ScaledToSizeFilter(size: CGSize(width: 8, height: 6))
    let scaled = try await downloader.image(for: request, filter: filter)
    #expect((scaled.pixelWidth, scaled.pixelHeight) == (8, 6))
    #expect(cache.image(for: request, withIdentifier: filter.identifier) == scaled)
    #expect(cache.image(for: request) == nil)
    _ = try await downloader.image(for: request, cacheKey: "mine", filter: CircleFilter())
    #expect(cache.image(withIdentifier: "mine")?.af.containsAlphaComponent == true)
    _ = try await downloader.image(for: request, cacheKey: "mine")
    _ = try await downloader.image(for: request, filter: filter)
    #expect(server.requestCount == 2)
  }

  @Test("Requests for the same image share one download, each with its filter", .steps)
  func sharing() async throws {
    let downloader = ImageDownloader.isolated()
    let gate = Gate()
    let filtered = Counter()
    let filter = DynamicImageFilter("count") { image in
      filtered.add()
      return image.af.imageRoundedIntoCircle()
    }
    server.enqueue(.image(try Drawing(gradientOf: 20, 10).file(.png)).held(by: gate))
    let results = Results()
    step("ask four times")
    let a = try #require(try download(downloader, "/image/x", "a", results))
    let b = try #require(try download(downloader, "/image/x", "b", results, filter: filter))
    let c = try #require(try download(downloader, "/image/x", "c", results, filter: filter))
    try download(downloader, "/image/x", "d", results)
    #expect(a.request === b.request && b.request === c.request)
    #expect(b.receiptID == "b")
    await gate.waitUntilReached()
    step("cancel one")
    downloader.cancelRequest(with: c)
    downloader.cancelRequest(with: c)
    await results.wait(for: 1)
    #expect(results["c"].first?.isCancelled == true)
    step("answer")
    gate.open()
    await results.wait(for: 4)
    #expect(server.requestCount == 1)
    #expect(filtered.value == 1)
    #expect(try results["a"].first?.get().pixelWidth == 20)
    #expect(try results["b"].first?.get().pixelWidth == 10)
    #expect(["a", "b", "c", "d"].allSatisfy { results[$0].count == 1 })
  }

  @Test("The last receipt cancels the request")
  func cancelling() async throws {
    let downloader = ImageDownloader.isolated()
    let gate = Gate()
    server.enqueue(.image(try Drawing(gradientOf: 20, 10).file(.png)).held(by: gate))
    let results = Results()
    let a = try #require(try download(downloader, "/image/x", "a", results))
    let b = try #require(try download(downloader, "/image/x", "b", results))
    await gate.waitUntilReached()
    downloader.cancelRequest(with: a)
    #expect(!a.request.isCancelled)
    downloader.cancelRequest(with: b)
    #expect(b.request.isCancelled)
    await results.wait(for: 2)
    #expect(results["a"].first?.isCancelled == true)
    #expect(results["b"].first?.isCancelled == true)
    #expect(downloader.counts == (0, 0))
    gate.open()
  }

  @Test("Receipts of the same name are cancelled one by one")
  func sameName() async throws {
    let downloader = ImageDownloader.isolated()
    let gate = Gate()
    server.enqueue(.image(try Drawing(gradientOf: 20, 10).file(.png)).held(by: gate))
    let request = try images.request("/image/x")
    let results = Results()
    let receipts = ["a", "b", "c"].map { name in
      downloader.download(
        request, receiptID: "avatar", completionQueue: .global(), completion: results.completion(name))
    }
    await gate.waitUntilReached()
    let second = try #require(receipts[1])
    for _ in 0..<2 { downloader.cancelRequest(with: second) }
    await results.wait(for: 1)
    #expect(results["b"].first?.isCancelled == true)
    gate.open()
    await results.wait(for: 3)
    #expect(["a", "b", "c"].allSatisfy { results[$0].count == 1 })
    for name in ["a", "c"] { #expect(try results[name].first?.get().pixelWidth == 20) }
    #expect(server.requestCount == 1)
  }

  @Test("A cancelled task cancels its receipt")
  func cancelledTask() async throws {
    let downloader = ImageDownloader.isolated()
    let gate = Gate()
    server.enqueue(.image(try Drawing(gradientOf: 20, 10).file(.png)).held(by: gate))
    let request = try images.request("/image/x")
    let task = Task { try await downloader.image(for: request) }
    await gate.waitUntilReached()
    task.cancel()
    await #expect { try await task.value } throws: { ($0 as? AFIError)?.isRequestCancelledError == true }
    #expect(downloader.counts == (0, 0))
    gate.open()
  }

  @Test("A task that was cancelled before it began does not wait for an image")
  func cancelledBefore() async throws {
    let downloader = ImageDownloader.isolated()
    downloader.stop()
    let request = try images.request("/image/x")
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await downloader.image(for: request)
    }
    await #expect { try await task.value } throws: { ($0 as? AFIError)?.isRequestCancelledError == true }
    #expect(downloader.counts == (0, 0))
  }

  @Test("The image of an error page is not the image of the URL")
  func errorPage() async throws {
    let downloader = ImageDownloader.isolated()
    server.enqueue(.image(try Drawing(gradientOf: 2, 2).file(.png)).with(status: 404))
    let request = try images.request("/image/x")
    await #expect { try await downloader.image(for: request) } throws: {
      ($0 as? AFIError)?.isAlamofireError == true
    }
  }

  @Test("A response may have as many bytes as an image")
  func bodyLimit() {
    let options = ImageDownloader.isolated().session.transportOptions
    #expect(options.bodySizeLimit == Int64(ImageLimits.default.bytes))
  }

  @Test("A download is over when its last caller is called")
  func over() async throws {
    let downloader = ImageDownloader.isolated(cache: nil)
    let request = try images.request("/image/3x3")
    for _ in 0..<100 {
      let counts = await withCheckedContinuation { continuation in
        downloader.download(
          request, completionQueue: .global(qos: .userInteractive),
          completion: { _ in continuation.resume(returning: downloader.counts) })
      }
      #expect(counts == (0, 0))
    }
  }

  @Test("Requests with other header fields, methods or bodies are not shared")
  func separateRequests() async throws {
    let downloader = ImageDownloader.isolated()
    let request = try images.request("/image/4x4")
    var withToken = request
    withToken.setValue("Bearer one", forHTTPHeaderField: "Authorization")
    var withOther = request
    withOther.setValue("Bearer two", forHTTPHeaderField: "Authorization")
    var post = request
    post.httpMethod = "POST"
    downloader.stop()
    var reload = request
    reload.cachePolicy = .reloadIgnoringLocalCacheData
    var streamed = post
    streamed.httpBodyStream = InputStream(data: Data("a".utf8))
    var withBody = post
    withBody.httpBody = Data("a".utf8)
    var slower = request
    slower.timeoutInterval = 7
    let all = [
      request, withToken, withOther, post, withToken, reload, streamed, streamed, withBody, slower,
    ]
    var receipts = all.map { downloader.download($0) }
    downloader.addAuthentication(user: "a", password: "b")
    receipts.append(downloader.download(request))
    let requests = Set(receipts.compactMap { $0 }.map { ObjectIdentifier($0.request) })
    #expect(requests.count == 10)
  }

  @Test("The image of a request with credentials is not in the cache of the URL")
  func credentials() async throws {
    let cache = AutoPurgingImageCache()
    let downloader = ImageDownloader.isolated(cache: cache)
    for field in ["Authorization", "Cookie"] {
      var request = try images.request("/image/4x4")
      request.setValue("secret", forHTTPHeaderField: field)
      _ = try await downloader.image(for: request)
      _ = try await downloader.image(for: request)
      #expect(cache.memoryUsage == 0)
    }
    #expect(server.requestCount == 4)
    var request = try images.request("/image/4x4")
    request.setValue("secret", forHTTPHeaderField: "Authorization")
    _ = try await downloader.image(for: request, cacheKey: "own")
    #expect(cache.image(withIdentifier: "own") != nil)
  }

  @Test("Only so many downloads are under way, and the order is as asked for", arguments: [false, true])
  func order(isLIFO: Bool) async throws {
    let downloader = ImageDownloader.isolated(isLIFO ? .lifo : .fifo, active: 1)
    let results = Results()
    downloader.stop()
    for side in 1...4 { try download(downloader, "/image/\(side)x1", "\(side)", results) }
    #expect(downloader.counts == (0, 4))
    downloader.start()
    await results.wait(for: 4)
    let paths = server.recordedRequests.map(\.path)
    let expected = (1...4).map { "/image/\($0)x1" }
    #expect(paths == (isLIFO ? expected.reversed() : expected))
    #expect((1...4).allSatisfy { results["\($0)"].count == 1 })
  }

  @Test("Failures reach each receipt, and the next download begins")
  func failures() async throws {
    let downloader = ImageDownloader.isolated(active: 1)
    server.enqueue(.status(500), .image(Data("no image".utf8)))
    let results = Results()
    downloader.stop()
    try download(downloader, "/image/a", "a", results)
    try download(downloader, "/image/a", "b", results, filter: CircleFilter())
    try download(downloader, "/image/c", "c", results)
    try download(downloader, "/image/5x5", "d", results)
    downloader.start()
    await results.wait(for: 4)
    #expect(results["a"].first?.error?.isAlamofireError == true)
    #expect(results["b"].first?.error?.isAlamofireError == true)
    #expect(results["c"].first?.error?.isImageSerializationFailedError == true)
    #expect(try results["d"].first?.get().pixelWidth == 5)
    #expect(downloader.imageCache?.image(for: try images.request("/image/a"), withIdentifier: nil) == nil)
  }

  @Test("A request that cannot be created completes with an error")
  func invalidRequest() async throws {
    let results = Results()
    let receipt = ImageDownloader.isolated().download(
      Impossible(), completionQueue: .global(), completion: results.completion("a"))
    #expect(receipt == nil)
    await results.wait(for: 1)
    #expect(results["a"].first?.error?.isAlamofireError == true)
  }

  @Test("Challenges are answered with the credential")
  func authentication() async throws {
    let challenge = Reply.status(401).with(header: "WWW-Authenticate", value: #"Basic realm="r""#)
    server.enqueue(challenge, .image(try Drawing(gradientOf: 2, 2).file(.png)))
    let downloader = ImageDownloader.isolated()
    downloader.addAuthentication(user: "user", password: "pass")
    #expect(downloader.credential?.user == "user")
    _ = try await downloader.image(for: images.request("/image/x"))
    #expect(server.recordedRequests.last?.header("Authorization") == "Basic dXNlcjpwYXNz")
  }

  @Test("Progress reaches all who wait")
  func progress() async throws {
    let downloader = ImageDownloader.isolated()
    let file = try Drawing(gradientOf: 200, 200).file(.png)
    let (totals, continuation) = AsyncStream.makeStream(of: Int64.self)
    downloader.stop()
    server.enqueue(.image(file))
    for _ in 0..<2 {
      downloader.download(
        try images.request("/image/x"), progress: { continuation.yield($0.totalUnitCount) },
        progressQueue: .global(),
        completion: nil)
    }
    downloader.start()
    var seen = 0
    for await total in totals where total == Int64(file.count) {
      seen += 1
      if seen == 2 { break }
    }
    #expect(seen == 2)
  }

  @Test("The last progress comes before the image")
  func lastProgress() async throws {
    let downloader = ImageDownloader.isolated(cache: nil)
    let queue = DispatchQueue(label: "org.alamofire.tests.progress")
    let request = try images.request("/image/3x3")
    let count = Int64(try Drawing(gradientOf: 3, 3).file(.png).count)
    for _ in 0..<100 {
      let last = Mutex<Int64>(0)
      await withCheckedContinuation { continuation in
        downloader.download(
          request, progress: { progress in last.withLock { $0 = progress.completedUnitCount } },
          progressQueue: queue, completionQueue: queue, completion: { _ in continuation.resume() })
      }
      #expect(last.withLock { $0 } == count)
    }
  }

  @Test("Waiting downloads complete when the downloader is gone, also if its session stays")
  func releasedBesideItsSession() async throws {
    let results = Results()
    let session = Session(configuration: .isolated, startRequestsImmediately: false)
    do {
      let downloader = ImageDownloader(session: session, imageCache: nil)
      downloader.stop()
      // All three share the download.
      for name in ["a", "b", "c"] { try download(downloader, "/image/5x5", name, results) }
    }
    await results.wait(for: 3)
    for name in ["a", "b", "c"] { #expect(results[name].map(\.isCancelled) == [true], "\(name)") }
    #expect(server.requestCount == 0)
  }

  @Test("A receipt that is cancelled while its image is made completes as cancelled", .steps)
  func cancelledWhileFiltered() async throws {
    let downloader = ImageDownloader.isolated()
    let reached = AsyncStream.makeStream(of: Void.self)
    let proceed = DispatchSemaphore(value: 0)
    let slow = DynamicImageFilter("slow") { image in
      reached.continuation.yield()
      proceed.wait()
      return image
    }
    let results = Results()
    let receipt = try #require(try download(downloader, "/image/5x5", "a", results, filter: slow))
    step("wait for the filter")
    for await _ in reached.stream { break }
    downloader.cancelRequest(with: receipt)
    step("wait for the completion")
    await results.wait(for: 1)
    #expect(results["a"].first?.isCancelled == true)
    proceed.signal()
    let other = try await downloader.image(for: images.request("/image/6x6"))
    #expect(other.pixelWidth == 6)
    #expect(results["a"].count == 1)
  }

  @Test("What a POST or an empty response brings is not the image of the URL")
  func otherMethods() async throws {
    let downloader = ImageDownloader.isolated()
    var post = try images.request("/image/x")
    post.httpMethod = "POST"
    for width in 1...2 {
      post.httpBody = Data("\(width)".utf8)
      server.enqueue(.image(try Drawing(gradientOf: width, 1).file(.png)))
      #expect(try await downloader.image(for: post).pixelWidth == width)
    }
    var head = try images.request("/image/7x7")
    head.httpMethod = "HEAD"
    #expect(try await downloader.image(for: head).pixelWidth == 1)
    server.enqueue(.status(204))
    #expect(try await downloader.image(for: images.request("/image/7x7")).pixelWidth == 1)
    #expect(try await downloader.image(for: images.request("/image/7x7")).pixelWidth == 7)
    var withKey = try images.request("/image/7x7")
    withKey.setValue("secret", forHTTPHeaderField: "X-Api-Key")
    _ = try await downloader.image(for: withKey)
    #expect(server.requestCount == 6)
  }

  @Test("A request that an interceptor changes is in the cache by its own URL")
  func adaptedRequest() async throws {
    let server = server
    let session = Session(
      configuration: .isolated, startRequestsImmediately: false,
      interceptor: Adapter { request, _, completion in
        completion(
          Result {
            var request = request
            request.url = try server.url("/image/9x9").asURL()
            return request
          })
      })
    let downloader = ImageDownloader(session: session)
    for _ in 0..<2 { #expect(try await downloader.image(for: images.request("/image/1x1")).pixelWidth == 9) }
    #expect(server.requestCount == 1)
  }

  @Test("Waiting downloads complete when the downloader is gone")
  func released() async throws {
    let results = Results()
    do {
      let downloader = ImageDownloader.isolated()
      downloader.stop()
      try download(downloader, "/image/5x5", "a", results)
    }
    await results.wait(for: 1)
    #expect(results["a"].first?.isCancelled == true)
    #expect(server.requestCount == 0)
  }

  @Test("With random cancellations, each receipt is completed once", .seeded)
  func walk() async throws {
    let downloader = ImageDownloader.isolated(active: 3, cache: nil)
    let results = Results()
    var generator = Seed.generator()
    let count = 300
    for index in 0..<count {
      let path = "/image/\(Int.random(in: 1...12, using: &generator))x3"
      let filter: (any ImageFilter)? = Bool.random(using: &generator) ? CircleFilter() : nil
      let receipt = try download(downloader, path, "\(index)", results, filter: filter)
      if let receipt, Int.random(in: 0..<3, using: &generator) == 0 {
        if Bool.random(using: &generator) { await Task.yield() }
        downloader.cancelRequest(with: receipt)
      }
    }
    await results.wait(for: count)
    for index in 0..<count { #expect(results["\(index)"].count == 1, "receipt \(index)") }
    for index in 0..<count {
      guard let error = results["\(index)"].first?.error else { continue }
      #expect(error.isRequestCancelledError, "receipt \(index): \(error)")
    }
  }
}

private struct Impossible: URLRequestConvertible {
  func asURLRequest() throws -> URLRequest { throw URLError(.badURL) }
}

private final class Counter: Sendable {
  private let count = Atomic(0)
  func add() { count.add(1, ordering: .relaxed) }
  var value: Int { count.load(ordering: .relaxed) }
}

extension Result where Success == Image, Failure == AFIError {
  fileprivate var error: AFIError? { if case .failure(let error) = self { error } else { nil } }
  fileprivate var isCancelled: Bool { error?.isRequestCancelledError == true }
}
