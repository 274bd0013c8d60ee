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
  func asURLRequest() throws -> URLRequest { throw URLError(.badURL) }
}
