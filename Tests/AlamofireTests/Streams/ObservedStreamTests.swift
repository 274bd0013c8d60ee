import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Bodies that a monitor observes while a slow reader causes back-pressure.
@Suite("Observed bodies under back-pressure", .timeLimit(.minutes(5)))
struct ObservedStreamTests {
  private static let size = 20_000_000

  private let server: HTTPTestServer
  private let seen = PatternCheck()
  private let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "test.monitor"))
  private let hasEnded = Latch()

  init() throws {
    server = try HTTPTestServer(routes: .none)
    monitor.dataTaskDidReceiveData = { [seen] _, _, data in _ = seen.add(data) }
    monitor.taskDidComplete = { [hasEnded] _, _, _ in hasEnded.open() }
  }

  @Test("A full stream reports each chunk once") func fullStream() async throws {
    server.enqueue(.bytes(Self.size))
    let gate = DispatchSemaphore(value: 0)
    let check = PatternCheck()
    let recorder = DataRecorder { stream in
      if let data = stream.value, check.add(data) { gate.wait() }
    }
    let session = Session.real(eventMonitors: [monitor])
    let request = session.streamRequest(server.url("/"), shouldAutomaticallyResume: false)
    request.responseStream(on: DispatchQueue(label: "test.slow"), stream: recorder.note).resume()
    await recorder.results.wait(for: 1)
    #expect(await eventually { request.flow.isFull })
    gate.signal()
    #expect(try await recorder.end().error == nil)
    await hasEnded.wait()
    #expect(check.isRight(Self.size) && seen.isRight(Self.size))
  }

  @Test("A request with response chunks reports each chunk once") func responseChunks() async {
    server.enqueue(.bytes(Self.size))
    let gate = DispatchSemaphore(value: 0)
    let check = PatternCheck()
    let hasBegun = Latch()
    let request = Session.real(eventMonitors: [monitor]).request(server.url("/"))
      .responseChunks(on: DispatchQueue(label: "test.slow")) { data in
        guard check.add(data) else { return }
        hasBegun.open()
        gate.wait()
      }
    async let response = request.end()
    await hasBegun.wait()
    #expect(await eventually { request.core.chunks?.flow.isFull == true })
    gate.signal()
    #expect(await response.error == nil)
    await hasEnded.wait()
    #expect(check.isRight(Self.size) && seen.isRight(Self.size))
  }

  @Test("A full stream that is read by pull can be cancelled") func cancelFullStream() async {
    server.enqueue(.bytes(Self.size))
    let request = Session.real().streamRequest(server.url("/"), shouldAutomaticallyResume: false)
    let check = PatternCheck()
    var iterator = request.streamTask().streamingData().makeAsyncIterator()
    request.resume()
    if let data = await iterator.next()?.value { _ = check.add(data) }
    #expect(await eventually { request.flow.isFull })
    request.cancel()
    var completions: [DataStreamRequest.Completion] = []
    while let stream = await iterator.next() {
      if let data = stream.value { _ = check.add(data) }
      if let completion = stream.completion { completions.append(completion) }
    }
    #expect(completions.count == 1)
    #expect(completions.first?.error?.isExplicitlyCancelledError == true)
    #expect(check.isRight(check.count) && check.count < Self.size)
  }

  /// Cancels at the moment at which the loop waits for the next chunk.
  @Test("A stream can be cancelled during a read") func cancelDuringRead() async {
    let gate = Gate()
    server.enqueue(.parts("first", .gate(gate), "second"))
    let request = Session.real().streamRequest(server.url("/"))
    var iterator = request.streamTask().streamingData().makeAsyncIterator()
    #expect(await iterator.next()?.value == Data("first".utf8))
    await gate.waitUntilReached()
    let canceller = Task { _ = request.cancel() }
    let next = await iterator.next()
    #expect(next?.completion?.error?.isExplicitlyCancelledError == true)
    let last = await iterator.next()
    #expect(last == nil)
    await canceller.value
  }
}
