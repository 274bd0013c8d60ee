import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// A downloader that only notes what it is asked for.
private final class RecordingDownloader: ImageDownloader, @unchecked Sendable {
  struct Call {
    var requests: [URLRequest]
    var cacheKey: String?
    var receiptID: String?
    var serializer: ImageResponseSerializer?
    var filter: String?
    var hasProgress: Bool
    var progress: (@Sendable (Progress) -> Void)?
    var queues: [String]
    var completion: (@Sendable (AFIDataResponse<Image>) -> Void)?
  }

  private let state = Mutex<[Call]>([])
  var calls: [Call] { state.withLock { $0 } }

  init() {
    super.init(session: Session(configuration: .isolated, startRequestsImmediately: false), imageCache: nil)
  }

  override func download(
    _ urlRequest: any URLRequestConvertible, cacheKey: String?, receiptID: String,
    serializer: ImageResponseSerializer?, filter: (any ImageFilter)?,
    progress: (@Sendable (Progress) -> Void)?, progressQueue: DispatchQueue,
    completionQueue: DispatchQueue, completion: (@Sendable (AFIDataResponse<Image>) -> Void)?
  ) -> RequestReceipt? {
    let request = try? urlRequest.asURLRequest()
    state.withLock {
      $0.append(
        Call(
          requests: [request].compactMap { $0 }, cacheKey: cacheKey, receiptID: receiptID,
          serializer: serializer,
          filter: filter?.identifier, hasProgress: progress != nil, progress: progress,
          queues: [progressQueue.label, completionQueue.label], completion: completion))
    }
    completion?(
      AFIDataResponse<Image>(
        request: request, response: nil, data: nil, metrics: nil, serializationDuration: 0,
        result: .failure(.requestCancelled)))
    return nil
  }
}

@Suite("Arguments of downloads", .timeLimit(.minutes(1)))
struct DownloadArgumentsTests {
  private let downloader = RecordingDownloader()
  private let request = URLRequest(url: URL(fileURLWithPath: "/a.png"))
  private let other = URLRequest(url: URL(fileURLWithPath: "/b.png"))
  private let serializer = ImageResponseSerializer(imageScale: 3)
  private let first = DispatchQueue(label: "first")
  private let second = DispatchQueue(label: "second")
  private let main = DispatchQueue.main.label

  @Test("A download without progress passes on all arguments, or the defaults")
  func withoutProgress() throws {
    let count = Mutex(0)
    downloader.download(
      request, cacheKey: "key", receiptID: "receipt", serializer: serializer, filter: CircleFilter(),
      completionQueue: second, completion: { _ in count.withLock { $0 += 1 } })
    #expect(count.withLock { $0 } == 1)
    downloader.download(request)
    downloader.download(request)
    let calls = downloader.calls
    #expect(calls.map(\.requests) == [[request], [request], [request]])
    #expect(calls.map(\.cacheKey) == ["key", nil, nil])
    #expect(calls[0].receiptID == "receipt")
    let ids = calls.dropFirst().compactMap { $0.receiptID.flatMap { UUID(uuidString: $0) } }
    #expect(Set(ids).count == 2, "each has a name of its own")
    #expect(calls[0].serializer === serializer)
    #expect(calls[1].serializer == nil)
    #expect(calls.map(\.filter) == ["CircleFilter", nil, nil])
    #expect(calls.map(\.hasProgress) == [false, false, false])
    #expect(calls.map { $0.queues[1] } == ["second", main, main])
    #expect(calls.map { $0.completion != nil } == [true, false, false])
  }

  @Test("An image that is awaited passes on all arguments, or the defaults")
  func awaited() async throws {
    let progress: @Sendable (Progress) -> Void = { _ in }
    _ = try? await downloader.image(
      for: request, cacheKey: "key", serializer: serializer, filter: CircleFilter(), progress: progress,
      progressQueue: first)
    _ = try? await downloader.image(for: other)
    let calls = downloader.calls
    #expect(calls.map(\.requests) == [[request], [other]])
    #expect(calls.map(\.cacheKey) == ["key", nil])
    #expect(calls[0].serializer === serializer)
    #expect(calls[1].serializer == nil)
    #expect(calls.map(\.filter) == ["CircleFilter", nil])
    #expect(calls.map(\.hasProgress) == [true, false])
    #expect(calls.map { $0.queues[0] } == ["first", main])
    #expect(!calls.contains { $0.queues[1] == main }, "the main queue may wait for the image")
    #expect(calls.allSatisfy { $0.completion != nil })
  }

