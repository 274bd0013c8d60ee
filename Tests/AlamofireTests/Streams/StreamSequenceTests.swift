import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Streams that are read with `for await`.
@Suite("Streams as sequences", .timeLimit(.minutes(5)))
struct StreamSequenceTests {
  private func request(
    _ replies: FakeReply..., cancelsOnError: Bool = false
  ) -> DataStreamRequest {
    let script = replies
    let fake = FakeTransport { _, index in script[min(index, script.count - 1)] }
    return Session.retained(fake: fake).streamRequest(
      "http://a.test/", automaticallyCancelOnStreamError: cancelsOnError)
  }

  @Test("A loop receives data, then the completion, then ends") func order() async {
    var text = ""
    var kinds = ""
    for await stream in request(.chunks(["a", "b", "c"])).streamTask().streamingData() {
      if let data = stream.value { text += String(decoding: data, as: UTF8.self) }
      kinds += stream.completion == nil ? "s" : "c"
    }
    #expect(text == "abc")
    #expect(kinds == "sssc")
  }

  /// Reads one stream in several loops, which upstream's API permits. Each element is delivered once, and every loop
  /// ends.
  @Test("Loops share one stream") func sharedStream() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    for _ in 0..<10 {
      let stream = session.streamRequest(server.url("/bytes/1000000")).streamTask().streamingData()
      let totals = await withTaskGroup(of: (bytes: Int, ends: Int).self) { group in
        for _ in 0..<4 {
          group.addTask {
            var total = (bytes: 0, ends: 0)
            for await event in stream {
              total.bytes += event.value?.count ?? 0
              if event.completion != nil { total.ends += 1 }
            }
            return total
          }
        }
        return await group.reduce((0, 0)) { ($0.0 + $1.bytes, $0.1 + $1.ends) }
      }
      #expect(totals == (1_000_000, 1))
    }
  }

  /// A serial queue on which tasks run.
  private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "test.tasks")

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Returns when its tasks wait, each of which may have changed executors a few times before.
    func settle() { for _ in 0..<10 { queue.sync {} } }
  }

  /// A serializer that stops at the first chunk until the test lets it continue.
  private struct StoppingSerializer: DataStreamSerializer {
    let reached = Recorder<Bool>()
    let gate = DispatchSemaphore(value: 0)

    func serialize(_ data: Data) throws -> String {
      if data == Data("a".utf8) {
        reached.add(true)
        gate.wait()
      }
      return String(decoding: data, as: UTF8.self)
    }
  }

  @Test("A loop that finds another one decoding gets the next chunk when that is done") func awaitedDecoding()
    async
  {
    let request = Session.retained(fake: FakeTransport())
      .streamRequest("http://a.test/", shouldAutomaticallyResume: false)
    let serializer = StoppingSerializer()
    let stream = request.streamTask().streamingResponses(serializedUsing: serializer)
    let (chunks, texts) = (Recorder<Data>(), Recorder<String>())
    request.responseStream(on: .global()) { event in if let data = event.value { chunks.add(data) } }
    // The body is open, so that its end wakes no loop.
    for text in ["a", "b"] { _ = Array(text.utf8).withUnsafeBytes { request.flow.receive($0) } }
    // The loops are woken before the handler, which was added after them.
    await chunks.wait(for: 2)
    func read(on executor: QueueExecutor) -> Task<Void, Never> {
      Task(executorPreference: executor) {
        var iterator = stream.makeAsyncIterator()
        guard let text = await iterator.next()?.value else { return }
        texts.add(text)
        // Its release would end the other loop.
        await texts.wait(for: 2)
        withExtendedLifetime(iterator) {}
      }
    }
    let executors = (first: QueueExecutor(), second: QueueExecutor())
    let first = read(on: executors.first)
    await serializer.reached.wait(for: 1)
    let second = read(on: executors.second)
    executors.second.settle()
    serializer.gate.signal()
    #expect(await texts.wait(for: 2).sorted() == ["a", "b"])
    await first.value
    await second.value
    #expect(request.isCancelled, "a loop that has left its stream cancels the request")
    withExtendedLifetime(executors) {}
  }

  @Test("Texts and values are framed") func framing() async {
    let euro = Array("€".utf8)
    let reply = FakeReply(chunks: [Data([euro[0]]), Data([euro[1], euro[2]])])
    var texts: [String] = []
    for await stream in request(reply).streamTask().streamingStrings() {
      if let text = stream.value { texts.append(text) }
    }
    #expect(texts == ["€"])
    var points: [Int] = []
    let task = request(.chunks([#"{"x":1}{"#, #""x":2}"#])).streamTask()
    for await stream in task.streamingDecodables(Point.self) {
      if let point = stream.value { points.append(point.x) }
    }
    #expect(points == [1, 2])
  }

  @Test("A serializer of a user is called") func ownSerializer() async {
    struct Length: DataStreamSerializer {
      func serialize(_ data: Data) throws -> Int { data.count }
    }
    var lengths: [Int] = []
    let task = request(.chunks(["a", "bc"])).streamTask()
    for await stream in task.streamingResponses(serializedUsing: Length()) {
      if let length = stream.value { lengths.append(length) }
    }
    #expect(lengths == [1, 2])
  }

  @Test("A buffering policy drops elements", arguments: [true, false])
  func policies(isNewest: Bool) async throws {
    let request = request(.chunks((0..<100).map { "\($0)," }))
    let stream = request.streamTask().streamingStrings(
      bufferingPolicy: isNewest ? .bufferingNewest(3) : .bufferingOldest(3))
    let recorder = DataRecorder()
    request.responseStream(on: .global(), stream: recorder.note)
    _ = try await recorder.end()
    // All chunks were added to the buffer or dropped. The completion may still fit.
    var kinds = ""
    for await event in stream { kinds += event.completion == nil ? "s" : "c" }
    #expect(kinds.count { $0 == "s" } <= 3)
    #expect(!kinds.isEmpty)
  }

  @Test("A buffering policy drops bytes and values", arguments: [true, false])
  func otherPolicies(hasValues: Bool) async throws {
    let request = request(.chunks((0..<100).map { "\($0)\n" }))
    var count = 0
    if hasValues {
      let stream = request.streamTask().streamingDecodables(Int.self, bufferingPolicy: .bufferingOldest(3))
      await request.finished()
      for await event in stream { if event.value != nil { count += 1 } }
    } else {
      let stream = request.streamTask().streamingData(bufferingPolicy: .bufferingOldest(3))
      await request.finished()
      for await event in stream { if event.value != nil { count += 1 } }
    }
    #expect(count > 0 && count <= 3)
  }

  @Test("Leaving the loop cancels the request") func leave() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("first", .gate(gate), "second"))
    let request = Session.real().streamRequest(server.url("/"))
    for await _ in request.streamTask().streamingData() { break }
    #expect(request.isCancelled)
    #expect(request.error?.isExplicitlyCancelledError == true)
  }

  @Test("The request waits for a loop that has begun") func backPressure() async throws {
    for _ in 0..<50 {
      let request = request(.chunks(["a", "b"]))
      let other = DataRecorder()
      request.suspend()
      request.responseStream(on: .global(), stream: other.note)
      var iterator: StreamOf<DataStreamRequest.Stream<Data, Never>>.Iterator? =
        request.streamTask().streamingData().makeAsyncIterator()
      request.resume()
      _ = await iterator?.next()
      await other.results.wait(for: 2)
      #expect(other.completions.count == 0)
      iterator = nil
      #expect(request.isCancelled)
      #expect(try await other.end().error?.isExplicitlyCancelledError == true)
    }
  }

  @Test("A cancelled request does not wait for a loop") func cancelled() async throws {
    let request = request(.chunks(["a", "b", "c"]))
    let other = DataRecorder()
    request.suspend()
    request.responseStream(on: .global(), stream: other.note)
    var iterator = request.streamTask().streamingData().makeAsyncIterator()
    request.resume()
    _ = await iterator.next()
    await other.results.wait(for: 3)
    #expect(other.completions.count == 0)
    request.cancel()
    #expect(try await other.end().error?.isExplicitlyCancelledError == true)
    _ = await iterator.next()
  }

  @Test("A request that is cancelled during its transfer does not wait for a loop")
  func cancelledDuringTransfer() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    defer { gate.open() }
    server.enqueue(.parts("first", .gate(gate), "second"))
    let request = Session.real().streamRequest(server.url("/"), shouldAutomaticallyResume: false)
    let other = DataRecorder()
    request.responseStream(on: .global(), stream: other.note)
    var iterator = request.streamTask().streamingData(automaticallyCancelling: false).makeAsyncIterator()
    request.resume()
    _ = await iterator.next()
    request.cancel()
    #expect(try await other.end().error?.isExplicitlyCancelledError == true)
    _ = await iterator.next()
  }

  @Test("Leaving the loop can leave the request running") func leaveWithoutCancel() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("first", .gate(gate), "second"))
    let request = Session.real().streamRequest(server.url("/"), shouldAutomaticallyResume: false)
    let recorder = DataRecorder()
    request.responseStream(on: .global(), stream: recorder.note)
    let stream = request.streamTask().streamingData(automaticallyCancelling: false)
    // Resumed after both loops have begun.
    request.resume()
    for await _ in stream { break }
    gate.open()
    #expect(try await recorder.end().error == nil)
    #expect(recorder.text == "firstsecond")
  }

  @Test("Cancelling the task cancels the request") func cancelTask() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts("first", .gate(gate)))
    let request = Session.real().streamRequest(server.url("/"))
    let chunks = Recorder<Data>()
    let task = Task {
      for await stream in request.streamTask().streamingData() {
        if let data = stream.value { chunks.add(data) }
      }
    }
    await chunks.wait(for: 1)
    await gate.waitUntilReached()
    task.cancel()
    await task.value
    #expect(request.isCancelled)
  }

  @Test("A read in a cancelled task cancels the request, although the iterator is retained")
  func cancelledRead() async {
    let request = request(.chunks(["a"]))
    await Task {
      var iterator = request.streamTask().streamingData().makeAsyncIterator()
      withUnsafeCurrentTask { $0?.cancel() }
      let isOver = await iterator.next() == nil
      #expect(isOver && request.isCancelled)
      withExtendedLifetime(iterator) {}
    }.value
  }

  @Test("A stream that is released unread cancels the request") func unreadStream() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts(.gate(gate)))
    let request = Session.real().streamRequest(server.url("/"))
    do { _ = request.streamTask().streamingStrings() }
    #expect(request.isCancelled)
  }

  @Test("The task controls the request") func task() async {
    let request = request(.chunks(["a"]))
    let task = request.streamTask()
    task.suspend()
    #expect(request.isSuspended)
    var iterator = task.streamingData().makeAsyncIterator()
    task.resume()
    #expect(await iterator.next()?.value == Data("a".utf8))
    task.cancel()
    #expect(await iterator.next()?.completion?.error?.isExplicitlyCancelledError == true)
    let end = await iterator.next()
    guard case nil = end else {
      Issue.record("the completion is the last")
      return
    }
  }

  @Test("Loops read concurrently") func concurrentLoops() async {
    let request = request(.chunks((0..<1000).map { "\($0)," }))
    let streams = (0..<5).map { _ in request.streamTask().streamingStrings() }
    let texts = await withTaskGroup(of: String.self) { group in
      for stream in streams {
        group.addTask {
          var text = ""
          for await event in stream { text += event.value ?? "" }
          return text
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let expected = (0..<1000).map { "\($0)," }.joined()
    #expect(texts.allSatisfy { $0 == expected })
  }

  @Test("A failed serializer cancels the request if that is chosen") func serializerFailure() async {
    let request = request(.chunks([#"{"x":1}"#, #"{"y":1}"#, #"{"x":2}"#]), cancelsOnError: true)
    var kinds = ""
    var error: AFError?
    for await stream in request.streamTask().streamingDecodables(Point.self) {
      kinds += stream.value != nil ? "v" : stream.error != nil ? "e" : "c"
      error = stream.completion?.error
    }
    #expect(kinds == "vec")
    #expect(error?.isExplicitlyCancelledError == true)
  }

  @Test("Values after the failure that cancels are not delivered") func valuesAfterFailure() async {
    let request = request(.chunks([#"{"x":1}{"y":2}{"x":3}"#]), cancelsOnError: true)
    var kinds: [String] = []
    for await stream in request.streamTask().streamingDecodables(Point.self) {
      kinds.append(
        stream.value.map { "\($0.x)" } ?? (stream.completion == nil ? "failure" : "completion"))
    }
    #expect(kinds == ["1", "failure", "completion"])
  }

  @Test("A last document that is cut off is followed by the completion", arguments: [false, true])
  func failureOfLastDocument(isLate: Bool) async throws {
    let request = request(.chunks([#"{"x":1}{"x""#]), cancelsOnError: true)
    let stream = request.streamTask().streamingDecodables(Point.self)
    if isLate {
      let recorder = DataRecorder()
      request.responseStream(on: .global(), stream: recorder.note)
      _ = try await recorder.end()
    }
    var kinds: [String] = []
    for await element in stream {
      kinds.append(
        element.value.map { "\($0.x)" } ?? (element.completion == nil ? "failure" : "completion"))
    }
    #expect(kinds == ["1", "failure", "completion"])
  }

  @Test("A loop after the end receives the completion") func lateLoop() async {
    let request = request(.chunks(["a"]))
    for await _ in request.streamTask().streamingData() {}
    var kinds = ""
    for await stream in request.streamTask().streamingData() { kinds += stream.completion == nil ? "s" : "c" }
    #expect(kinds == "c")
    #expect(request.isFinished)
  }
}
