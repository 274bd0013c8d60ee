import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Options of image downloads", .timeLimit(.minutes(1)))
struct ImageDownloadOptionsTests {
  private let images: ImageServer
  private let key = DispatchSpecificKey<Bool>()
  /// A queue that is known by ``key``.
  private let queue = DispatchQueue(label: "org.alamofire.tests.caller")

  init() throws {
    images = try ImageServer()
    queue.setSpecific(key: key, value: true)
  }

  @Test("The default configuration caches responses, most of them on the disk")
  func defaultCache() throws {
    let cache = try #require(ImageDownloader.defaultURLSessionConfiguration().urlCache)
    #expect((cache.memoryCapacity, cache.diskCapacity) == (20_000_000, 150_000_000))
  }

  @Test("The failure of a request that cannot be created comes on the queue of the caller")
  func queueOfFailure() async {
    let isOnQueue = await withCheckedContinuation { continuation in
      let receipt = ImageDownloader.isolated().download(Impossible(), completionQueue: queue) { _ in
        continuation.resume(returning: DispatchQueue.getSpecific(key: key) == true)
      }
      #expect(receipt == nil)
    }
    #expect(isOnQueue)
  }

  @Test("A user and a password become a credential with the persistence that was asked for")
  func persistence() {
    let downloader = ImageDownloader.isolated()
    downloader.addAuthentication(user: "a", password: "b")
    #expect(downloader.credential?.persistence == .forSession)
    for persistence in [URLCredential.Persistence.none, .permanent, .forSession] {
      downloader.addAuthentication(user: "user", password: "\(persistence)", persistence: persistence)
      #expect(downloader.credential?.persistence == persistence)
      #expect(downloader.credential?.user == "user")
      #expect(downloader.credential?.password == "\(persistence)")
    }
  }

  @Test("An image from the cache comes with its request and without a response, on the queue of the caller")
  func cachedResponse() async throws {
    let cache = AutoPurgingImageCache()
    let request = try images.request("/image/9x9")
    let known = try Drawing(of: [1, 2, 3], 2, 2).image()
    cache.add(known, for: request)
    let (response, isOnQueue) = await withCheckedContinuation { continuation in
      let receipt = ImageDownloader.isolated(cache: cache).download(request, completionQueue: queue) {
        continuation.resume(returning: ($0, DispatchQueue.getSpecific(key: key) == true))
      }
      #expect(receipt == nil)
    }
    #expect(isOnQueue)
    #expect(response.request == request)
    #expect(response.response == nil && response.data == nil && response.metrics == nil)
    #expect(try response.result.get() == known)
  }

  @Test("A downloaded image comes with its request, the response, its bytes and its metrics")
  func downloadedResponse() async throws {
    let downloader = ImageDownloader.isolated()
    let request = try images.request("/image/9x9")
    let response = await withCheckedContinuation { continuation in
      downloader.download(request, completionQueue: queue) { continuation.resume(returning: $0) }
    }
    #expect(response.request?.url == request.url)
    #expect(response.response?.statusCode == 200)
    #expect(try response.data == Drawing(gradientOf: 9, 9).file(.png))
    #expect(response.metrics != nil)
    #expect(response.serializationDuration > 0)
  }

  @Test("The completion of a cancelled receipt has its request")
  func cancelledResponse() async throws {
    let downloader = ImageDownloader.isolated()
    downloader.stop()
    let request = try images.request("/image/9x9")
    let response = await withCheckedContinuation { continuation in
      let receipt = downloader.download(request, completionQueue: queue) {
        continuation.resume(returning: $0)
      }
      if let receipt { downloader.cancelRequest(with: receipt) }
    }
    #expect(response.request == request)
    #expect(response.error?.isRequestCancelledError == true)
  }