  @Test("A list passes on all arguments for each of its requests, with and without progress")
  func lists() throws {
    let count = Mutex(0)
    let completion: @Sendable (AFIDataResponse<Image>) -> Void = { _ in count.withLock { $0 += 1 } }
    downloader.download(
      [request, other], filter: CircleFilter(), progress: { _ in count.withLock { $0 += 100 } },
      progressQueue: first,
      completionQueue: second, completion: completion)
    #expect(count.withLock { $0 } == 2)
    downloader.download(
      [request, other], filter: CircleFilter(), completionQueue: second, completion: completion)
    #expect(count.withLock { $0 } == 4)
    downloader.download([request, other])
    downloader.download([request, other], progress: nil, completion: nil)
    #expect(downloader.download([URLRequest]()).isEmpty)
    let calls = downloader.calls
    #expect(calls.map(\.requests) == (0..<4).flatMap { _ in [[request], [other]] })
    #expect(calls.map(\.filter) == Array(repeating: "CircleFilter", count: 4) + [nil, nil, nil, nil])
    #expect(calls.map(\.hasProgress) == [true, true] + Array(repeating: false, count: 6))
    #expect(calls[..<2].map { $0.queues[0] } == ["first", "first"])
    #expect(
      calls.map { $0.queues[1] } == Array(repeating: "second", count: 4) + Array(repeating: main, count: 4))
    #expect(
      calls.map { $0.completion != nil } == Array(repeating: true, count: 4)
        + Array(repeating: false, count: 4))
    calls[0].progress?(Progress(totalUnitCount: 1))
    #expect(count.withLock { $0 } == 104)
    #expect(Set(calls.compactMap(\.receiptID)).count == 8)
  }

  @Test("A downloader has the session, the cache, the order and the number of downloads that it was given")
  func initializers() async throws {
    let server = try HTTPTestServer(routes: .none)
    let cache = AutoPurgingImageCache()
    let configuration = URLSessionConfiguration.isolated
    configuration.httpAdditionalHeaders = ["X-Mark": "a"]
    let session = Session(configuration: .isolated, startRequestsImmediately: false)
    let downloaders: [(ImageDownloader, Bool)] = [
      (
        ImageDownloader(
          configuration: configuration, downloadPrioritization: .lifo, maximumActiveDownloads: 2,
          imageCache: cache), true
      ),
      (
        ImageDownloader(
          configuration: configuration, downloadPrioritization: .fifo, maximumActiveDownloads: 3,
          imageCache: cache), false
      ),
      (
        ImageDownloader(
          session: session, downloadPrioritization: .lifo, maximumActiveDownloads: 2, imageCache: cache), true
      ),
      (
        ImageDownloader(
          session: session, downloadPrioritization: .fifo, maximumActiveDownloads: 3, imageCache: cache),
        false
      ),
    ]
    // One for all, because replies that were not sent remain for the next downloader.
    let gate = Gate()
    defer { gate.open() }
    for (index, (downloader, isLIFO)) in downloaders.enumerated() {
      #expect(downloader.imageCache as? AutoPurgingImageCache === cache, "\(index)")
      #expect(!downloader.session.startRequestsImmediately, "\(index)")
      #expect(downloader.credential == nil)
      downloader.stop()
      for _ in 0..<5 { server.enqueue(.status(404).held(by: gate)) }
      let receipts = try (0..<5).compactMap {
        try downloader.download(URLRequest(url: server.url("/\(index)/\($0)").asURL()), filter: nil)
      }
      try #require(receipts.count == 5)
      #expect(downloader.counts == (0, 5), "\(index)")
      #expect(receipts.allSatisfy { $0.request.isInitialized }, "\(index)")
      downloader.start()
      let begun = receipts.indices.filter { !receipts[$0].request.isInitialized }
      #expect(begun == (isLIFO ? [3, 4] : [0, 1, 2]), "\(index)")
      #expect(downloader.counts == (isLIFO ? (2, 3) : (3, 2)), "\(index)")
      for receipt in receipts.reversed() { downloader.cancelRequest(with: receipt) }
      for receipt in receipts { downloader.cancelRequest(with: receipt) }
    }
    #expect(downloaders[0].0.session.sessionConfiguration.httpAdditionalHeaders?["X-Mark"] as? String == "a")
    #expect(downloaders[2].0.session === session)
    let plain = ImageDownloader(session: session)
    #expect(plain.imageCache is AutoPurgingImageCache)
    #expect(ImageDownloader(configuration: configuration).imageCache is AutoPurgingImageCache)
    #expect(ImageDownloader(session: session, imageCache: nil).imageCache == nil)
    #expect(ImageDownloader(configuration: configuration, imageCache: nil).imageCache == nil)
  }

  @Test("The default configuration has the header fields of Alamofire and a cache of its own")
  func defaultConfiguration() throws {
    let configuration = ImageDownloader.defaultURLSessionConfiguration()
    let fields = try #require(configuration.httpAdditionalHeaders as? [String: String])
    #expect(fields["User-Agent"] == HTTPHeader.defaultUserAgent.value)
    #expect(fields["Accept-Language"] == HTTPHeader.defaultAcceptLanguage.value)
    #expect(configuration.urlCache is HTTPCache)
    #expect(configuration.urlCache !== URLCache.shared)
  }

  @Test("A user and a password, or a credential, replace the earlier one, and stopped downloads wait")
  func credentials() throws {
    let downloader = ImageDownloader.isolated()
    downloader.addAuthentication(user: "ann", password: "secret")
    #expect((downloader.credential?.user, downloader.credential?.password) == ("ann", "secret"))
    downloader.addAuthentication(
      usingCredential: URLCredential(user: "bob", password: "other", persistence: .none))
    #expect((downloader.credential?.user, downloader.credential?.password) == ("bob", "other"))
    downloader.stop()
    let url = try #require(URL(string: "http://127.0.0.1:9/a"))
    let receipts = try (0..<2).map { _ in
      downloader.addAuthentication(user: "ann", password: "secret")
      return try #require(downloader.download(URLRequest(url: url)))
    }
    #expect(receipts[0].request !== receipts[1].request, "the credential was set between them")
    let third = downloader.download(URLRequest(url: url), receiptID: "mine")
    #expect(third?.request === receipts[1].request)
    #expect(third?.receiptID == "mine")
    #expect(downloader.counts == (0, 2))
    for receipt in receipts { downloader.cancelRequest(with: receipt) }
    #expect(downloader.counts == (0, 1))
    #expect(receipts[0].request.isCancelled && !receipts[1].request.isCancelled)
  }

  @Test("A receipt of another downloader cancels nothing")
  func foreignReceipt() throws {
    let downloaders = [ImageDownloader.isolated(), ImageDownloader.isolated()]
    for downloader in downloaders { downloader.stop() }
    let url = try #require(URL(string: "http://127.0.0.1:9/a"))
    let receipts = try downloaders.map { try #require($0.download(URLRequest(url: url))) }
    downloaders[1].cancelRequest(with: receipts[0])
    #expect(downloaders.map(\.counts.waiting) == [1, 1])
    #expect(receipts.map(\.request.isCancelled) == [false, false])
    for (downloader, receipt) in zip(downloaders, receipts) { downloader.cancelRequest(with: receipt) }
    #expect(downloaders.map(\.counts.waiting) == [0, 0])
    #expect(receipts.map(\.request.isCancelled) == [true, true])
  }

  @Test("Requests with other bytes in a field do not share a download", arguments: [60, Double.nan])
  func bytesOfFields(timeout: Double) throws {
    let downloader = ImageDownloader.isolated()
    downloader.stop()
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:9/a")))
    request.timeoutInterval = timeout
    let receipts = try ["jos\u{E9}", "jose\u{301}", "jos\u{E9}"].map { user in
      request.setValue(user, forHTTPHeaderField: "X-User")
      return try #require(downloader.download(request))
    }
    #expect(downloader.counts.waiting == 2, "a server sees two names, and two requests with one of them")
    for receipt in receipts { downloader.cancelRequest(with: receipt) }
    #expect(downloader.counts.waiting == 0)
  }

  @Test("Requests are the same if all of their parts are")
  func keys() throws {
    let url = try #require(URL(string: "http://example.com/a"))
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.setValue("a", forHTTPHeaderField: "X-Mark")
    request.httpBody = Data("a".utf8)
    func key(_ credential: Int = 1, _ change: (inout URLRequest) -> Void = { _ in }) -> ImageRequestKey {
      var request = request
      change(&request)
      return ImageRequestKey(request, credential: credential)
    }
    #expect(key() == key())
    #expect(key().hashValue == key().hashValue)
    let others = [
      key(2), key { $0.httpMethod = "PUT" }, key { $0.url = URL(string: "http://example.com/b") },
      key { $0.setValue("b", forHTTPHeaderField: "X-Mark") },
      key { $0.setValue("b", forHTTPHeaderField: "X-Other") },
      key { $0.setValue(nil, forHTTPHeaderField: "X-Mark") }, key { $0.httpBody = Data("b".utf8) },
      key { $0.httpBody = nil }, key { $0.cachePolicy = .returnCacheDataElseLoad },
      key { $0.timeoutInterval = 7 },
      key { $0.setValue("\u{E9}", forHTTPHeaderField: "X-Mark") },
      key { $0.setValue("e\u{301}", forHTTPHeaderField: "X-Mark") },
    ]
    #expect(Set(others + [key()]).count == 13)
    let endless = (0..<2).map { _ in key { $0.timeoutInterval = .nan } }
    #expect(endless[0] == endless[1], "the key of a request without a limit has to be found again")
    let streams = (0..<2).map { _ in
      key {
        $0.httpBody = nil
        $0.httpBodyStream = InputStream(data: Data("a".utf8))
      }
    }
    #expect(streams[0] != streams[1])
    #expect(streams[0] == streams[0])
    #expect(key().stream == nil && streams[0].stream != nil)
  }
}
