public import Alamofire
public import Foundation
public import FoundationNetworking

/// Downloads images, several at a time, each only once.
///
/// If an image is requested while it is already downloaded, the caller waits for the same response. Each caller has a
/// receipt and can have a filter of its own. Results of filters are stored in the ``imageCache``, which is asked first.
///
/// Requests count as the same if their methods, URLs, header fields, bodies, cache policies and timeouts are equal, and
/// if no credential was set between them. A body that is a stream is not equal to any other.
///
/// The image cache knows only the URL. Therefore it is used without a `cacheKey` only for GET requests without a body,
/// whose header fields cannot name a user. Do not share it between downloaders with different credentials.
///
/// What an interceptor or the cookies of the ``session`` add is not known then. If they name a user, cancel the
/// session's requests and empty the ``imageCache`` when the user changes.
///
/// All functions may be called from any thread. Images are decoded and filtered on threads for images, as many at a
/// time as there are processors.
///
/// ```swift
/// let downloader = ImageDownloader(maximumActiveDownloads: 8)
/// let filter = AspectScaledToFillSizeFilter(size: CGSize(width: 100, height: 100))
/// let avatar = try await downloader.image(for: URLRequest(url: url, method: .get), filter: filter)
/// print(avatar.size)
/// ```
open class ImageDownloader: @unchecked Sendable {
  // `@unchecked` because a class that is open cannot be proved to be Sendable; its properties are
  // constants, or protected by a lock. Subclasses must protect their own.

  /// Which of the waiting downloads begins next.
  public enum DownloadPrioritization: Sendable {
    /// The one that was requested first.
    case fifo
    /// The one that was requested last.
    case lifo
  }

  /// A downloader with the defaults.
  public static let `default` = ImageDownloader()

  /// The cache of images, or `nil`.
  public var imageCache: (any ImageRequestCache)? { downloads.cache }
  /// The session, which does not begin requests on its own.
  public let session: Session
  /// The serializer of downloads that have no other.
  public let imageResponseSerializer: ImageResponseSerializer

  /// The credential with which challenges are answered.
  public var credential: URLCredential? { storedCredential.withLock { $0.credential } }

  // A lock, because the credential is set and read from any thread.
  private let storedCredential = Mutex<(credential: URLCredential?, changes: Int)>((nil, 0))
  private let downloads: SharedDownloads