  @Test("An error of Alamofire that prevents a request is not wrapped in another one")
  func impossibleRequests() async throws {
    let downloader = ImageDownloader.isolated()
    await #expect {
      try await downloader.image(for: Impossible(error: AFError.invalidURL(url: "?")))
    } throws: { error in
      if case .alamofireError(.invalidURL(url: let url))? = error as? AFIError {
        "\(url)" == "?"
      } else {
        false
      }
    }
    await #expect {
      try await downloader.image(for: Impossible(error: URLError(.badURL)))
    } throws: { error in
      guard case .alamofireError(.createURLRequestFailed(let reason))? = error as? AFIError else {
        return false
      }
      return (reason as? URLError)?.code == .badURL
    }
  }

  @Test("The images of a list are filtered, with and without progress", arguments: [false, true])
  func filterOfLists(hasProgress: Bool) async throws {
    let downloader = ImageDownloader.isolated()
    let requests = try [images.request("/image/9x9"), images.request("/image/8x8")]
    let filter = ScaledToSizeFilter(size: CGSize(width: 5, height: 4))
    // The second time, the images come from the cache.
    for receiptCount in [2, 0] {
      let (results, continuation) = AsyncStream.makeStream(of: (AFIResult<Image>, Bool).self)
      let complete: @Sendable (AFIDataResponse<Image>) -> Void = {
        continuation.yield(($0.result, DispatchQueue.getSpecific(key: key) == true))
      }
      let receipts =
        hasProgress
        ? downloader.download(
          requests, filter: filter, progress: { _ in }, completionQueue: queue, completion: complete)
        : downloader.download(requests, filter: filter, completionQueue: queue, completion: complete)
      #expect(receipts.count == receiptCount)
      for await (result, isOnQueue) in results.prefix(2) {
        let image = try result.get()
        #expect((image.pixelWidth, image.pixelHeight) == (5, 4), "\(receiptCount) receipts")
        #expect(isOnQueue, "\(receiptCount) receipts")
      }
    }
    #expect(images.server.requestCount == 2)
  }

  @Test("A download without progress is stored by the given key")
  func keyWithoutProgress() async throws {
    let cache = AutoPurgingImageCache()
    let downloader = ImageDownloader.isolated(cache: cache)
    let request = try images.request("/image/9x9")
    let result = await withCheckedContinuation { continuation in
      downloader.download(request, cacheKey: "mine", completionQueue: queue) {
        continuation.resume(returning: $0.result)
      }
    }
    #expect(try cache.image(withIdentifier: "mine") == result.get())
    #expect(cache.image(for: request) == nil)
  }

  @Test("The progress of an image that is awaited comes on its queue")
  func awaitedProgress() async throws {
    let places = Mutex<[Bool]>([])
    _ = try await ImageDownloader.isolated().image(
      for: images.request("/image/9x9"),
      progress: { _ in places.withLock { $0.append(DispatchQueue.getSpecific(key: key) == true) } },
      progressQueue: queue)
    // All progress was put on the queue before the image came.
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    let seen = places.withLock { $0 }
    #expect(!seen.isEmpty && seen.allSatisfy { $0 }, "\(seen)")
  }

  @Test("Only a GET without a body and without fields that could name a user shares its image")
  func sharedImages() throws {
    let plain = try images.request("/image/9x9")
    func shares(_ change: (inout URLRequest) -> Void) -> Bool {
      var request = plain
      change(&request)
      return request.mayShareImages
    }
    #expect(plain.mayShareImages)
    for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
      #expect(!shares { $0.httpMethod = method }, "\(method)")
    }
    #expect(!shares { $0.httpBody = Data("a".utf8) })
    #expect(!shares { $0.httpBodyStream = InputStream(data: Data("a".utf8)) })
    let harmless = [
      "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Pragma", "Referer", "User-Agent",
    ]
    for field in harmless {
      for name in [field, field.lowercased(), field.uppercased()] {
        #expect(shares { $0.setValue("a", forHTTPHeaderField: name) }, "\(name)")
      }
    }
    for field in ["Authorization", "Cookie", "X-Accept"] {
      #expect(
        !shares {
          $0.setValue("a", forHTTPHeaderField: "Accept")
          $0.setValue("a", forHTTPHeaderField: field)
        }, "\(field)")
    }
  }

  @Test("The image that a POST without a body brings is not the image of the URL")
  func emptyPost() async throws {
    let cache = AutoPurgingImageCache()
    let downloader = ImageDownloader.isolated(cache: cache)
    var post = try images.request("/image/9x9")
    post.httpMethod = "POST"
    images.server.enqueue(.image(try Drawing(gradientOf: 2, 1).file(.png)))
    #expect(try await downloader.image(for: post).pixelWidth == 2)
    #expect(cache.memoryUsage == 0)
    #expect(try await downloader.image(for: images.request("/image/9x9")).pixelWidth == 9)
  }

  @Test("The progress of a list comes on its queue")
  func progressOfLists() async throws {
    let downloader = ImageDownloader.isolated()
    let places = Mutex<[Bool]>([])
    let request = try images.request("/image/9x9")
    await withCheckedContinuation { continuation in
      // On the same queue as the progress, so that all of it has come before.
      downloader.download(
        [request],
        progress: { _ in places.withLock { $0.append(DispatchQueue.getSpecific(key: key) == true) } },
        progressQueue: queue, completionQueue: queue, completion: { _ in continuation.resume() })
    }
    let seen = places.withLock { $0 }
    #expect(!seen.isEmpty && seen.allSatisfy { $0 }, "\(seen)")
  }

  @Test(
    "Policies that prefer a cache ask the cache of images",
    arguments: [
      URLRequest.CachePolicy.useProtocolCachePolicy, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
    ])
  func policies(policy: URLRequest.CachePolicy) async throws {
    let cache = AutoPurgingImageCache()
    var request = try images.request("/image/9x9")
    let known = try Drawing(of: [1, 2, 3], 2, 2).image()
    cache.add(known, for: request)
    request.cachePolicy = policy
    #expect(try await ImageDownloader.isolated(cache: cache).image(for: request) == known)
    #expect(images.server.requestCount == 0)
  }

  @Test("The result of another serializer is neither taken from the cache nor stored in it without a key")
  func otherSerializer() async throws {
    let cache = AutoPurgingImageCache()
    let downloader = ImageDownloader.isolated(cache: cache)
    let request = try images.request("/image/9x9")
    let known = try Drawing(of: [1, 2, 3], 2, 2).image()
    cache.add(known, for: request)
    let serializer = ImageResponseSerializer(imageScale: 3)
    #expect(try await downloader.image(for: request, serializer: serializer).pixelWidth == 9)
    #expect(cache.image(for: request) == known)
    #expect(try await downloader.image(for: request, cacheKey: "mine", serializer: serializer).scale == 3)
    #expect(cache.image(withIdentifier: "mine")?.scale == 3)
  }

  @Test("Callers who share a download get the images of their serializers")
  func serializers() async throws {
    let downloader = ImageDownloader.isolated()
    let request = try images.request("/image/9x9")
    let (results, continuation) = AsyncStream.makeStream(of: (CGFloat, AFIResult<Image>).self)
    downloader.stop()
    for scale in [2, 3] as [CGFloat] {
      downloader.download(
        request, serializer: ImageResponseSerializer(imageScale: scale), completionQueue: .global()
      ) { continuation.yield((scale, $0.result)) }
    }
    downloader.start()
    for await (scale, result) in results.prefix(2) { #expect(try result.get().scale == scale) }
    #expect(images.server.requestCount == 1)
  }

  @Test("A subclass of the serializer makes the image")
  func ownSerializer() async throws {
    final class Fixed: ImageResponseSerializer, @unchecked Sendable {
      override func serialize(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
      ) throws -> Image { try Drawing(of: [1, 2, 3], 5, 4).image() }
    }
    let downloader = ImageDownloader.isolated()
    let image = try await downloader.image(for: images.request("/image/9x9"), serializer: Fixed())
    #expect(image == (try Drawing(of: [1, 2, 3], 5, 4).image()))
  }

  @Test("The error of a serializer or a filter tells what failed")
  func errors() async throws {
    struct Other: Error {}
    final class Failing: ImageResponseSerializer, @unchecked Sendable {
      let failure: any Error
      init(_ failure: any Error) {
        self.failure = failure
        super.init()
      }
      override func serialize(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
      ) throws -> Image { throw failure }
    }
    struct FailingFilter: ImageFilter {
      let failure: any Error
      var filter: @Sendable (Image) -> Image { { $0 } }
      func apply(_ image: Image) throws -> Image { throw failure }
    }
    let downloader = ImageDownloader.isolated()
    let request = try images.request("/image/9x9")
    let failures: [(any Error, @Sendable (AFIError) -> Bool)] = [
      (
        ImageError.invalidPixels,
        { if case .imageSerializationFailed(.invalidPixels) = $0 { true } else { false } }
      ),
      (AFIError.requestCancelled, { $0.isRequestCancelledError }),
      (
        AFError.sessionDeinitialized,
        { if case .alamofireError(.sessionDeinitialized) = $0 { true } else { false } }
      ),
      (
        Other(),
        {
          guard
            case .alamofireError(
              .responseSerializationFailed(reason: .customSerializationFailed(let cause))) = $0
          else { return false }
          return cause is Other
        }
      ),
    ]
    for (failure, isExpected) in failures {
      await #expect("a serializer throws \(failure)") {
        try await downloader.image(for: request, serializer: Failing(failure))
      } throws: { ($0 as? AFIError).map(isExpected) == true }
      await #expect("a filter throws \(failure)") {
        try await downloader.image(for: request, filter: FailingFilter(failure: failure))
      } throws: { ($0 as? AFIError).map(isExpected) == true }
    }
  }

  @Test("An image is decoded, and damage found, unless the serializer leaves that for later")
  func inflation() async throws {
    let downloader = ImageDownloader.isolated()
    let lazy = ImageResponseSerializer(inflateResponseImage: false)
    let request = try images.request("/image/9x9")
    #expect(try await downloader.image(for: request, serializer: lazy).content.isDecoded == false)
    #expect(try await downloader.image(for: request).content.isDecoded)
    let file = try Drawing(gradientOf: 200, 200).file(.png)
    let damaged = Reply.image(file.prefix(file.count / 2))
    images.server.enqueue(damaged, damaged)
    let other = try images.request("/image/x")
    #expect(try await downloader.image(for: other, serializer: lazy).pixelWidth == 200)
    await #expect {
      try await downloader.image(for: other)
    } throws: { ($0 as? AFIError)?.isImageSerializationFailedError == true }
  }

  @Test("A caller without progress does not keep it from those who wait after it")
  func progressAfterOthers() async throws {
    let downloader = ImageDownloader.isolated()
    let request = try images.request("/image/9x9")
    let count = Mutex(0)
    downloader.stop()
    downloader.download(request)
    await withCheckedContinuation { continuation in
      downloader.download(
        request, progress: { _ in count.withLock { $0 += 1 } }, progressQueue: queue, completionQueue: queue,
        completion: { _ in continuation.resume() })
      downloader.start()
    }
    #expect(count.withLock { $0 } > 0)
  }

  @Test("A request that waits is cancelled when the downloader is gone")
  func releasedRequest() throws {
    let session = Session(configuration: .isolated, startRequestsImmediately: false)
    var receipt: RequestReceipt?
    do {
      let downloader = ImageDownloader(session: session, imageCache: nil)
      downloader.stop()
      receipt = downloader.download(try images.request("/image/9x9"))
    }
    #expect(receipt?.request.isCancelled == true)
  }
}

