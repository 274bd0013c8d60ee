import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// The ends of streams: by errors, by cancellation, and after a retry.
@Suite("The end of a stream", .timeLimit(.minutes(5)))
struct StreamEndTests {
  private let queue = DispatchQueue(label: "test.handlers")

  private func request(
    _ replies: FakeReply..., cancelsOnError: Bool = false, interceptor: (any RequestInterceptor)? = nil
  ) -> DataStreamRequest {
    let script = replies
    let fake = FakeTransport { _, index in script[min(index, script.count - 1)] }
    return Session.kept(fake: fake).streamRequest(
      "http://a.test/", automaticallyCancelOnStreamError: cancelsOnError, interceptor: interceptor)
  }

  @Test func whatAHandlerThrowsEndsTheRequest() async {
    let journal = DataJournal { stream in if stream.value != nil { throw TestError() } }
    let other = DataJournal()
    let request = request(.chunks(["a", "b", "c"])).responseStream(on: queue, stream: journal.note)
      .responseStream(on: queue, stream: other.note)
    let error = await journal.end().error
    guard case .responseSerializationFailed(.customSerializationFailed(let cause)) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause as? TestError == TestError())
    #expect(String(journal.kinds.values) == "sc")
    #expect(await other.end().error?.isResponseSerializationError == true)
    #expect(request.isCancelled)
  }

  @Test func anAFErrorIsKeptAndWhatACompletionThrowsIsLost() async {
    let journal = DataJournal { stream in
      throw stream.value != nil ? AFError.sessionDeinitialized : AFError.explicitlyCancelled
    }
    let request = request(.chunks(["a"])).responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error?.isSessionDeinitializedError == true)
    #expect(request.error?.isSessionDeinitializedError == true)
    #expect(journal.completions.count == 1)
  }

  @Test func aSerializersFailureEndsTheRequestIfThatIsWanted() async {
    let journal = StreamJournal<Point, AFError>()
    let request = request(.chunks([#"{"x":1}"#, #"{"y":2}"#, #"{"x":3}"#]), cancelsOnError: true)
    request.responseStreamDecodable(on: queue, stream: journal.note)
    #expect(await journal.end().error?.isExplicitlyCancelledError == true)
    #expect(journal.values.map(\.x) == [1])
    #expect(journal.results.count == 2)
    #expect(request.isCancelled)
  }

  @Test func tokensCancelFromAnyThreadAndAnyNumberOfTimes() async {
    let tokens = Recorder<DataStreamRequest.CancellationToken>()
    let journal = DataJournal { stream in
      tokens.add(stream.token)
      stream.cancel()
      onManyThreads { stream.token.cancel() }
    }
    let request = request(.chunks(["a", "b"])).responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error?.isExplicitlyCancelledError == true)
    #expect(String(journal.kinds.values) == "sc")
    for token in tokens.values { token.cancel() }
    #expect(request.isCancelled)
    #expect(journal.completions.count == 1)
  }

  @Test func cancellingBeforeTheStartSendsNothing() async {
    let fake = FakeTransport()
    let request = Session.kept(fake: fake, startRequestsImmediately: false).streamRequest("http://a.test/")
    let journal = DataJournal()
    request.responseStream(on: queue, stream: journal.note)
    request.cancel()
    #expect(await journal.end().error?.isExplicitlyCancelledError == true)
    #expect(fake.requests.isEmpty)
  }

  @Test func theHeadMayCancel() async throws {
    let server = try HTTPTestServer()
    let journal = DataJournal()
    Session.real().streamRequest(server.url("/bytes/100000"))
      .onHTTPResponse(on: queue) { _, decide in decide(.cancel) }
      .responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error?.isExplicitlyCancelledError == true)
    #expect(journal.values.isEmpty)
  }

  @Test func theHeadComesBeforeTheBody() async throws {
    let server = try HTTPTestServer()
    let order = Recorder<String>()
    let journal = DataJournal { stream in if stream.value != nil { order.add("chunk") } }
    let request = Session.real().streamRequest(server.url("/bytes/10"))
    request.onHTTPResponse(on: queue) { response, decide in
      order.add("head \(response.statusCode)")
      decide(.allow)
    }
    request.responseStream(on: queue, stream: journal.note)
    #expect(await journal.end().error == nil)
    #expect(order.values == ["head 200", "chunk"])
  }

  @Test func aRetryHandsOutTheNewResponseFromItsBeginning() async {
    let journal = DataJournal()
    let values = StreamJournal<Point, AFError>()
    let texts = StreamJournal<String, Never>()
    let euro = Array("€".utf8)
    let broken = FakeReply(
      chunks: [Data(#"{"x":1}{"x":"#.utf8) + Data(euro.prefix(1))],
      failure: TransportFailure(.connectionLost, "broken by the script"))
    let request = request(broken, .chunks([#"{"x":7}"#]), interceptor: SpyInterceptor(retries: 1))
    request.responseStream(on: queue, stream: journal.note)
      .responseStreamDecodable(on: queue, stream: values.note)
      .responseStreamString(on: queue, stream: texts.note)
    #expect(await values.end().error == nil)
    _ = await (journal.end(), texts.end())
    #expect(request.retryCount == 1)
    #expect(journal.values.count == 2)
    #expect(values.values.map(\.x) == [1, 7])
    #expect(values.results.count == 2, "what was left of the first response is no value")
    #expect(texts.values == [#"{"x":1}{"x":"#, #"{"x":7}"#])
  }

  @Test func aReleasedSessionEndsTheStream() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("a", .gate(gate)))
    let journal = DataJournal()
    var session: Session? = Session()
    session?.streamRequest(server.url("/")).responseStream(on: queue, stream: journal.note)
    await journal.results.wait(for: 1)
    await gate.waitUntilReached()
    session = nil
    #expect(await journal.end().error?.isSessionDeinitializedError == true)
  }

  @Test func handlersThatAreNeverStartedAreReleased() {
    weak var request: DataStreamRequest?
    let session = Session.kept(fake: FakeTransport(), startRequestsImmediately: false)
    do {
      let made = session.streamRequest("http://a.test/").responseStream { _ in }
      made.responseStreamDecodable(of: Point.self) { _ in }
      request = made
    }
    #expect(request == nil)
  }

  @Test func handlersOfAStreamThatHasEndedAreReleased() async {
    final class Token: Sendable {}
    nonisolated(unsafe) weak var token: Token?
    let request = Session.kept(fake: FakeTransport(.chunks(["a"]))).streamRequest("http://a.test/")
    let journal = DataJournal()
    do {
      let held = Token()
      token = held
      request.responseStream(on: queue) { stream in
        try journal.note(stream)
        withExtendedLifetime(held) {}
      }
    }
    _ = await journal.end()
    #expect(await eventually { token == nil })
    #expect(request.isFinished)
  }

  @Test func handlersAreNeverCalledOnTheEnginesThread() async throws {
    let server = try HTTPTestServer()
    struct Place: DataStreamSerializer {
      func serialize(_ data: Data) throws -> String { threadName() }
    }
    let names = Recorder<String>()
    let journal = StreamJournal<String, AFError> { stream in
      names.add(threadName())
      if let name = stream.value { names.add(name) }
    }
    Session.real().streamRequest(server.url("/bytes/100000"))
      .responseStream(using: Place(), on: .global(), stream: journal.note)
    _ = await journal.end()
    #expect(!names.values.contains("http-engine"))
    #expect(names.count > 2)
  }
}

/// Calls `body` from several threads at once, and waits for them.
private func onManyThreads(_ body: @escaping @Sendable () -> Void) {
  DispatchQueue.concurrentPerform(iterations: 4) { _ in body() }
}
