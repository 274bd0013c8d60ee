import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Randomness
import Synchronization
import Testing

/// Threads that perform random operations of the public API on the same few requests of all kinds. The operations of a
/// thread follow from the seed, their order across threads does not.
final class RandomRequestOperations: Sendable {
  struct Size {
    var requests = 12
    var threads = 8
    var steps = 12
  }

  struct Traces: Sendable {
    weak var request: Request?
    weak var core: RequestCore?

    var isGone: Bool { request == nil && core == nil }
    /// A description of an object that was not released; `nil` if all are.
    var left: String? {
      request.map { "\(type(of: $0)) \($0.state), retried \($0.retryCount) times, \($0.error as Any)" }
        ?? core.map { _ in "the core of a request" }
    }
  }

  private struct Requests: Sendable {
    var session: Session?
    var all: [Request] = []
    var wasReleased = false
  }

  let counter = CallCounter()
  let spy = OrderSpy()
  private let serialQueue = DispatchQueue(label: "walk")
  private let requests = Mutex(Requests())
  private let canReleaseSession: Bool

  /// Makes the requests, which the seed decides.
  ///
  /// - Parameters:
  ///   - make: Returns the session, with the interceptor and the monitors that observe it.
  ///   - url: The URLs of the requests.
  init(
    seed: UInt64, size: Size, url: (inout SeededGenerator) -> String,
    make: (inout SeededGenerator, any RequestInterceptor, [any EventMonitor]) -> Session
  ) {
    var random = SeededGenerator(seed: seed &* 7919)
    canReleaseSession = random.next() % 3 == 0
    let interceptor = RandomInterceptor(seed: seed)
    let session = make(&random, interceptor, random.next() % 3 == 0 ? [] : [spy])
    let folder = try? TemporaryFolder()
    requests.withLock { requests in
      requests.session = session
      for index in 0..<size.requests {
        requests.all.append(Self.request(index, session, url(&random), folder, &random))
      }
    }
  }

  /// Makes a request of a kind that `kind` selects. The folder is released with the last request. Each attempt of a
  /// download leaves its own file in it.
  private static func request(
    _ kind: Int, _ session: Session, _ url: String, _ folder: TemporaryFolder?,
    _ random: inout SeededGenerator
  ) -> Request {
    let starts: Bool? = [true, false, nil].randomElement(using: &random) ?? nil
    switch kind % 4 {
    case 0: return session.request(url, shouldAutomaticallyResume: starts)
    case 1:
      let data = Data(repeating: 7, count: Int(random.next() % 5000))
      return session.upload(data, to: url, shouldAutomaticallyResume: starts)
    case 2:
      let destination: DownloadRequest.Destination = { source, _ in
        (folder?[source.lastPathComponent] ?? source, [.removePreviousFile])
      }
      return session.download(url, shouldAutomaticallyResume: starts, to: destination)
    default:
      return session.streamRequest(
        url, automaticallyCancelOnStreamError: random.next() % 2 == 0, shouldAutomaticallyResume: starts)
    }
  }

  var traces: [Traces] {
    requests.withLock { $0.all.map { Traces(request: $0, core: $0.core) } }
  }

  var wasReleased: Bool { requests.withLock { $0.wasReleased } }

  // MARK: Operations

  /// Runs the threads to their end, and then resumes every request.
  func run(seed: UInt64, size: Size) async {
    let threads = CallCounter()
    for index in 0..<size.threads {
      let isOver = threads.promise("thread \(index)")
      let thread = Thread { [self] in
        var random = SeededGenerator(seed: seed &* 1009 &+ UInt64(index))
        for _ in 0..<size.steps { step(&random) }
        isOver()
      }
      thread.start()
    }
    await threads.isSettled()
    for request in requests.withLock({ $0.all }) { request.resume() }
  }

  /// Releases all requests, so that a reference that remains can be detected.
  func release() {
    let all = requests.withLock { requests in
      defer { requests = Requests(wasReleased: requests.wasReleased) }
      return requests
    }
    for request in all.all { removeFile(of: request) }
  }

