import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Ends of streams by errors, cancellation and retries.
@Suite("The end of a stream", .timeLimit(.minutes(5)))
struct StreamEndTests {
  private let queue = DispatchQueue(label: "test.handlers")

  private func request(
    _ replies: FakeReply..., cancelsOnError: Bool = false, interceptor: (any RequestInterceptor)? = nil
  ) -> DataStreamRequest {
    let script = replies
    let fake = FakeTransport { _, index in script[min(index, script.count - 1)] }
    return Session.retained(fake: fake).streamRequest(
      "http://a.test/", automaticallyCancelOnStreamError: cancelsOnError, interceptor: interceptor)
  }

  @Test("An error of a handler ends the request") func handlerError() async throws {
    let recorder = DataRecorder { stream in if stream.value != nil { throw TestError() } }
    let other = DataRecorder()
    let spy = EventSpy()
    let request = request(.chunks(["a", "b", "c"])).eventMonitor(spy)
      .responseStream(on: queue, stream: recorder.note)
      .responseStream(on: queue, stream: other.note)
    let error = try await recorder.end().error
    guard case .responseSerializationFailed(.customSerializationFailed(let cause)) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause as? TestError == TestError())
    #expect(String(recorder.kinds.values) == "sc")
    #expect(try await other.end().error?.isResponseSerializationError == true)
    #expect(request.isCancelled)
    let ends = spy.reported.filter { $0 == "requestDidCancel" || $0 == "requestDidFinish" }
    #expect(ends == ["requestDidCancel", "requestDidFinish"])
  }

  @Test("An AFError of a handler is not wrapped, and an error of a completion is ignored") func afError()
    async throws
  {
    let recorder = DataRecorder { stream in
      throw stream.value != nil ? AFError.sessionDeinitialized : AFError.explicitlyCancelled
    }
    let request = request(.chunks(["a"])).responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.isSessionDeinitializedError == true)
    #expect(request.error?.isSessionDeinitializedError == true)
    #expect(recorder.completions.count == 1)
  }

  @Test("A failed serializer ends the request if that is chosen") func serializerFailure() async throws {
    let recorder = StreamRecorder<Point, AFError>()
    let request = request(.chunks([#"{"x":1}"#, #"{"y":2}"#, #"{"x":3}"#]), cancelsOnError: true)
    request.responseStreamDecodable(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.isExplicitlyCancelledError == true)
    #expect(recorder.values.map(\.x) == [1])
    #expect(recorder.results.count == 2)
    #expect(request.isCancelled)
  }

  @Test("Tokens cancel on any thread and repeatedly") func tokens() async throws {
    let tokens = Recorder<DataStreamRequest.CancellationToken>()
    let recorder = DataRecorder { stream in
      tokens.add(stream.token)
      stream.cancel()
      onManyThreads { stream.token.cancel() }
    }
    let request = request(.chunks(["a", "b"])).responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.isExplicitlyCancelledError == true)
    #expect(String(recorder.kinds.values) == "sc")
    for token in tokens.values { token.cancel() }
    #expect(request.isCancelled)
    #expect(recorder.completions.count == 1)
  }

  @Test("A stream that is cancelled before its start is not sent") func cancelledBeforeStart() async throws {
    let fake = FakeTransport()
    let request = Session.retained(fake: fake, startRequestsImmediately: false).streamRequest(
      "http://a.test/")
    let recorder = DataRecorder()
    request.responseStream(on: queue, stream: recorder.note)
    request.cancel()
    #expect(try await recorder.end().error?.isExplicitlyCancelledError == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("A handler of the head can cancel") func cancelledAtHead() async throws {
    let server = try HTTPTestServer()
    let recorder = DataRecorder()
    Session.real().streamRequest(server.url("/bytes/100000"))
      .onHTTPResponse(on: queue) { _, decide in decide(.cancel) }
      .responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.isExplicitlyCancelledError == true)
    #expect(recorder.values.isEmpty)
  }

  @Test("An asynchronous handler of the head can cancel") func cancelledAsynchronously() async throws {
    let recorder = DataRecorder()
    let request = Session.retained(fake: FakeTransport()).streamRequest("http://a.test/")
      .onHTTPResponse { response async -> Request.ResponseDisposition in
        response.statusCode == 200 ? .cancel : .allow
      }
    request.responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error?.isExplicitlyCancelledError == true)
    #expect(recorder.values.isEmpty)
  }

  @Test("The head is delivered before the body") func headFirst() async throws {
    let server = try HTTPTestServer()
    let order = Recorder<String>()
    let recorder = DataRecorder { stream in if stream.value != nil { order.add("chunk") } }
    let request = Session.real().streamRequest(server.url("/bytes/10"))
    request.onHTTPResponse(on: queue) { response, decide in
      order.add("head \(response.statusCode)")
      decide(.allow)
    }
    request.responseStream(on: queue, stream: recorder.note)
    #expect(try await recorder.end().error == nil)
    #expect(order.values == ["head 200", "chunk"])
  }

  @Test("A retry delivers the new response from its beginning") func retry() async throws {
    let recorder = DataRecorder()
    let values = StreamRecorder<Point, AFError>()
    let texts = StreamRecorder<String, Never>()
    let euro = Array("€".utf8)
    let broken = FakeReply(
      chunks: [Data(#"{"x":1}{"x":"#.utf8) + Data(euro.prefix(1))],
      failure: TransportFailure(.connectionLost, "broken by the script"))
    let request = request(broken, .chunks([#"{"x":7}"#]), interceptor: SpyInterceptor(retries: 1))
    request.responseStream(on: queue, stream: recorder.note)
      .responseStreamDecodable(on: queue, stream: values.note)
      .responseStreamString(on: queue, stream: texts.note)
    #expect(try await values.end().error == nil)
    _ = try await (recorder.end(), texts.end())
    #expect(request.retryCount == 1)
    #expect(recorder.values.count == 2)
    #expect(values.values.map(\.x) == [1, 7])
    #expect(values.results.count == 2, "what was left of the first response is not a value")
    #expect(texts.values == [#"{"x":1}{"x":"#, #"{"x":7}"#])
  }

  @Test("A released session ends the stream") func releasedSession() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("a", .gate(gate)))
    let recorder = DataRecorder()
    var session: Session? = Session()
    session?.streamRequest(server.url("/")).responseStream(on: queue, stream: recorder.note)
    await recorder.results.wait(for: 1)
    await gate.waitUntilReached()
    session = nil
    #expect(try await recorder.end().error?.isSessionDeinitializedError == true)
  }

  @Test("Handlers of a stream that is not started are released") func unstartedHandlers() {
    weak var request: DataStreamRequest?
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    do {
      let made = session.streamRequest("http://a.test/").responseStream { _ in }
      made.responseStreamDecodable(of: Point.self) { _ in }
      request = made
    }
    #expect(request == nil)
  }

  @Test("Handlers of a stream that has ended are released") func endedHandlers() async throws {
    final class Token: Sendable {}
    nonisolated(unsafe) weak var token: Token?
    let request = Session.retained(fake: FakeTransport(.chunks(["a"]))).streamRequest("http://a.test/")
    let recorder = DataRecorder()
    do {
      let held = Token()
      token = held
      request.responseStream(on: queue) { stream in
        try recorder.note(stream)
        withExtendedLifetime(held) {}
      }
    }
    _ = try await recorder.end()
    #expect(await eventually { token == nil })
    #expect(request.isFinished)
  }

  @Test("Handlers are not called on the engine's thread") func engineThread() async throws {
    let server = try HTTPTestServer()
    struct Place: DataStreamSerializer {
      func serialize(_ data: Data) throws -> String { threadName() }
    }
    let names = Recorder<String>()
    let recorder = StreamRecorder<String, AFError> { stream in
      names.add(threadName())
      if let name = stream.value { names.add(name) }
    }
    Session.real().streamRequest(server.url("/bytes/100000"))
      .responseStream(using: Place(), on: .global(), stream: recorder.note)
    _ = try await recorder.end()
    #expect(!names.values.contains("http-engine"))
    #expect(names.count > 2)
  }
}

/// Calls `body` concurrently on several threads, and waits for them.
private func onManyThreads(_ body: @escaping @Sendable () -> Void) {
  DispatchQueue.concurrentPerform(iterations: 4) { _ in body() }
}
