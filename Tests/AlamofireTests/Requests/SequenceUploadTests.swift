import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Uploads whose body is an asynchronous sequence.
@Suite("Uploads from asynchronous sequences", .timeLimit(.minutes(5)))
struct SequenceUploadTests {
  private struct Failure: Error, Equatable {}

  private let server: HTTPTestServer

  init() throws { server = try HTTPTestServer(routes: .none) }

  private static func sequence(_ texts: String...) -> AsyncStream<Data> {
    AsyncStream { continuation in
      for text in texts { continuation.yield(Data(text.utf8)) }
      continuation.finish()
    }
  }

  /// An endless sequence that counts its elements.
  private final class Source: AsyncSequence, Sendable {
    let count = Mutex(0)
    let began = Latch()
    /// Open when the iterator was released.
    let ended = Latch()
    /// The element; `nil` for a sequence that waits for its first one until it is cancelled.
    private let element: Data?

    init(_ element: Data?) { self.element = element }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    fileprivate func next() async -> Data? {
      count.withLock { $0 += 1 }
      began.open()
      if element == nil { await Latch().wait() }
      return element
    }
  }

  private final class Iterator: AsyncIteratorProtocol {
    private let source: Source

    init(_ source: Source) { self.source = source }

    deinit { source.ended.open() }

    func next() async -> Data? { await source.next() }
  }

  private func code(_ response: AFDataResponse<Data?>) -> URLError.Code? {
    (response.error?.underlyingError as? URLError)?.code
  }

  @Test("Elements are sent in their order, empty ones too", arguments: [nil, 7] as [Int64?])
  func elements(length: Int64?) async throws {
    server.enqueue(.ok)
    let body = Self.sequence("one", "", "four")
    let response = await Session.real().upload(body, to: server.url("/"), length: length, method: .put).end()
    #expect(response.error == nil)
    let request = try await server.takeRequest()
    #expect(request.method == "PUT" && request.bodyText == "onefour")
    #expect(request.header("Content-Length") == length.map { String($0) })
    #expect(request.header("Transfer-Encoding") == (length == nil ? "chunked" : nil))
  }

