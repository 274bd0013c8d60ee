import Alamofire
import Foundation
import FoundationNetworking

/// One caller who waits for an image.
struct ImageWaiter: Sendable {
  /// The request as the caller gave it, by which the cache knows the image.
  let request: URLRequest
  /// Whether the image may be taken from the cache and stored in it without a name from the caller.
  let sharesImages: Bool
  let cacheKey: String?
  let serializer: ImageResponseSerializer
  let filter: (any ImageFilter)?
  let progress: (@Sendable (Progress) -> Void)?
  let progressQueue: DispatchQueue
  let completionQueue: DispatchQueue
  let completion: (@Sendable (AFIDataResponse<Image>) -> Void)?
  /// The number of users before the one who asked.
  var user = 0

  func complete(_ response: AFIDataResponse<Image>) {
    guard let completion else { return }
    completionQueue.async { completion(response) }
  }
}

/// Requests for the same image: the same method, URL, header fields, body, policy, timeout and credential.
///
/// The URL alone would give one user what was sent to another. Texts are compared by their bytes, because two that are
/// equal in Swift can be different ones to a server.
struct ImageRequestKey: Hashable {
  let method: [UInt8]?
  let url: URL?
  let fields: [[UInt8]: [UInt8]]
  let body: Data?
  let policy: UInt
  /// The bits of the interval, because one that is not a number does not equal itself.
  let timeout: UInt64
  /// The number of times that the credential of the downloader was set before.
  let credential: Int
  /// Differs for each request with a stream, because a stream cannot be compared.
  let stream: UUID?

  init(_ request: URLRequest, credential: Int) {
    method = request.httpMethod.map { Array($0.utf8) }
    url = request.url
    fields = Dictionary(
      uniqueKeysWithValues: (request.allHTTPHeaderFields ?? [:]).map {
        (Array($0.key.utf8), Array($0.value.utf8))
      })
    body = request.httpBody
    policy = request.cachePolicy.rawValue
    timeout = request.timeoutInterval.bitPattern
    self.credential = credential
    stream = request.httpBodyStream == nil ? nil : UUID()
  }
}

/// The downloads of an ``ImageDownloader``. Their requests refer to it, so that callers are called after the downloader
/// is gone.
final class SharedDownloads: Sendable {
  typealias Book = DownloadBook<ImageRequestKey, ImageWaiter>

  private struct State {
    var book: Book
    var requests: [UInt64: DataRequest] = [:]
    var lastNumber: UInt64 = 0
    var lastReceipt: UInt64 = 0
    /// The number of times that the user has changed.
    var user = 0
    /// The number of images of the user that are being stored now.
    var stores = 0
    /// The number of images of earlier users that are being stored and have to be removed, and of changes of the user
    /// after which all have to be.
    var removals = 0

    /// Returns a number for a receipt that no other has.
    mutating func nextReceipt() -> UInt64 {
      lastReceipt += 1
      return lastReceipt
    }

    /// Removes a download with its request, if that has not happened. The request is returned, to be released outside
    /// the lock: this may be the last reference, and callers attach their objects to it.
    mutating func finish(_ number: UInt64) -> (steps: [Book.BookStep], request: DataRequest?) {
      (book.finish(number), requests.removeValue(forKey: number))
    }
  }

  let cache: (any ImageRequestCache)?
  /// Serial, so that progress is reported in its order, and before the response.
  private let progressQueue = DispatchQueue(label: "org.alamofire.image.progress")
  // A lock, because callers and responses come on any thread. No caller and no request is called while it is held.
  private let state: Mutex<State>

  init(_ book: Book, cache: (any ImageRequestCache)?) {
    state = Mutex(State(book: book))
    self.cache = cache
  }

  var counts: (active: Int, waiting: Int) { state.withLock { ($0.book.activeCount, $0.book.waitingCount) } }

  /// The number of requests that are retained, because their downloads have not ended.
  var requestCount: Int { state.withLock { $0.requests.count } }

  /// The number of times that the user has changed, and whether the cache has no images of earlier users.
  var user: (number: Int, hasOwnCache: Bool) { state.withLock { ($0.user, $0.removals == 0) } }

  /// Removes the images of the user so far. Those that are still on their way are not stored.
  func changeUser() {
    state.withLock { state in
      state.user += 1
      state.removals += state.stores + 1
      state.stores = 0
    }
    cache?.removeAllImages()
    state.withLock { $0.removals -= 1 }
  }

  /// Stores an image of a user, unless the user has changed.
  ///
  /// If the user changes before the image is stored, it is removed again, and the cache is not asked until then. A lock
  /// would not do, because the cache can be an object of the caller's, which may call the downloader.
  private func store(for user: Int, _ add: () -> Void, _ remove: () -> Void) {
    let mayBegin = state.withLock { state in
      if state.user == user { state.stores += 1 }
      return state.user == user
    }
    guard mayBegin else { return }
    add()
    let isDone = state.withLock { state in
      if state.user == user { state.stores -= 1 }
      return state.user == user
    }
    if isDone { return }
    remove()
    state.withLock { $0.removals -= 1 }
  }