  private func removeFile(of request: Request) {
    if let file = (request as? DownloadRequest)?.fileURL { try? FileManager.default.removeItem(at: file) }
  }

  private func releaseSession() {
    guard canReleaseSession else { return }
    let session = requests.withLock { requests in
      requests.wasReleased = true
      defer { requests.session = nil }
      return requests.session
    }
    _ = session
  }

  private func step(_ random: inout SeededGenerator) {
    let request = requests.withLock { $0.all.randomElement(using: &random) }
    guard let request else { return }
    switch random.next() % 34 {
    case 0..<4: request.resume()
    case 4..<7: request.suspend()
    case 7: request.cancel()
    case 8..<14: addHandler(to: request, &random)
    case 14..<18: awaitEnd(of: request, &random)
    case 18, 19: addValidator(to: request, fails: random.next() % 4 == 0)
    // A new spy, because one that is added late may miss the first events.
    case 20: request.eventMonitor(OrderSpy())
    case 21: useTask(of: request, &random)
    case 22..<25: listen(to: request, &random)
    case 25: request.downloadProgress(queue: .global()) { _ in }.uploadProgress(queue: serialQueue) { _ in }
    case 26: decideHead(of: request, &random)
    case 27: ask(request)
    case 28: request.interceptor(RandomInterceptor(seed: random.next()))
    case 29: cancelWithResumeData(request)
    case 30: readStream(of: request)
    case 31, 32: request.delegate?.retryRequest(request, withDelay: random.next() % 4 == 0 ? 0.0005 : nil)
    default: if random.next() % 8 == 0 { releaseSession() }
    }
  }
}

// MARK: Operations of the API

extension RandomRequestOperations {
  private func queue(_ random: inout SeededGenerator) -> DispatchQueue {
    random.next() % 2 == 0 ? .global() : serialQueue
  }

  private func addHandler(to request: Request, _ random: inout SeededGenerator) {
    let queue = queue(&random)
    let coin = random.next() % 3
    if let request = request as? DataRequest {
      let done = counter.promise("a handler of data")
      switch coin {
      case 0: request.response(queue: queue) { _ in done() }
      case 1: request.responseString(queue: queue) { _ in done() }
      default: request.responseDecodable(of: [Int].self, queue: queue) { _ in done() }
      }
    } else if let request = request as? DownloadRequest {
      let done = counter.promise("a handler of a download")
      switch coin {
      case 0: request.response(queue: queue) { _ in done() }
      case 1: request.responseURL(queue: queue) { _ in done() }
      default: request.responseData(queue: queue) { _ in done() }
      }
    } else if let request = request as? DataStreamRequest {
      let done = counter.promise("the completion of a stream")
      switch coin {
      case 0: request.responseStream(on: queue) { if $0.completion != nil { done() } }
      case 1:
        request.responseStreamString(on: queue) { stream in
          if stream.completion != nil { done() }
          if stream.value?.count == 3 { throw TestError() }
        }
      default:
        request.responseStreamDecodable(of: [Int].self, on: queue) { if $0.completion != nil { done() } }
      }
    }
  }

  private func awaitEnd(of request: Request, _ random: inout SeededGenerator) {
    let cancels = random.next() % 4 == 0
    let isCancelled = random.next() % 4 == 0
    let done: @Sendable () -> Void
    let task: Task<Void, Never>
    if let request = request as? DataRequest {
      done = counter.promise("an awaited value")
      let value = request.serializingString(automaticallyCancelling: cancels)
      task = Task {
        _ = await value.response
        done()
      }
    } else if let request = request as? DownloadRequest {
      done = counter.promise("an awaited download")
      let value = request.serializingData(automaticallyCancelling: cancels)
      task = Task {
        _ = await value.result
        done()
      }
    } else if let request = request as? DataStreamRequest {
      done = counter.promise("a sequence of a stream")
      let most = Int(random.next() % 6)
      let stream = request.streamTask().streamingStrings(automaticallyCancelling: cancels)
      task = Task {
        var count = 0
        for await _ in stream {
          count += 1
          if count == most { break }
        }
        done()
      }
    } else {
      return
    }
    if isCancelled { task.cancel() }
  }