  /// Returns the configuration of the default downloader: the default one of `Session`, with ``defaultURLCache()``.
  open class func defaultURLSessionConfiguration() -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.af.default
    configuration.urlCache = defaultURLCache()
    return configuration
  }

  /// Returns a cache of responses with 20 MB in memory, and 150 MB on the disk in the user's folder for caches.
  open class func defaultURLCache() -> URLCache {
    HTTPCache(
      memoryCapacity: 20_000_000, diskCapacity: 150_000_000, diskPath: "org.alamofire.imagedownloader")
  }

  /// Makes a downloader with a session of its own.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the session. It is copied.
  ///   - downloadPrioritization: Which of the waiting downloads begins next. Default: `.fifo`.
  ///   - maximumActiveDownloads: How many downloads are under way at most, with decoding; at least 1. Default: 4.
  ///   - imageCache: The cache of images. Default: an ``AutoPurgingImageCache``.
  public convenience init(
    configuration: URLSessionConfiguration = ImageDownloader.defaultURLSessionConfiguration(),
    downloadPrioritization: DownloadPrioritization = .fifo, maximumActiveDownloads: Int = 4,
    imageCache: (any ImageRequestCache)? = AutoPurgingImageCache()
  ) {
    var options = TransportOptions()
    options.bodySizeLimit = Int64(ImageLimits.default.bytes)
    self.init(
      session: Session(
        configuration: configuration, startRequestsImmediately: false, transportOptions: options),
      downloadPrioritization: downloadPrioritization, maximumActiveDownloads: maximumActiveDownloads,
      imageCache: imageCache)
  }

  /// Makes a downloader with a session.
  ///
  /// - Parameters:
  ///   - session: A session that was made with `startRequestsImmediately: false`; another would begin all downloads at
  ///     once. Its limits for bodies apply.
  ///   - downloadPrioritization: Which of the waiting downloads begins next. Default: `.fifo`.
  ///   - maximumActiveDownloads: How many downloads are under way at most, with decoding; at least 1. Default: 4.
  ///   - imageCache: The cache of images. Default: an ``AutoPurgingImageCache``.
  public init(
    session: Session, downloadPrioritization: DownloadPrioritization = .fifo, maximumActiveDownloads: Int = 4,
    imageCache: (any ImageRequestCache)? = AutoPurgingImageCache()
  ) {
    self.session = session
    imageResponseSerializer = ImageResponseSerializer()
    downloads = SharedDownloads(
      DownloadBook(downloadPrioritization, maximumActive: maximumActiveDownloads), cache: imageCache)
  }

  deinit { downloads.cancelWaiting() }

  /// Answers challenges of later downloads with a user and a password.
  open func addAuthentication(
    user: String, password: String, persistence: URLCredential.Persistence = .forSession
  ) {
    addAuthentication(
      usingCredential: URLCredential(user: user, password: password, persistence: persistence))
  }

  /// Answers challenges of later downloads with a credential, in place of an earlier one.
  ///
  /// If the earlier one is different, all images are removed from the ``imageCache``, because they may belong to
  /// another user.
  open func addAuthentication(usingCredential credential: URLCredential) {
    let earlier = storedCredential.withLock { stored in
      let earlier = stored.credential
      stored = (credential, stored.changes + 1)
      return earlier
    }
    if let earlier, !earlier.isSame(as: credential) { downloads.changeUser() }
  }

  /// Lets no further download begin, until ``start()``. Those under way go on.
  open func stop() { downloads.stop() }

  /// Lets downloads begin again. Adapters of those that begin in this call see the task-local values of the caller.
  open func start() { downloads.start() }

  /// The number of downloads that are under way, and of those that wait.
  public var counts: (active: Int, waiting: Int) { downloads.counts }

  /// Downloads an image, or takes it from the cache.
  ///
  /// - Parameters:
  ///   - urlRequest: The request. Its cache policy decides whether the image cache is asked, too.
  ///   - cacheKey: The name of the result in the image cache. Default: the URL and the identifier of the filter.
  ///   - receiptID: The name of the receipt. Default: a new UUID.
  ///   - serializer: Makes the image from the response. With one, the image cache is used only with a `cacheKey`.
  ///     Default: ``imageResponseSerializer``.
  ///   - filter: Changes the image. The result is stored in the image cache.
  ///   - completionQueue: Default: the main queue.
  ///   - completion: Called once on `completionQueue`, also if the receipt is cancelled.
  /// - Returns: The receipt; `nil` if the image cache has answered, or if the request cannot be created.
  @preconcurrency
  @discardableResult
  public func download(
    _ urlRequest: any URLRequestConvertible, cacheKey: String? = nil, receiptID: String = UUID().uuidString,
    serializer: ImageResponseSerializer? = nil, filter: (any ImageFilter)? = nil,
    completionQueue: DispatchQueue = .main,
    completion: (@Sendable (AFIDataResponse<Image>) -> Void)? = nil
  ) -> RequestReceipt? {
    download(
      urlRequest, cacheKey: cacheKey, receiptID: receiptID, serializer: serializer, filter: filter,
      progress: nil,
      completionQueue: completionQueue, completion: completion)
  }

  /// Downloads an image, or takes it from the cache, and reports progress.
  ///
  /// - Parameters:
  ///   - urlRequest: The request. Its cache policy decides whether the image cache is asked, too.
  ///   - cacheKey: The name of the result in the image cache. Default: the URL and the identifier of the filter.
  ///   - receiptID: The name of the receipt. Default: a new UUID.
  ///   - serializer: Makes the image from the response. With one, the image cache is used only with a `cacheKey`.
  ///     Default: ``imageResponseSerializer``.
  ///   - filter: Changes the image. The result is stored in the image cache.
  ///   - progress: Called on `progressQueue` while the body is received, also if others wait for the same download.
  ///   - progressQueue: Default: the main queue.
  ///   - completionQueue: Default: the main queue.
  ///   - completion: Called once on `completionQueue`, also if the receipt is cancelled.
  /// - Returns: The receipt; `nil` if the image cache has answered, or if the request cannot be created.
  @preconcurrency
  @discardableResult
  open func download(
    _ urlRequest: any URLRequestConvertible, cacheKey: String? = nil, receiptID: String = UUID().uuidString,
    serializer: ImageResponseSerializer? = nil, filter: (any ImageFilter)? = nil,
    progress: (@Sendable (Progress) -> Void)?, progressQueue: DispatchQueue = .main,
    completionQueue: DispatchQueue = .main, completion: (@Sendable (AFIDataResponse<Image>) -> Void)?
  ) -> RequestReceipt? {
    let request: URLRequest
    do {
      request = try urlRequest.asURLRequest()
    } catch {
      let error = error as? AFError ?? .createURLRequestFailed(error: error)
      if let completion {
        completionQueue.async { completion(Self.response(to: nil, .failure(.alamofireError(error)))) }
      }
      return nil
    }
    // Before the credential, so that the image of an earlier user counts as one.
    let user = downloads.user
    let (credential, changes) = storedCredential.withLock { $0 }
    let waiter = ImageWaiter(
      request: request, sharesImages: serializer == nil && request.mayShareImages, cacheKey: cacheKey,
      serializer: serializer ?? imageResponseSerializer, filter: filter, progress: progress,
      progressQueue: progressQueue, completionQueue: completionQueue, completion: completion,
      user: user.number)
    // The user may change while the cache is asked.
    if user.hasOwnCache, let image = cachedImage(for: request, waiter), downloads.user.number == user.number {
      waiter.complete(Self.response(to: request, .success(image)))
      return nil
    }
    let key = ImageRequestKey(request, credential: changes)
    return downloads.join(key, receiptID, waiter)
      ?? downloads.add(makeRequest(request, credential), key, receiptID, waiter)
  }

  /// Downloads images with the same filter and completion. Images from the cache have no receipts.
  ///
  /// - Parameters:
  ///   - urlRequests: The requests.
  ///   - filter: Changes the images.
  ///   - completionQueue: Default: the main queue.
  ///   - completion: Called once for each image.
  @preconcurrency
  @discardableResult
  public func download(
    _ urlRequests: [any URLRequestConvertible], filter: (any ImageFilter)? = nil,
    completionQueue: DispatchQueue = .main, completion: (@Sendable (AFIDataResponse<Image>) -> Void)? = nil
  ) -> [RequestReceipt] {
    download(
      urlRequests, filter: filter, progress: nil, completionQueue: completionQueue, completion: completion)
  }

  /// Downloads images with the same filter and handlers. Images from the cache have no receipts.
  ///
  /// - Parameters:
  ///   - urlRequests: The requests.
  ///   - filter: Changes the images.
  ///   - progress: Called on `progressQueue` with the progress of each image.
  ///   - progressQueue: Default: the main queue.
  ///   - completionQueue: Default: the main queue.
  ///   - completion: Called once for each image.
  @preconcurrency
  @discardableResult
  open func download(
    _ urlRequests: [any URLRequestConvertible], filter: (any ImageFilter)? = nil,
    progress: (@Sendable (Progress) -> Void)?, progressQueue: DispatchQueue = .main,
    completionQueue: DispatchQueue = .main, completion: (@Sendable (AFIDataResponse<Image>) -> Void)?
  ) -> [RequestReceipt] {
    urlRequests.compactMap {
      download(
        $0, filter: filter, progress: progress, progressQueue: progressQueue,
        completionQueue: completionQueue,
        completion: completion)
    }
  }

  /// Cancels a receipt. Its completion is called with ``AFIError/requestCancelled``, unless it was called before. The
  /// request is cancelled with its last receipt. A receipt of another downloader is ignored.
  open func cancelRequest(with requestReceipt: RequestReceipt) { downloads.cancel(requestReceipt) }

  /// Returns the image from the cache if the policy allows it.
  private func cachedImage(for request: URLRequest, _ waiter: ImageWaiter) -> Image? {
    switch request.cachePolicy {
    case .useProtocolCachePolicy, .returnCacheDataElseLoad, .returnCacheDataDontLoad: break
    default: return nil
    }
    if let key = waiter.cacheKey { return imageCache?.image(withIdentifier: key) }
    guard waiter.sharesImages else { return nil }
    return imageCache?.image(for: request, withIdentifier: waiter.filter?.identifier)
  }

  private func makeRequest(_ urlRequest: URLRequest, _ credential: URLCredential?) -> DataRequest {
    let request = session.request(urlRequest)
    if let credential { request.authenticate(with: credential) }
    return request.validate()
  }

  private static func response(to request: URLRequest?, _ result: AFIResult<Image>) -> AFIDataResponse<Image>
  {
    AFIDataResponse<Image>(
      request: request, response: nil, data: nil, metrics: nil, serializationDuration: 0, result: result)
  }
}

