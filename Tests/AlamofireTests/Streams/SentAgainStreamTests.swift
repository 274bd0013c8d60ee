import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// The readers of a stream request belong to the run to which they were added. A later run of the request has its own.
@Suite("Streams of requests that are sent again", .timeLimit(.minutes(1)))
struct SentAgainStreamTests {
  private let queue = DispatchQueue(label: "test.handlers")

  /// Reads a run to its end. A gate is opened when the reader is there, which would miss a run that was over before.
  private func end(of request: DataStreamRequest, afterOpening gate: Latch? = nil) async throws
    -> DataRecorder
  {
    let recorder = DataRecorder()
    request.responseStream(on: queue, stream: recorder.note)
    gate?.open()
    _ = try await recorder.end()
    return recorder
  }

  @Test("A loop that has not begun reads the response of its own run, and its outcome")
  func unreadLoop() async throws {
    let gate = Latch()
    let session = Session.retained(
      fake: FakeTransport(
        .chunks(["first"]), .chunks(["second"], failure: .connectionLost).held(by: gate)))
    let request = session.streamRequest("http://a.test/")
    let loop = request.streamTask().streamingData()
    _ = try await end(of: request)
    session.retryRequest(request, withDelay: nil)
    let second = try await end(of: request, afterOpening: gate)
    let recorder = DataRecorder()
    for await stream in loop { try? recorder.note(stream) }
    #expect(recorder.text == "first")
    #expect(recorder.completions.values.map { $0.error == nil && $0.response != nil } == [true])
    #expect(second.text == "second")
    #expect(second.completions.values.map { $0.error == nil } == [false])
  }

  @Test("Releasing a loop of an earlier run cancels nothing", arguments: [false, true])
  func releasedLoop(isLimited: Bool) async throws {
    let gate = Latch()
    let session = Session.retained(
      fake: FakeTransport(.chunks(["first"]), .chunks(["second"]).held(by: gate)))
    let request = session.streamRequest("http://a.test/")
    do {
      let loop = request.streamTask().streamingData(
        bufferingPolicy: isLimited ? .bufferingOldest(1) : .unbounded)
      _ = try await end(of: request)
      session.retryRequest(request, withDelay: nil)
      withExtendedLifetime(loop) {}
    }
    #expect(!request.isCancelled)
    #expect(try await end(of: request, afterOpening: gate).text == "second")
  }

  @Test("The token of an earlier run cancels nothing")
  func oldToken() async throws {
    let gate = Latch()
    let session = Session.retained(
      fake: FakeTransport(.chunks(["first"]), .chunks(["second"]).held(by: gate)))
    let request = session.streamRequest("http://a.test/")
    let tokens = Recorder<DataStreamRequest.CancellationToken>()
    let recorder = DataRecorder { tokens.add($0.token) }
    request.responseStream(on: queue, stream: recorder.note)
    _ = try await recorder.end()
    session.retryRequest(request, withDelay: nil)
    for token in tokens.values { token.cancel() }
    #expect(!request.isCancelled)
    #expect(try await end(of: request, afterOpening: gate).text == "second")
  }

  @Test("An InputStream that was not read gives the response of its own run")
  func unreadInputStream() async throws {
    let gate = Latch()
    let session = Session.retained(
      fake: FakeTransport(.chunks(["first"]), .chunks(["second"], failure: .connectionLost).held(by: gate)))
    let request = session.streamRequest("http://a.test/")
    let stream = try #require(request.asInputStream())
    _ = try await end(of: request)
    session.retryRequest(request, withDelay: nil)
    #expect(try await end(of: request, afterOpening: gate).text == "second")
    stream.open()
    #expect(await onAThread(stream) { $0.bytes(100) } == Data("first".utf8))
    #expect(stream.streamError == nil)
    #expect(!request.isCancelled)
  }

  @Test("A reader of an earlier run does not hold back a later one")
  func largeSecondResponse() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.text("first"), .bytes(3_000_000))
    let session = Session.real()
    let request = session.streamRequest(server.url("/"))
    let stream = try #require(request.asInputStream())
    _ = try await end(of: request)
    session.retryRequest(request, withDelay: nil)
    let second = try await end(of: request)
    #expect(second.completions.values.map { $0.error == nil } == [true])
    withExtendedLifetime(stream) {}
  }

  @Test("A cancellation during the delay of a retry keeps the failure of the stream")
  func cancelledDelay() async throws {
    let isCalled = Latch()
    let spy = SpyInterceptor(retry: { _, _, _ in
      isCalled.open()
      return .retryWithDelay(3600)
    })
    let request = Session.retained(fake: FakeTransport(.chunks(["part"], failure: .connectionLost)))
      .streamRequest("http://a.test/", interceptor: spy)
    let recorder = DataRecorder()
    request.responseStream(on: queue, stream: recorder.note)
    await isCalled.wait()
    request.cancel()
    let error = try await recorder.end().error
    #expect((error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(recorder.text == "part")
    #expect(request.isCancelled && request.retryCount == 0)
  }
}