  /// Joins a download that is under way.
  func join(_ key: ImageRequestKey, _ receiptID: String, _ waiter: ImageWaiter) -> RequestReceipt? {
    state.withLock { state in
      let receipt = state.nextReceipt()
      return state.book.join(key, receipt: receipt, waiter).flatMap { number in
        state.requests[number].map {
          RequestReceipt(request: $0, receiptID: receiptID, number: number, receipt: receipt)
        }
      }
    }
  }

  /// Adds a download with a request that has not begun, unless another thread has added one for the same image.
  func add(
    _ request: DataRequest, _ key: ImageRequestKey, _ receiptID: String, _ waiter: ImageWaiter
  ) -> RequestReceipt {
    let (receipt, isNew, steps) = state.withLock { state -> (RequestReceipt, Bool, [Book.BookStep]) in
      func receipt(_ request: DataRequest, _ number: UInt64) -> RequestReceipt {
        RequestReceipt(request: request, receiptID: receiptID, number: number, receipt: state.lastReceipt)
      }
      let joined = state.book.join(key, receipt: state.nextReceipt(), waiter)
      if let joined { return (receipt(state.requests[joined] ?? request, joined), false, []) }
      state.lastNumber += 1
      state.requests[state.lastNumber] = request
      state.book.add(state.lastNumber, key, receipt: state.lastReceipt, waiter)
      return (receipt(request, state.lastNumber), true, state.book.takeStarts())
    }
    if isNew { observe(request, receipt.number) } else { request.cancel() }
    perform(steps)
    return receipt
  }

  func cancel(_ receipt: RequestReceipt) {
    let cancelled = state.withLock { state -> (waiter: ImageWaiter, steps: [Book.BookStep])? in
      // Each downloader counts from 1, so the receipt of another one can have the same numbers.
      guard state.requests[receipt.number] === receipt.request else { return nil }
      return state.book.cancel(receipt.number, receipt: receipt.receipt)
    }
    guard let cancelled else { return }
    cancelled.waiter.complete(Self.cancelled(cancelled.waiter.request))
    perform(cancelled.steps, startsInTask: false)
  }

  /// Completes the downloads that have not begun, because nothing will begin them any more.
  func cancelWaiting() {
    let waiting = state.withLock { state in
      state.book.takeWaiting().map {
        (request: state.requests.removeValue(forKey: $0.number), waiters: $0.waiters)
      }
    }
    for (request, waiters) in waiting {
      for waiter in waiters { waiter.complete(Self.cancelled(waiter.request)) }
      request?.cancel()
    }
  }

  private static func cancelled(_ request: URLRequest) -> AFIDataResponse<Image> {
    AFIDataResponse<Image>(
      request: request, response: nil, data: nil, metrics: nil, serializationDuration: 0,
      result: .failure(.requestCancelled))
  }

  func stop() { state.withLock { $0.book.stop() } }
  func start() { perform(state.withLock { $0.book.start() }) }

  /// Performs steps.
  ///
  /// - Parameter startsInTask: Whether adapters of the requests that begin may see the task-local values of the caller.
  ///   If the caller has nothing to do with the requests, these are values of another user.
  private func perform(_ steps: [Book.BookStep], startsInTask: Bool = true) {
    for step in steps {
      switch step {
      case .start(let number) where startsInTask: begin(number)
      case .start(let number): progressQueue.async { self.begin(number) }
      case .cancel(let number): state.withLock { $0.requests.removeValue(forKey: number) }?.cancel()
      }
    }
  }

  /// Starts the request of a download, unless it was cancelled.
  private func begin(_ number: UInt64) { state.withLock { $0.requests[number] }?.resume() }

  private func observe(_ request: DataRequest, _ number: UInt64) {
    request.downloadProgress(queue: progressQueue) { [self] progress in
      for waiter in state.withLock({ $0.book.waiters(of: number) }) {
        guard let report = waiter.progress else { continue }
        waiter.progressQueue.async { report(progress) }
      }
    }
    // On the same queue, because who waits is looked up there: the last progress comes before the response.
    request.response(queue: progressQueue) { [self] response in
      guard state.withLock({ $0.book.receive(number) }) else { return }
      ImageQueue.shared.run { self.deliver(response, number) }
    }
  }