extension ImageDownloader {
  /// Downloads an image, or takes it from the cache. If the task is cancelled, the receipt is, too.
  ///
  /// The parameters have the same meaning as for a download with a completion.
  ///
  /// - Throws: ``AFIError``.
  public func image(
    for urlRequest: any URLRequestConvertible, cacheKey: String? = nil,
    serializer: ImageResponseSerializer? = nil,
    filter: (any ImageFilter)? = nil, progress: (@Sendable (Progress) -> Void)? = nil,
    progressQueue: DispatchQueue = .main
  ) async throws(AFIError) -> Image {
    let waiting = AwaitedReceipt()
    let result: AFIResult<Image> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let receipt = download(
          urlRequest, cacheKey: cacheKey, serializer: serializer, filter: filter, progress: progress,
          progressQueue: progressQueue, completionQueue: .global(),
          completion: { continuation.resume(returning: $0.result) })
        if let receipt, waiting.begin(receipt) { cancelRequest(with: receipt) }
      }
    } onCancel: {
      if let receipt = waiting.cancel() { cancelRequest(with: receipt) }
    }
    return try result.get()
  }
}

extension URLCredential {
  /// Whether two credentials are surely of one user. Bytes are compared, because texts that are equal in Swift can be
  /// different ones to a server.
  fileprivate func isSame(as other: URLCredential) -> Bool {
    func bytes(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) } }
    return self === other
      || user != nil && bytes(user) == bytes(other.user) && bytes(password) == bytes(other.password)
  }
}