  @Test("An empty sequence is an empty body", arguments: [nil, 0] as [Int64?]) func empty(length: Int64?)
    async throws
  {
    server.enqueue(.ok)
    let request = URLRequest(url: try #require(URL(string: server.url("/"))))
    var post = request
    post.httpMethod = "POST"
    #expect(await Session.real().upload(Self.sequence(), with: post, length: length).end().error == nil)
    #expect(try await server.takeRequest().body == [])
  }

  @Test("A large element arrives whole") func largeElement() async throws {
    server.enqueue(.ok)
    let bytes = Data(UploadFixture.content(5_000_000))
    let body = AsyncStream<Data> { continuation in
      continuation.yield(bytes.prefix(3_000_001))
      continuation.yield(bytes.dropFirst(3_000_001))
      continuation.finish()
    }
    #expect(await Session.real().upload(body, to: server.url("/")).end().error == nil)
    #expect(Data(try await server.takeRequest().body) == bytes)
  }

  @Test("A sequence of another length than announced is an error", arguments: [0, 3, 6, 8, -1] as [Int64])
  func wrongLength(length: Int64) async throws {
    server.enqueue(.ok)
    let response = await Session.real()
      .upload(Self.sequence("one", "four"), to: server.url("/"), length: length).end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(response.error?.localizedDescription.contains("\(length)") == true)
    if length == 0 { #expect(server.requestCount == 0, "the server would take the body as complete") }
  }

  @Test(
    "A sequence that is announced as empty and throws fails the request before it is sent",
    arguments: [true, false])
  func thrownByEmpty(hasTrailers: Bool) async {
    server.enqueue(.ok)
    let body = AsyncThrowingStream<Data, any Error> { $0.finish(throwing: Failure()) }
    let request = Session.real().upload(body, to: server.url("/"), length: 0)
    if hasTrailers { _ = request.trailers { ["X-Length": "0"] } }
    #expect(await request.end().error?.underlyingError as? Failure == Failure())
    #expect(server.requestCount == 0)
  }

  @Test(
    "A sequence that is announced as empty and does not end ends with its request",
    arguments: [true, false])
  func endlessEmpty(isCancelled: Bool) async {
    let configuration = URLSessionConfiguration.uncached
    if !isCancelled { configuration.timeoutIntervalForResource = 0.3 }
    let source = Source(nil)
    let request = Session.real(configuration: configuration).upload(source, to: server.url("/"), length: 0)
    async let response = request.end()
    if isCancelled {
      await source.began.wait()
      request.cancel()
      #expect(await response.error?.isExplicitlyCancelledError == true)
      await source.ended.wait()
    } else {
      #expect(code(await response) == .timedOut)
    }
    #expect(server.requestCount == 0)
  }

  @Test("A sequence that throws after its announced length fails the request") func thrownAtEnd() async throws
  {
    server.enqueue(.ok)
    let body = AsyncThrowingStream<Data, any Error> { continuation in
      continuation.yield(Data("some".utf8))
      continuation.finish(throwing: Failure())
    }
    let response = await Session.real().upload(body, to: server.url("/"), length: 4).end()
    #expect(response.error?.underlyingError as? Failure == Failure())
  }

  @Test("The error of the sequence is the error of the request") func thrownError() async throws {
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    for texts in [[], ["some"]] {
      let body = AsyncThrowingStream<Data, any Error> { continuation in
        for text in texts { continuation.yield(Data(text.utf8)) }
        continuation.finish(throwing: Failure())
      }
      let response = await Session.real().upload(body, to: server.url("/")).end()
      #expect(response.error?.underlyingError as? Failure == Failure())
    }
    gate.open()
  }

  @Test("A server that does not read holds the sequence back, and a cancellation ends it")
  func backPressure() async throws {
    let gate = Gate()
    server.enqueue(.earlyReply(200, then: .ignored).held(by: gate))
    let source = Source(Data(repeating: 7, count: 2 << 20))
    let request = Session.real().upload(source, to: server.url("/"))
    async let response = request.end()
    await gate.waitUntilReached()
    #expect(await eventually { source.count.withLock { $0 } > 1 })
    server.enqueue(.text("ok"))
    #expect(await Session.real().request(server.url("/")).serializingData().response.error == nil)
    // The buffers of the sockets have a few mebibytes.
    #expect(source.count.withLock { $0 } < 32)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    await source.ended.wait()
    #expect(source.count.withLock { $0 } < 32)
    gate.open()
  }

  @Test("A sequence that waits for its first element ends with its request") func waitingSequence()
    async throws
  {
    let source = Source(nil)
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let request = Session.real().upload(source, to: server.url("/"))
    async let response = request.end()
    await source.began.wait()
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    await source.ended.wait()
    gate.open()
  }

  @Test("A response that does not wait for the body ends the sequence") func earlyResponse() async throws {
    let gate = Gate()
    server.enqueue(.earlyReply(413, then: .ignored).held(by: gate))
    let source = Source(Data(repeating: 7, count: 1 << 20))
    let request = Session.real().upload(source, to: server.url("/"))
    async let response = request.end()
    await source.began.wait()
    gate.open()
    _ = await response
    await source.ended.wait()
  }

  @Test("The end of a sequence does not run the caller's code on the engine's thread")
  func terminationThread() async throws {
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let (began, names) = (Latch(), Recorder<String>())
    let body = AsyncStream<Data>(
      unfolding: {
        began.open()
        await Latch().wait()
        return nil
      }, onCancel: { names.add(threadName()) })
    let request = Session.real().upload(body, to: server.url("/"))
    async let response = request.end()
    await began.wait()
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    await names.wait(for: 1)
    #expect(!names.values.contains("http-engine"))
    gate.open()
  }

  @Test(
    "A response ends an upload whose sequence waits for its first element", arguments: [nil, 10] as [Int64?])
  func earlyResponseToWaiting(length: Int64?) async throws {
    server.enqueue(.earlyReply(413, then: .ignored))
    let source = Source(nil)
    let request = Session.real().upload(source, to: server.url("/"), length: length)
    #expect(await request.end().response?.statusCode == 413)
  }

  @Test("A redirect or a challenge after the body is an error that names the remedy", arguments: [307, 401])
  func sentAgain(status: Int) async throws {
    server.enqueue(
      status == 307
        ? .redirect(to: "/there", status: 307)
        : Reply.status(401).with(header: "WWW-Authenticate", value: "Basic realm=\"x\""))
    let response = await Session.real().upload(Self.sequence("body"), to: server.url("/"))
      .authenticate(username: "u", password: "p").end()
    #expect(code(response) == .requestBodyStreamExhausted)
    #expect(response.error?.localizedDescription.contains("can be read once") == true)
    #expect(server.requestCount == 1)
  }

  @Test("A retry before anything was sent sends the whole sequence") func retried() async throws {
    server.enqueue(.ok)
    let refused = "http://127.0.0.1:\(try HTTPTestServer.refusedPort())/"
    let target = try #require(URL(string: server.url("/")))
    let interceptor = SpyInterceptor(
      adapt: { request, count in
        var request = request
        if count > 1 { request.url = target }
        return .success(request)
      }, retry: { _, _, _ in .retry })
    let response = await Session.real().upload(
      Self.sequence("one", "two"), to: refused, interceptor: interceptor
    ).end()
    #expect(response.error == nil)
    #expect(try await server.takeRequest().bodyText == "onetwo")
  }

  @Test("A request that failed before its sequence was read can be sent again", arguments: [true, false])
  func sentAgainUntouched(isAdapted: Bool) async throws {
    server.enqueue(.ok)
    let refused = URLRequest(url: try #require(URL(string: "gopher://127.0.0.1/")))
    let interceptor = SpyInterceptor(
      adapt: { request, count in
        count > 1 ? .success(request) : isAdapted ? .success(refused) : .failure(Failure())
      }, retry: { _, _, _ in .doNotRetry })
    let session = Session.real()
    let request = session.upload(
      Self.sequence("one", "two"), to: server.url("/"), interceptor: interceptor)
    #expect(await request.end().error != nil)
    session.retryRequest(request, withDelay: nil)
    #expect(await request.end().error == nil)
    #expect(try await server.takeRequest().bodyText == "onetwo")
  }

  @Test(
    "A body that the handler of the URL did not read is sent whole by a retry after the error of a serializer",
    arguments: [true, false], [true, false])
  func serializerRetry(isSequence: Bool, hasRetrier: Bool) async throws {
    server.enqueue(.text("[1]"))
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.load(client, "no JSON")
      loader.finish(client)
    }
    let target = try #require(URL(string: server.url("/")))
    let interceptor = SpyInterceptor(
      adapt: { request, count in
        var request = request
        if count > 1 { request.url = target }
        return .success(request)
      }, retry: { _, _, count in hasRetrier && count == 1 ? .retry : .doNotRetry })
    let session = Session.scripted(interceptor: interceptor)
    let request =
      isSequence
      ? session.upload(Self.sequence("one", "two"), to: script.url)
      : session.upload(InputStream(data: Data("onetwo".utf8)), to: script.url)
    var response = await request.serializingDecodable([Int].self).response
    if !hasRetrier {
      #expect(response.error?.isResponseSerializationError == true)
      session.retryRequest(request, withDelay: nil)
      response = await request.serializingDecodable([Int].self).response
    }
    #expect(response.value == [1])
    #expect(try await server.takeRequest().bodyText == "onetwo")
  }

  @Test("A stream that the handler of the URL has opened is not sent by a retry", arguments: [true, false])
  func openedStream(readsPart: Bool) async throws {
    let script = ProtocolScript { loader, client in
      let stream = loader.request.httpBodyStream
      stream?.open()
      var bytes = [UInt8](repeating: 0, count: 3)
      if readsPart { #expect(stream?.read(&bytes, maxLength: 3) == 3) }
      loader.respond(client)
      loader.load(client, "no JSON")
      loader.finish(client)
    }
    let target = try #require(URL(string: server.url("/")))
    let interceptor = SpyInterceptor(
      adapt: { request, count in
        var request = request
        if count > 1 { request.url = target }
        return .success(request)
      }, retry: { _, _, count in count == 1 ? .retry : .doNotRetry })
    let session = Session.scripted(interceptor: interceptor)
    let request = session.upload(InputStream(data: Data("onetwo".utf8)), to: script.url)
    let response = await request.serializingDecodable([Int].self).response
    #expect(response.error?.transferCode == .requestBodyStreamExhausted)
    #expect(server.requestCount == 0)
  }

  @Test("A sequence is neither resumable nor for background sessions") func refused() async throws {
    let resumable = Session.real().upload(Self.sequence("x"), to: server.url("/")).resumable()
    #expect(await resumable.end().error?.uploadError == .bodyIsStream)
    let fixture = try BackgroundFixture()
    let session = fixture.session()
    let background = session.upload(Self.sequence("x"), to: server.url("/"))
    #expect(await background.end().error?.localizedDescription.contains("InputStream") == true)
    #expect(server.requestCount == 0)
  }
}