  private func addValidator(to request: Request, fails: Bool) {
    let result = { @Sendable () -> Request.ValidationResult in fails ? .failure(TestError()) : .success(()) }
    switch request {
    case let request as DataRequest: request.validate().validate { _, _, _ in result() }
    case let request as DownloadRequest: request.validate().validate { _, _, _ in result() }
    case let request as DataStreamRequest: request.validate().validate { _, _ in result() }
    default: break
    }
  }

  private func useTask(of request: Request, _ random: inout SeededGenerator) {
    request.onURLSessionTaskCreation(on: .global()) { _ = $0.state }
    switch random.next() % 4 {
    case 0: request.task?.suspend()
    case 1: request.task?.cancel()
    default: request.task?.resume()
    }
  }

  private func listen(to request: Request, _ random: inout SeededGenerator) {
    switch random.next() % 6 {
    case 0: drain(request.downloadProgress())
    case 1: drain(request.uploadProgress(bufferingPolicy: .bufferingNewest(1)))
    case 2: drain(request.urlRequests())
    case 3: drain(request.urlSessionTasks())
    case 4: drain(request.cURLDescriptions())
    default: if let request = request as? DataRequest { drain(request.httpResponses()) }
    }
  }

  private func drain<Element: Sendable>(_ stream: StreamOf<Element>) {
    let done = counter.promise("a sequence of \(Element.self)")
    Task {
      for await _ in stream {}
      done()
    }
  }

  private func decideHead(of request: Request, _ random: inout SeededGenerator) {
    let coin = random.next() % 4
    let decide = {
      @Sendable (_: HTTPURLResponse, answer: @escaping @Sendable (Request.ResponseDisposition) -> Void) in
      switch coin {
      case 0: answer(.cancel)
      case 1: DispatchQueue.global().async { answer(.allow) }
      case 2: answer(.allow)
      default: break
      }
    }
    if let request = request as? DataRequest { request.onHTTPResponse(on: .global(), perform: decide) }
    if let request = request as? DataStreamRequest { request.onHTTPResponse(on: .global(), perform: decide) }
  }

  private func ask(_ request: Request) {
    _ = request.description
    _ = request.tasks.map { ($0.state, $0.response, $0.currentRequest, $0.countOfBytesReceived, $0.error) }
    _ = request.downloadProgress.fractionCompleted
    _ = request.allMetrics.count + request.retryCount + request.requests.count
    _ = request.eventMonitor
    _ = request.cURLDescription()
  }

  private func cancelWithResumeData(_ request: Request) {
    guard let request = request as? DownloadRequest else { return }
    let done = counter.promise("the answer with resume data")
    request.cancel { _ in done() }
  }

  private func readStream(of request: Request) {
    guard let request = request as? DataStreamRequest, let stream = request.asInputStream() else { return }
    let done = counter.promise("the end of an InputStream")
    nonisolated(unsafe) let input = stream
    Thread.detachNewThread {
      var buffer = [UInt8](repeating: 0, count: 512)
      input.open()
      while input.read(&buffer, maxLength: buffer.count) > 0 {}
      done()
    }
  }
}

/// Adapts and retries at random, at once or later. Sometimes it releases its completion without calling it.
final class RandomInterceptor: RequestInterceptor {
  private let random: Mutex<SeededGenerator>

  init(seed: UInt64) {
    random = Mutex(SeededGenerator(seed: seed))
  }

  private func roll(_ sides: UInt64) -> UInt64 { random.withLock { $0.next() % sides } }

  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
  ) {
    switch roll(4) {
    case 0: DispatchQueue.global().async { completion(.success(urlRequest)) }
    default: completion(.success(urlRequest))
    }
  }

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard request.retryCount < 3 else { return completion(.doNotRetry) }
    switch roll(7) {
    case 0: completion(.doNotRetryWithError(TestError()))
    case 1: completion(.doNotRetry)
    case 2: break
    case 3: completion(.retryWithDelay(0.001))
    case 4: DispatchQueue.global().async { completion(.retry) }
    default: completion(.retry)
    }
  }
}
