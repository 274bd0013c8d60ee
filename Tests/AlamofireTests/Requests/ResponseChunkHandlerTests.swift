import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

@Suite("Response chunks", .timeLimit(.minutes(5))) struct ResponseChunkHandlerTests {
  private let server: HTTPTestServer
  private let session = Session.real()
  /// For requests that start after all handlers are added.
  private let pausedSession = Session.real(startRequestsImmediately: false)
  private let queue = DispatchQueue(label: "test.chunks")

  init() throws { server = try HTTPTestServer() }

  // MARK: Delivery

  @Test("Chunks are the body, and response handlers receive no data") func chunks() async {
    server.enqueue(.bytes(3_000_000))
    let check = PatternCheck()
    let request = session.request(server.url("/")).responseChunks(on: queue) { [queue] chunk in
      dispatchPrecondition(condition: .onQueue(queue))
      _ = check.add(chunk)
    }
    let counts = Recorder<Int>()
    let response = await withCheckedContinuation { done in
      request.response(queue: .global()) { response in
        counts.add(check.count)
        done.resume(returning: response)
      }
    }
    #expect(response.error == nil && response.response?.statusCode == 200 && response.data == nil)
    // Response handlers are called after the last chunk.
    #expect(counts.values == [3_000_000] && check.isRight(3_000_000))
    #expect(request.data == nil && request.core.chunks?.flow.heldBytes == 0)
    #expect(response.metrics?.transactionMetrics.last?.countOfResponseBodyBytesReceived == 3_000_000)
  }

  @Test("An empty body has no chunk") func emptyBody() async {
    server.enqueue(.status(200), .status(204))
    for _ in 0..<2 {
      let chunks = Recorder<Data>()
      let response = await session.request(server.url("/")).validate(contentType: ["image/png"])
        .responseChunks(on: queue) { chunks.add($0) }.end()
      #expect(response.error == nil && chunks.count == 0)
    }
  }

  @Test("A handler that is added while the finished request is sent again receives the body")
  func addedDuringRetry()
    async
  {
    let session = Session.retained(fake: FakeTransport { _, _ in .text("body") })
    for round in 0..<200 {
      let request = session.request("http://a.test/")
      _ = await request.end()
      let (chunks, isAsked) = (Recorder<Data>(), Latch())
      DispatchQueue.global().async {
        session.retryRequest(request, withDelay: nil)
        isAsked.open()
      }
      request.responseChunks(on: queue) { chunks.add($0) }
      let response = await request.end()
      await isAsked.wait()
      #expect(response.error == nil)
      #expect(chunks.values.reduce(Data(), +) == Data("body".utf8), "round \(round)")
    }
  }

  @Test("Each handler receives all chunks") func handlers() async {
    server.enqueue(.bytes(500_000))
    let checks = [PatternCheck(), PatternCheck()]
    let response = await pausedSession.request(server.url("/"))
      .responseChunks(on: queue) { _ = checks[0].add($0) }
      .responseChunks(on: .global()) { _ = checks[1].add($0) }.resume().end()
    #expect(response.error == nil && checks.allSatisfy { $0.isRight(500_000) })
  }

  @Test("Progress is reported") func progress() async {
    server.enqueue(.bytes(100_000), .bytes(100_000))
    let request = session.request(server.url("/")).responseChunks(on: queue) { _ in }
    _ = await request.end()
    #expect(request.downloadProgress.completedUnitCount == 100_000)
    #expect(request.downloadProgress.totalUnitCount == 100_000)
    let reported = Recorder<Int64>()
    let watched = session.request(server.url("/"))
      .downloadProgress(queue: queue) { reported.add($0.completedUnitCount) }
      .responseChunks(on: queue) { _ in }
    _ = await watched.end()
    #expect(reported.values.last == 100_000 && watched.downloadProgress.fractionCompleted == 1)
  }

  @Test("Uploads deliver chunks") func uploads() async {
    let chunks = Recorder<Data>()
    let response = await session.upload(Data("sent".utf8), to: server.url("/post"))
      .responseChunks(on: queue) { chunks.add($0) }.end()
    #expect(response.error == nil && response.data == nil)
    #expect(String(decoding: chunks.values.reduce(Data(), +), as: UTF8.self).contains("sent"))
  }

  @Test("Redirects and challenges deliver no chunks") func redirectsAndChallenges() async throws {
    server.enqueue(
      Reply(
        status: 302, headers: [.init(name: "Location", value: "/second")],
        body: .bytes(Array("look elsewhere".utf8))),
      Reply(
        status: 401, headers: [.init(name: "WWW-Authenticate", value: #"Basic realm="r""#)],
        body: .bytes(Array("who are you".utf8))),
      .text("here"))
    let chunks = Recorder<String>()
    let response = await session.request(server.url("/")).authenticate(username: "a", password: "b")
      .responseChunks(on: queue) { chunks.add(String(decoding: $0, as: UTF8.self)) }.end()
    #expect(response.response?.statusCode == 200 && chunks.values == ["here"])
  }

  @Test("Chunks are not stored, and a stored response is delivered in chunks") func cache() async {
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let session = Session.real(configuration: .cached(by: cache))
    let reply = Reply.text("fresh").with(header: "Cache-Control", value: "max-age=1000")
    server.enqueue(reply, reply, reply)
    func send() async -> (chunks: [Data], isStored: Bool) {
      let chunks = Recorder<Data>()
      let response = await session.request(server.url("/")).responseChunks(on: queue) { chunks.add($0) }.end()
      let source = response.metrics?.transactionMetrics.last?.resourceFetchType
      return (chunks.values, source == .localCache)
    }
    for _ in 0..<2 {
      let sent = await send()
      #expect(sent.chunks == [Data("fresh".utf8)] && !sent.isStored)
    }
    _ = await session.request(server.url("/")).end()
    #expect(server.recordedRequests.count == 3, "a response of chunks was stored")
    #expect(await session.request(server.url("/")).end().data == Data("fresh".utf8))
    let stored = await send()
    #expect(stored.chunks == [Data("fresh".utf8)] && stored.isStored)
    #expect(server.recordedRequests.count == 3, "a stored response did not answer")
  }

  // MARK: Validation

  @Test("Responses are validated") func validation() async {
    let reply = Reply(
      status: 200, headers: [.init(name: "Content-Type", value: "text/plain")], body: .pattern(9))
    server.enqueue(reply, reply, reply, .status(404), reply)
    let chunks = Recorder<Data>()
    func failed(_ add: (DataRequest) -> DataRequest) async -> AFError? {
      await add(session.request(server.url("/"), headers: ["Accept": "image/png"]))
        .responseChunks(on: queue) { chunks.add($0) }.end().error
    }
    for validate: (DataRequest) -> DataRequest in [
      { $0.validate() }, { $0.validate(contentType: ["image/png"]) },
    ] {
      guard case .responseValidationFailed(.unacceptableContentType)? = await failed(validate) else {
        Issue.record("the type was accepted")
        return
      }
    }
    #expect(await failed { $0.validate(contentType: ["text/*"]) } == nil)
    #expect(await failed { $0.validate(statusCode: 200..<300) }?.responseCode == 404)
    let bodies = Recorder<Data?>()
    let error = await failed {
      $0.validate { _, _, data in
        bodies.add(data)
        return .failure(TestError())
      }
    }
    #expect(error?.underlyingError as? TestError == TestError() && bodies.values == [nil])
    // The chunks were delivered before the validation.
    #expect(chunks.values.map(\.count) == [9, 9, 9, 9])
  }

  // MARK: Failures

  @Test("Chunks before a failure are delivered") func failure() async {
    server.enqueue(.bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)))
    let check = PatternCheck()
    let response = await session.request(server.url("/")).responseChunks(on: queue) { _ = check.add($0) }
      .end()
    #expect(response.error?.transferCode == .networkConnectionLost)
    #expect(check.count > 0 && check.isRight(check.count))
  }

  @Test("Cancelling ends the delivery") func cancel() async {
    let gate = Gate()
    server.enqueue(.parts(.pattern(1000), .gate(gate), .pattern(1000)))
    let check = PatternCheck()
    let request = session.request(server.url("/"))
    request.responseChunks(on: queue) { [weak request] chunk in
      _ = check.add(chunk)
      request?.cancel()
    }
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
    gate.open()
    #expect(check.isRight(1000))
  }

  @Test("A request is not retried after a chunk was delivered") func noRetry() async {
    let spy = SpyInterceptor(retries: 5)
    server.enqueue(.bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)), .bytes(200_000))
    let check = PatternCheck()
    let request = session.request(server.url("/"), interceptor: spy)
    let response = await request.responseChunks(on: queue) { _ = check.add($0) }.end()
    #expect(response.error?.transferCode == .networkConnectionLost)
    #expect(spy.retryCount == 0 && request.retryCount == 0 && server.recordedRequests.count == 1)
    #expect(check.count <= 100_000 && check.isRight(check.count))
  }

  @Test("With onRestart a retry delivers the body again") func restart() async {
    let spy = SpyInterceptor(retries: 5)
    server.enqueue(.bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)), .bytes(200_000))
    let checks = Mutex([PatternCheck()])
    let request = session.request(server.url("/"), interceptor: spy)
    let response = await request.responseChunks(
      on: queue, onRestart: { checks.withLock { $0.append(PatternCheck()) } },
      perform: { chunk in _ = checks.withLock { $0[$0.count - 1] }.add(chunk) }
    ).end()
    #expect(response.error == nil && request.retryCount == 1)
    let all = checks.withLock { $0 }
    #expect(all.count == 2 && all[0].count > 0 && all[0].isRight(all[0].count))
    #expect(all.last?.isRight(200_000) == true)
  }

  @Test("One handler without onRestart prevents the retry") func handlerWithoutRestart() async {
    let spy = SpyInterceptor(retries: 5)
    server.enqueue(.bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)))
    let response = await pausedSession.request(server.url("/"), interceptor: spy)
      .responseChunks(on: queue, onRestart: {}) { _ in }
      .responseChunks(on: queue) { _ in }.resume().end()
    #expect(response.error != nil && server.recordedRequests.count == 1)
  }

  /// The bodies of failures are held first. A long one is passed on before its end.
  @Test(
    "A reader without onRestart that is added before a retry gets no part of another response",
    arguments: [200, 503])
  func readerBeforeRetry(status: Int) async {
    server.enqueue(
      .bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)),
      Reply(status: status, body: .pattern(2_000_000)))
    let late = Recorder<Data>()
    let spy = SpyInterceptor(retry: { [queue] request, _, _ in
      (request as? DataRequest)?.responseChunks(on: queue) { late.add($0) }
      return .retry
    })
    let request = session.request(server.url("/"), interceptor: spy)
    let response = await request.responseChunks(on: queue, onRestart: {}, perform: { _ in }).end()
    #expect(response.error?.transferCode == .networkConnectionLost)
    #expect(late.count == 0 && spy.retryCount == 1)
  }

  @Test("A retry before the first chunk is not reported") func earlyRetry() async {
    let spy = SpyInterceptor(retries: 2)
    let failure = Reply(status: 503, body: .bytes(Array("not now".utf8)))
    server.enqueue(failure.closing(), .reset, .text("fine"))
    let chunks = Recorder<String>()
    let request = session.request(server.url("/"), interceptor: spy).validate()
    let response = await request.responseChunks(on: queue) {
      chunks.add(String(decoding: $0, as: UTF8.self))
    }.end()
    #expect(response.error == nil && request.retryCount == 2 && chunks.values == ["fine"])
  }

  @Test("The body of a failure is delivered at the end") func bodyOfFailure() async {
    server.enqueue(Reply(status: 503, body: .bytes(Array("not now".utf8))))
    let chunks = Recorder<String>()
    let both = [0, 1].map { _ in
      { @Sendable (chunk: Data) in chunks.add(String(decoding: chunk, as: UTF8.self)) }
    }
    let response = await pausedSession.request(server.url("/"), interceptor: SpyInterceptor(retries: 0))
      .validate()
      .responseChunks(on: queue, perform: both[0]).responseChunks(on: queue, perform: both[1]).resume().end()
    #expect(response.error?.responseCode == 503 && response.data == nil)
    #expect(chunks.values == ["not now", "not now"])
  }

  @Test("A long body of a failure is not retained for a retry") func longFailure() async {
    let spy = SpyInterceptor(retries: 5)
    server.enqueue(Reply(status: 503, body: .pattern(2_000_000)))
    let check = PatternCheck()
    let request = session.request(server.url("/"), interceptor: spy).validate()
    let response = await request.responseChunks(on: queue) { _ = check.add($0) }.end()
    #expect(response.error?.responseCode == 503 && spy.retryCount == 0 && check.isRight(2_000_000))
  }

  @Test("The body of a failure begins anew after a part of another body", arguments: [9, 2_000_000])
  func failureAfterPart(count: Int) async {
    let spy = SpyInterceptor(retries: 1)
    server.enqueue(
      .bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)),
      Reply(status: 503, body: .pattern(count)))
    let checks = Mutex([PatternCheck()])
    let request = session.request(server.url("/"), interceptor: spy).validate()
    let response = await request.responseChunks(
      on: queue, onRestart: { checks.withLock { $0.append(PatternCheck()) } },
      perform: { chunk in _ = checks.withLock { $0[$0.count - 1] }.add(chunk) }
    ).end()
    #expect(response.error?.responseCode == 503 && request.retryCount == 1)
    let all = checks.withLock { $0 }
    #expect(all.count == 2 && all[0].count > 0 && all[0].isRight(all[0].count))
    #expect(all.last?.isRight(count) == true)
  }

  @Test("A failed serializer does not retry after a chunk was delivered") func serializer() async {
    let spy = SpyInterceptor(retries: 5)
    server.enqueue(.text("first"), .text("second"))
    let chunks = Recorder<Data>()
    let request = session.request(server.url("/"), interceptor: spy)
    let response = await request.responseChunks(on: queue) { chunks.add($0) }.serializingString().response
    // The serializer receives no data.
    #expect(response.error?.isResponseSerializationError == true)
    #expect(chunks.values == [Data("first".utf8)] && request.retryCount == 0)
  }

  // MARK: Late handlers

  @Test("A handler that is added after the end receives the stored data") func lateHandler() async {
    server.enqueue(.bytes(100_000))
    let request = session.request(server.url("/"))
    #expect(await request.end().data?.count == 100_000)
    let chunks = Recorder<Data>()
    let late = await request.responseChunks(on: queue) { chunks.add($0) }.end()
    #expect(chunks.values == [Data(Reply.patternBytes(100_000))])
    #expect(late.data == nil && late.error == nil && request.data == nil)
    #expect(server.recordedRequests.count == 1)
  }

  /// Adds the handler with a delegate, which receives each chunk as it arrives, and without.
  @Test("A handler that is added during the transfer receives the whole body", arguments: [true, false])
  func handlerDuringTransfer(isWatched: Bool) async {
    // Unchecked, as its superclass is: its own property is a constant.
    final class Delegate: SessionDelegate, @unchecked Sendable {
      let came = Recorder<Int>()
      override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        came.add(data.count)
        super.urlSession(session, dataTask: dataTask, didReceive: data)
      }
    }
    let gate = Gate()
    server.enqueue(.parts(.pattern(65_521), .gate(gate), .pattern(65_521)))
    let delegate = Delegate()
    let session =
      isWatched ? Session(configuration: .uncached, delegate: delegate) : Session(configuration: .uncached)
    let request = session.request(server.url("/"))
    let began = Recorder<Bool>()
    request.downloadProgress(queue: queue) { _ in began.add(true) }
    async let response = request.end()
    await began.wait(for: 1)
    let check = PatternCheck()
    request.responseChunks(on: queue) { chunk in
      _ = check.add(chunk)
    }
    gate.open()
    let late = await request.end()
    #expect(late.error == nil && late.data == nil && check.isRight(131_042))
    #expect(await response.error == nil)
    if isWatched { #expect(delegate.came.values.reduce(0, +) == 131_042) }
    withExtendedLifetime(session) {}
  }

  @Test("A request that is sent again after its end stores its body") func sentAgain() async throws {
    server.enqueue(.text("first"), .text("second"))
    let chunks = Recorder<Data>()
    let request = session.request(server.url("/")).responseChunks(on: queue) { chunks.add($0) }
    #expect(await request.end().data == nil)
    session.retryRequest(request, withDelay: nil)
    #expect(await request.end().data == Data("second".utf8))
    #expect(chunks.values == [Data("first".utf8)])
  }

  @Test("A request that is never sent is released") func unsentRequest() {
    weak var gone: DataRequest?
    do {
      let idle = Session(configuration: .uncached, startRequestsImmediately: false)
      let request = idle.request(server.url("/")).responseChunks(on: queue) { _ in }
      #expect(request.core.chunks != nil)
      gone = request
    }
    #expect(gone == nil)
  }
}