/// The receipt of a task that can be cancelled before there is one.
private final class AwaitedReceipt: Sendable {
  // A lock, because a task can be cancelled on any thread.
  private let state = Mutex<(receipt: RequestReceipt?, isCancelled: Bool)>((nil, false))

  /// Stores the receipt. Returns whether it has to be cancelled.
  func begin(_ receipt: RequestReceipt) -> Bool {
    state.withLock {
      $0.receipt = receipt
      return $0.isCancelled
    }
  }

  /// Notes the cancellation. Returns the receipt if there is one.
  func cancel() -> RequestReceipt? {
    state.withLock {
      $0.isCancelled = true
      return $0.receipt
    }
  }
}

/// The share of one caller in a download of ``ImageDownloader``, for which others may wait, too.
///
/// ```swift
/// let downloader = ImageDownloader()
/// if let receipt = try downloader.download(URLRequest(url: url, method: .get)) {
///   downloader.cancelRequest(with: receipt)
/// }
/// ```
public struct RequestReceipt: Sendable {
  /// The request, which several receipts can share. Cancel the receipt rather than the request.
  public let request: DataRequest
  /// The name of the receipt, which is unique unless the caller chose another. Receipts of the same name are different.
  public let receiptID: String
  /// The number of the download.
  let number: UInt64
  /// The number of the receipt, because callers may give several the same name.
  let receipt: UInt64
}
