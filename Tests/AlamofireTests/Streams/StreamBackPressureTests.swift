import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// With a slow consumer the server has to wait, and memory is bounded.
@Suite("Back-pressure of streams", .timeLimit(.minutes(5)))
struct StreamBackPressureTests {
  /// Larger than the buffers of the sockets.
  private static let size = 40_000_000
  /// The high-water mark, and one chunk above it.
  private static let most = 1 << 20 + 1 << 17

  private let server: HTTPTestServer
  /// Reached when the server has sent all bytes.
  private let sent = Gate()
  private let request: DataStreamRequest

  init() throws {
    server = try HTTPTestServer()
    sent.open()
    server.enqueue(.parts(.pattern(Self.size), .gate(sent)))
    // Resumed after all readers of a test are added, because a later one would miss the beginning.
    request = Session.real().streamRequest(server.url("/"), shouldAutomaticallyResume: false)
  }

  /// Waits until the server has to wait, and checks that it sends no more bytes.
  private func expectServerWaits() async {
    #expect(await eventually { request.flow.isFull })
    #expect(request.flow.heldBytes <= Self.most)
    #expect(sent.reachedCount == 0)
  }

  @Test("A handler that blocks stops the server") func blockingHandler() async throws {
    let gate = DispatchSemaphore(value: 0)
    let check = PatternCheck()
    let recorder = DataRecorder { stream in
      if let data = stream.value, check.add(data) { gate.wait() }
    }
    request.responseStream(on: DispatchQueue(label: "test.slow"), stream: recorder.note).resume()
    await recorder.results.wait(for: 1)
    await expectServerWaits()
    gate.signal()
    #expect(try await recorder.end().error == nil)
    #expect(check.isRight(Self.size))
  }

  @Test("The slowest handler determines the speed") func slowestHandler() async throws {
    let gate = DispatchSemaphore(value: 0)
    let slow = PatternCheck()
    let slowRecorder = DataRecorder { stream in
      if let data = stream.value, slow.add(data) { gate.wait() }
    }
    let fast = PatternCheck()
    let fastRecorder = DataRecorder { stream in if let data = stream.value { _ = fast.add(data) } }
    request.responseStream(on: DispatchQueue(label: "test.fast"), stream: fastRecorder.note)
      .responseStream(on: DispatchQueue(label: "test.slow"), stream: slowRecorder.note).resume()
    await slowRecorder.results.wait(for: 1)
    await expectServerWaits()
    gate.signal()
    _ = try await (slowRecorder.end(), fastRecorder.end())
    #expect(slow.isRight(Self.size) && fast.isRight(Self.size))
  }

  @Test("A slow loop stops the server") func slowLoop() async {
    let check = PatternCheck()
    var iterator = request.streamTask().streamingData().makeAsyncIterator()
    request.resume()
    if let data = await iterator.next()?.value { _ = check.add(data) }
    await expectServerWaits()
    var completion: DataStreamRequest.Completion?
    while let stream = await iterator.next() {
      if let data = stream.value { _ = check.add(data) }
      completion = stream.completion
    }
    #expect(completion?.response?.statusCode == 200 && completion?.error == nil)
    #expect(check.isRight(Self.size))
  }

  @Test("An InputStream that is not read stops the server") func unreadInputStream() async throws {
    let stream = try #require(request.asInputStream())
    request.resume()
    await expectServerWaits()
    let check = PatternCheck()
    stream.open()
    await onAThread(stream) { stream in
      while let data = stream.bytes(100_000) { _ = check.add(data) }
    }
    #expect(check.isRight(Self.size))
  }

  @Test("A stream that is not read yet causes no back-pressure") func unstartedStream() async {
    let unread = request.streamTask().streamingData()
    let read = request.streamTask().streamingData()
    request.resume()
    let check = PatternCheck()
    for await stream in read {
      if let data = stream.value { _ = check.add(data) }
    }
    #expect(check.isRight(Self.size))
    let late = PatternCheck()
    for await stream in unread { if let data = stream.value { _ = late.add(data) } }
    #expect(late.isRight(Self.size))
    #expect(request.flow.heldBytes == 0)
  }

  @Test("Cancelling ends the wait") func cancel() async throws {
    let gate = DispatchSemaphore(value: 0)
    let recorder = DataRecorder { stream in if stream.value != nil { gate.wait() } }
    request.responseStream(on: DispatchQueue(label: "test.slow"), stream: recorder.note).resume()
    await expectServerWaits()
    request.cancel()
    for _ in 0..<1000 { gate.signal() }
    #expect(try await recorder.end().error?.isExplicitlyCancelledError == true)
    #expect(request.flow.heldBytes == 0)
  }

  @Test("A suspended stream continues after resume") func suspend() async throws {
    let gate = DispatchSemaphore(value: 0)
    let check = PatternCheck()
    let recorder = DataRecorder { stream in
      if let data = stream.value, check.add(data) { gate.wait() }
    }
    request.responseStream(on: DispatchQueue(label: "test.slow"), stream: recorder.note).resume()
    await expectServerWaits()
    request.suspend()
    gate.signal()
    #expect(await eventually { request.flow.heldBytes == 0 })
    #expect(recorder.completions.count == 0)
    request.resume()
    #expect(try await recorder.end().error == nil)
    #expect(check.isRight(Self.size))
  }

  @Test("Without a handler no bytes are buffered") func noHandler() async throws {
    request.resume()
    await request.finished()
    #expect(request.isFinished)
    #expect(request.flow.heldBytes == 0)
    #expect(sent.reachedCount == 1)
    let recorder = DataRecorder()
    request.responseStream(on: .global(), stream: recorder.note)
    #expect(try await recorder.end().response?.statusCode == 200)
    #expect(recorder.values.isEmpty)
  }

  @Test("Small chunks are separate events") func smallChunks() async throws {
    let parts = (0..<1000).map { Reply.Part.bytes(Array("\($0)\n".utf8)) }
    server.enqueue(Reply(body: .parts(parts)))
    // The first reply belongs to another test.
    _ = Session.real().streamRequest(server.url("/")).resume()
    _ = try await server.takeRequest()
    let recorder = DataRecorder()
    Session.real().streamRequest(server.url("/")).responseStream(on: .global(), stream: recorder.note)
    #expect(try await recorder.end().error == nil)
    #expect(recorder.text == (0..<1000).map { "\($0)\n" }.joined())
  }
}