@Suite("Shared downloads", .timeLimit(.minutes(1)))
struct SharedDownloadsTests {
  private let images: ImageServer
  private let session = Session(configuration: .isolated, startRequestsImmediately: false)
  private let downloads = SharedDownloads(DownloadBook(.fifo, maximumActive: 1), cache: nil)

  init() throws { images = try ImageServer() }

  private func waiter(
    _ request: URLRequest, completion: (@Sendable (AFIDataResponse<Image>) -> Void)? = nil
  ) -> ImageWaiter {
    ImageWaiter(
      request: request, sharesImages: false, cacheKey: nil, serializer: ImageResponseSerializer(),
      filter: nil,
      progress: nil, progressQueue: .global(), completionQueue: .global(), completion: completion)
  }

  @Test("A caller who adds a download at the same time as another joins it, and its request is cancelled")
  func addedTwice() throws {
    let request = try images.request("/image/9x9")
    let key = ImageRequestKey(request, credential: 0)
    let (first, second) = (session.request(request), session.request(request))
    downloads.stop()
    let a = downloads.add(first, key, "a", waiter(request))
    let b = downloads.add(second, key, "b", waiter(request))
    #expect(a.request === first && b.request === first)
    #expect(a.number == b.number)
    #expect((a.receiptID, b.receiptID) == ("a", "b"))
    #expect(second.isCancelled, "nothing else would end it")
    #expect(!first.isCancelled)
    #expect(downloads.counts == (0, 1))
    downloads.cancelWaiting()
    #expect(first.isCancelled)
    #expect(downloads.requestCount == 0)
  }

  @Test("A request is released with the end of its download")
  func released() async throws {
    let request = try images.request("/image/9x9")
    let result = await withCheckedContinuation { continuation in
      let waiter = waiter(request) { continuation.resume(returning: $0.result) }
      _ = downloads.add(session.request(request), ImageRequestKey(request, credential: 0), "a", waiter)
    }
    #expect(try result.get().pixelWidth == 9)
    #expect(downloads.requestCount == 0)
  }
}

private struct Impossible: URLRequestConvertible {
  var error: any Error = URLError(.badURL)
  func asURLRequest() throws -> URLRequest { throw error }
}