  /// Makes the images of a response for all who wait, and calls them.
  private func deliver(_ response: AFDataResponse<Data?>, _ number: UInt64) {
    state.withLock { $0.book.close(number) }
    var delivery = ImageDelivery(response, cache: cache) { self.store(for: $0.user, $1, $2) }
    while let next = state.withLock({ $0.book.next(number) }) {
      let answer = delivery.response(for: next.waiter)
      // The download ends before its last caller is called, who may ask how many there are.
      let (waiter, steps, _) = state.withLock { state -> (ImageWaiter?, [Book.BookStep], DataRequest?) in
        let waiter = state.book.take(number, receipt: next.receipt)
        guard state.book.next(number) == nil else { return (waiter, [], nil) }
        let (steps, request) = state.finish(number)
        return (waiter, steps, request)
      }
      waiter?.complete(answer)
      perform(steps)
    }
    // All who waited, or the last of them, may have been cancelled.
    let (steps, _) = state.withLock { $0.finish(number) }
    perform(steps)
  }
}

/// Makes the images of one response: each serializer and each filter is applied once.
struct ImageDelivery {
  private let response: AFDataResponse<Data?>
  private let cache: (any ImageRequestCache)?
  /// Calls the first function to store an image, unless the user has changed since the caller asked, and the second one
  /// to remove it if the user changes before it is stored.
  private let storing: (ImageWaiter, _ add: () -> Void, _ remove: () -> Void) -> Void
  private var sources: [ObjectIdentifier: AFIResult<Image>] = [:]
  private var results: [ResultKey: AFIResult<Image>] = [:]

  private struct ResultKey: Hashable {
    let serializer: ObjectIdentifier
    let filter: String?
  }

  init(
    _ response: AFDataResponse<Data?>, cache: (any ImageRequestCache)?,
    storing: @escaping (ImageWaiter, _ add: () -> Void, _ remove: () -> Void) -> Void = { _, add, _ in add() }
  ) {
    self.response = response
    self.cache = cache
    self.storing = storing
  }

  mutating func response(for waiter: ImageWaiter) -> AFIDataResponse<Image> {
    let start = ContinuousClock.now
    let result = result(for: waiter)
    // The image that stands for an empty body must not be stored for the URL.
    if case .success(let image) = result, response.data?.isEmpty == false { store(image, for: waiter) }
    return AFIDataResponse<Image>(
      request: response.request, response: response.response, data: response.data, metrics: response.metrics,
      serializationDuration: (ContinuousClock.now - start) / .seconds(1), result: result)
  }

  private func store(_ image: Image, for waiter: ImageWaiter) {
    guard let cache else { return }
    let (request, identifier) = (waiter.request, waiter.filter?.identifier)
    if let key = waiter.cacheKey {
      storing(waiter, { cache.add(image, withIdentifier: key) }, { cache.removeImage(withIdentifier: key) })
    } else if waiter.sharesImages {
      storing(
        waiter, { cache.add(image, for: request, withIdentifier: identifier) },
        { cache.removeImage(for: request, withIdentifier: identifier) })
    }
  }

  private mutating func result(for waiter: ImageWaiter) -> AFIResult<Image> {
    let key = ResultKey(serializer: ObjectIdentifier(waiter.serializer), filter: waiter.filter?.identifier)
    if let known = results[key] { return known }
    let result = Result { try ImageWork.$current.withValue(nil) { try image(for: waiter) } }.mapError(
      Self.error)
    results[key] = result
    return result
  }

  private mutating func image(for waiter: ImageWaiter) throws -> Image {
    let source = try source(of: waiter.serializer).get()
    do {
      let image = try waiter.filter?.apply(source) ?? source
      // A filter that is a closure returns an image that cannot be decoded unchanged.
      if waiter.serializer.inflateResponseImage { _ = try image.content.decoded() }
      return image
    } catch let error as ImageError {
      throw AFIError.imageSerializationFailed(error)
    }
  }

  /// Makes the image of the response. The serializer of this module leaves decoding to the filters, which may need only
  /// a part. A subclass decodes as it likes.
  private mutating func source(of serializer: ImageResponseSerializer) -> AFIResult<Image> {
    let key = ObjectIdentifier(serializer)
    if let known = sources[key] { return known }
    let isOwn = type(of: serializer) == ImageResponseSerializer.self
    let make = isOwn ? serializer.makeImage : serializer.serialize
    let result = Result {
      try make(response.request, response.response, response.data, response.error)
    }.mapError(Self.error)
    sources[key] = result
    return result
  }

  private static func error(_ error: any Error) -> AFIError {
    switch error {
    case let error as AFIError: error
    case let error as AFError: AFIError(error)
    case let error as ImageError: .imageSerializationFailed(error)
    default: .alamofireError(.responseSerializationFailed(reason: .customSerializationFailed(error: error)))
    }
  }
}

extension URLRequest {
  /// Whether another request for the URL may get the image of this one: it is a GET without a body, and none of its
  /// header fields can name a user.
  var mayShareImages: Bool {
    let harmless: Set = [
      "accept", "accept-encoding", "accept-language", "cache-control", "pragma", "referer", "user-agent",
    ]
    return httpMethod == "GET" && httpBody == nil && httpBodyStream == nil
      && (allHTTPHeaderFields ?? [:]).keys.allSatisfy { harmless.contains($0.lowercased()) }
  }
}
