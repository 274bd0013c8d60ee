import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Handlers", .timeLimit(.minutes(5)))
struct HandlerTests {
  struct Item: Codable, Sendable, Equatable { let id: Int }

  @Test("Each handler has its own result, and handlers run in their order") func order() async {
    let gate = Latch()
    let fake = FakeTransport(.json(#"{"id": 7}"#).held(by: gate))
    let queue = DispatchQueue(label: "handlers")
    let recorder = Recorder<String>()
    let request = Session.retained(fake: fake).request("http://a.test/")
    request.responseDecodable(of: Item.self, queue: queue) { recorder.add("1 \($0.value?.id ?? -1)") }
    request.responseString(queue: queue) { recorder.add("2 \($0.value ?? "")") }
    request.responseDecodable(of: [Int].self, queue: queue) {
      recorder.add("3 \($0.error?.isResponseSerializationError == true)")
    }
    request.responseData(queue: queue) { recorder.add("4 \($0.value?.count ?? -1)") }
    request.response(queue: queue) { recorder.add("5 \($0.value??.count ?? -1)") }
    request.response(
      queue: queue, responseSerializer: SlowSerializer { recorder.add("serializing") }
    ) { recorder.add("6 \($0.value ?? "")") }
    gate.open()
    let values = await recorder.wait(for: 7)
    #expect(values == ["serializing", "1 7", #"2 {"id": 7}"#, "3 true", "4 9", "5 9", "6 slow"])
    #expect(fake.requests.count == 1)
  }

  struct SlowSerializer: ResponseSerializer {
    let note: @Sendable () -> Void
    func serialize(
      request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) throws -> String {
      if let error { throw error }
      note()
      return "slow"
    }
  }

  @Test("A loop that has ended leaves nothing in a request that goes on") func endedLoops() async throws {
    let (socket, _, _) = try await FakeSocketSession().connected()
    let gate = Latch()
    let request = Session.retained(fake: FakeTransport(.chunks(["text"]).held(by: gate)))
      .streamRequest("http://a.test/")
    let readers = (0..<100).map { _ in
      let events = WebSocketEvents<Int>(socket, WebSocketReading { _, _ in nil }, cancels: false)
      let chunks = PulledStream<Data, Never>(request, decoding: .data, cancels: false)
      events.finish()
      chunks.finish()
      return [WeakReader(of: events, "mailbox"), WeakReader(of: chunks, "reader")]
    }.joined()
    #expect(readers.count == 200 && readers.allSatisfy { $0.wasFound && $0.reader == nil })
    socket.cancel()
    gate.open()
  }

  private struct WeakReader {
    weak let reader: (any EventSink)?
    let wasFound: Bool

    init(of source: any StreamSource, _ name: String) {
      let found = Mirror(reflecting: source).descendant(name) as? any EventSink
      reader = found
      wasFound = found != nil
    }
  }

  @Test("The token of a loop that was left early cancels no later run") func leftLoop() async throws {
    let gate = Latch()
    let session = Session.retained(fake: FakeTransport(.chunks(["a"]), .chunks(["b"]).held(by: gate)))
    let request = session.streamRequest("http://a.test/")
    let data = DataRecorder()
    request.responseStream(on: .global(), stream: data.note)
    let loop = PulledStream<Data, Never>(request, decoding: .data, cancels: false)
    let token = DataStreamRequest.CancellationToken(
      request: request,
      runEnd: try #require(Mirror(reflecting: loop).descendant("reader") as? LoopReader).runEnd)
    loop.finish()
    _ = try await data.end()
    session.retryRequest(request, withDelay: nil)
    token.cancel()
    #expect(!request.isCancelled)
    gate.open()
  }

  @Test("Handlers run on their queues") func queues() async {
    let key = DispatchSpecificKey<String>()
    let one = DispatchQueue(label: "one")
    let two = DispatchQueue(label: "two")
    one.setSpecific(key: key, value: "one")
    two.setSpecific(key: key, value: "two")
    let names = Recorder<String?>()
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    request.responseString(queue: one) { _ in names.add(DispatchQueue.getSpecific(key: key)) }
    request.responseString(queue: two) { _ in names.add(DispatchQueue.getSpecific(key: key)) }
    #expect(Set(await names.wait(for: 2)) == ["one", "two"])
  }

  @Test("Serializers run on the session's serialization queue") func serializationQueue() async {
    let key = DispatchSpecificKey<Bool>()
    let queue = DispatchQueue(label: "serialization")
    queue.setSpecific(key: key, value: true)
    let isThere = Recorder<Bool?>()
    let session = Session.retained(fake: FakeTransport(), serializationQueue: queue)
    #expect(session.serializationQueue === queue)
    let request = session.request("http://a.test/")
    #expect(request.serializationQueue === queue)
    let serializer = SlowSerializer { isThere.add(DispatchQueue.getSpecific(key: key)) }
    request.response(queue: .global(), responseSerializer: serializer) { _ in }
    _ = await request.serializingResponse(using: serializer).response
    #expect(await isThere.wait(for: 2) == [true, true])
  }

  @Test("A late handler receives the stored data without another exchange") func lateHandler() async {
    let fake = FakeTransport(.json(#"{"id": 1}"#))
    let request = Session.retained(fake: fake).request("http://a.test/")
    _ = await request.end()
    #expect(request.isFinished)
    #expect(await request.serializingDecodable(Item.self).response.value == Item(id: 1))
    #expect(await request.end().value == Data(#"{"id": 1}"#.utf8))
    #expect(request.isFinished)
    #expect(fake.requests.count == 1)
  }

  /// The changes that have no effect on a request that has ended.
  enum LateChange: CaseIterable {
    case cancel, suspend, cancelAll, endOfSession

    func apply(to request: Request, of session: Session) async {
      switch self {
      case .cancel: request.cancel()
      case .suspend: request.suspend()
      case .cancelAll:
        await withCheckedContinuation { continuation in
          session.cancelAllRequests(completingOnQueue: .global()) { continuation.resume() }
        }
      case .endOfSession: session.session.invalidateAndCancel()
      }
    }
  }

  @Test("A request keeps its outcome while a late handler is served", arguments: LateChange.allCases)
  func lateChange(change: LateChange) async {
    let (reached, gate) = (Latch(), DispatchSemaphore(value: 0))
    // Blocks the queue, and no thread that others need.
    let queue = DispatchQueue(label: "serialization")
    let session = Session.retained(fake: FakeTransport(), serializationQueue: queue)
    let spy = EventSpy()
    let request = session.request("http://a.test/").eventMonitor(spy)
    #expect(await request.end().error == nil)
    let held = SlowSerializer {
      reached.open()
      _ = gate.wait(timeout: .now() + 60)
    }
    async let late = request.serializingResponse(using: held).response
    await reached.wait()
    #expect(request.core.servesLateHandlers && !request.core.refusesRetry)
    await change.apply(to: request, of: session)
    #expect(request.core.servesLateHandlers, "the change ends nothing but the wait for retriers")
    #expect(request.core.refusesRetry == (change != .suspend))
    gate.signal()
    #expect(await late.value == "slow")
    #expect(request.isFinished && request.error == nil)
    #expect(!request.core.servesLateHandlers && !request.core.refusesRetry)
    #expect(await request.end().value == Data("ok".utf8))
    #expect(!spy.reported.contains { $0.contains("Cancel") || $0.contains("Suspend") })
  }

  @Test("A task that was cancelled before gets the outcome of a finished request") func cancelledTask()
    async throws
  {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    #expect(await request.end().error == nil)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await request.serializingData().value
    }
    #expect(try await task.value == Data("ok".utf8))
    #expect(request.isFinished && request.error == nil)
    #expect(await request.end().value == Data("ok".utf8))
  }

  /// A handler that sends its upload again at the end of the run, and makes the body of the next attempt.
  private final class SendingAgain: ResponseSink {
    private let session: Session
    private let upload: UploadRequest

    init(_ upload: UploadRequest, of session: Session) { (self.upload, self.session) = (upload, session) }

    var runsUserCode: Bool { false }
    func serialize(_ outcome: RequestOutcome) -> AFError? { nil }
    func replaceFailure(with error: AFError, parsed: AFError?) {}
    func announce(to request: any RunOwner) {}

    func deliver() {
      session.retryRequest(upload, withDelay: nil)
      // The next run does this on another thread, before or after this one goes on.
      _ = upload.body.made()
    }
  }

  private struct NewFile: UploadableConvertible {
    let folder: TemporaryFolder

    func createUploadable() throws -> UploadRequest.Uploadable {
      .file(try folder.file(UUID().uuidString), shouldRemove: true)
    }
  }

  @Test("A run that has ended does not end the next run of its request") func nextRun() async throws {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(.text("one"), .text("two").held(by: gate, reached: reached))
    let session = Session.retained(fake: fake)
    let request = session.upload(
      NewFile(folder: try TemporaryFolder()), with: try URLRequest(url: "http://a.test/", method: .post), nil,
      nil, .default)
    request.core.add(SendingAgain(request, of: session), for: request)
    await reached.wait()
    async let end = request.end()
    #expect(await eventually { request.core.hasPendingSinks || request.isFinished })
    #expect(!request.isFinished && request.body.hasMadeFile && session.core.activeCount == 1)
    gate.open()
    #expect(await end.value == Data("two".utf8))
    #expect(request.isFinished && request.retryCount == 1 && session.core.activeCount == 0)
  }

  /// Work that holds up the loop's thread.
  private final class Obstacle: LoopWork {
    let reached = Latch()
    let gate = DispatchSemaphore(value: 0)

    func runOnLoop() {
      reached.open()
      gate.wait()
    }
  }

  @Test("A handler that is added at the end is called after the earlier ones") func handlerAtTheEnd()
    async throws
  {
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    let enqueue = try #require(session.core.runs.enqueue)
    let queue = DispatchQueue(label: "handlers")
    let recorder = Recorder<Int>()
    let (first, second) = (Obstacle(), Obstacle())
    defer { for obstacle in [first, second] { obstacle.gate.signal() } }
    enqueue(first)
    await first.reached.wait()
    // Ends in the next turn of the loop, whose handlers are called after the second obstacle.
    let request = session.request("").response(queue: queue) { _ in recorder.add(1) }
    enqueue(second)
    first.gate.signal()
    await second.reached.wait()
    #expect(request.isFinished)
    let hops = session.core.threadHopCount
    request.response(queue: queue) { _ in recorder.add(2) }
    #expect(await eventually { recorder.count > 0 || session.core.threadHopCount > hops })
    second.gate.signal()
    #expect(await recorder.wait(for: 2) == [1, 2])
  }

  /// A handler that takes its time on the thread of the run.
  private final class SlowSink: ResponseSink {
    let reached = Latch()
    let gate = DispatchSemaphore(value: 0)
    private let called: @Sendable () -> Void

    init(_ called: @escaping @Sendable () -> Void) { self.called = called }

    var runsUserCode: Bool { false }
    func serialize(_ outcome: RequestOutcome) -> AFError? { nil }
    func replaceFailure(with error: AFError, parsed: AFError?) {}
    func announce(to request: any RunOwner) {}

    func deliver() {
      reached.open()
      _ = gate.wait(timeout: .now() + 120)
      called()
    }
  }

  @Test("A handler that is added while earlier ones are called waits for them on every thread")
  func handlerDuringDelivery() async {
    // Runs continue on threads that no test waits for.
    let enqueue: @Sendable (any LoopWork) -> Void = { work in Thread.detachNewThread { work.runOnLoop() } }
    let session = Session(
      configuration: .uncached, engine: Engine(transport: FakeTransport(), enqueue: enqueue),
      observers: SessionObservers(eventMonitors: []))
    let recorder = Recorder<Int>()
    let sink = SlowSink { recorder.add(1) }
    defer { sink.gate.signal() }
    // Ends without a transfer, because it has no URL.
    let request = session.request("")
    request.core.add(sink, for: request)
    await sink.reached.wait()
    #expect(request.isFinished)
    request.response(queue: .global()) { _ in recorder.add(2) }
    #expect(!request.core.servesLateHandlers, "an earlier handler has yet to be called")
    #expect(request.isFinished)
    sink.gate.signal()
    #expect(await recorder.wait(for: 2) == [1, 2])
    withExtendedLifetime(session) {}
  }

  /// Work that adds other work to the turn of the loop in which it is performed.
  private final class Relay: LoopWork {
    private let next: @Sendable () -> Void

    init(_ next: @escaping @Sendable () -> Void) { self.next = next }

    func runOnLoop() { next() }
  }

  @Test(
    "A handler that is added while a run ends on the loop is served in the next turn of the loop",
    arguments: [false, true])
  func handlerDuringTurn(isAddedOnLoop: Bool) async throws {
    let session = Session.real(configuration: .isolated, eventMonitors: [])
    let enqueue = try #require(session.core.runs.enqueue)
    let queue = DispatchQueue(label: "handlers")
    let recorder = Recorder<Int>()
    let (first, last) = (Obstacle(), Obstacle())
    enqueue(first)
    await first.reached.wait()
    let request = session.request("").response(queue: queue) { _ in recorder.add(1) }
    @Sendable func addSecond() {
      // Served by a thread of the pool, which does not wait for the end of the turn.
      request.response(queue: queue, responseSerializer: SlowSerializer {}) { _ in recorder.add(2) }
    }
    let sink = SlowSink { if isAddedOnLoop { addSecond() } }
    defer { for gate in [first.gate, sink.gate, last.gate] { gate.signal() } }
    request.core.add(sink, for: request)
    // Holds up the turn in which the run ends, after all that the run has left for this turn.
    enqueue(Relay { enqueue(last) })
    first.gate.signal()
    await sink.reached.wait()
    let hops = session.core.threadHopCount
    if !isAddedOnLoop {
      addSecond()
      #expect(request.core.servesLateHandlers, "the turn of the loop is all that the handler waits for")
    }
    sink.gate.signal()
    #expect(
      await eventually {
        recorder.count > 0 || session.core.threadHopCount > hops && last.reached.isOpen
      })
    last.gate.signal()
    #expect(await recorder.wait(for: 2) == [1, 2])
  }

  @Test("Handlers of a cancelled request receive the cancellation") func cancellation() async {
    let fake = FakeTransport()
    let request = Session.retained(fake: fake).request("http://a.test/").cancel()
    for _ in 0..<3 {
      #expect(await request.end().error?.isExplicitlyCancelledError == true)
      #expect(request.isCancelled)
    }
    #expect(await request.serializingData().response.error?.isExplicitlyCancelledError == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("The response without a serializer has the properties of the request") func plainResponse() async {
    let empty = await Session.retained(fake: FakeTransport(.status(204))).request("http://a.test/").end()
    #expect(empty.error == nil)
    #expect(empty.data == nil)
    #expect(empty.value == .some(.none))
    #expect(empty.serializationDuration == 0)
    let failed = await Session.retained(fake: FakeTransport(.status(500, "x"))).request("http://a.test/")
      .validate().end()
    #expect(failed.data == Data("x".utf8))
    #expect(failed.error?.responseCode == 500)
  }

  @Test(
    "An empty body is accepted for statuses and methods that allow it",
    arguments: [(200, "GET", false), (204, "GET", true), (205, "POST", true), (200, "HEAD", true)])
  func empty(status: Int, method: String, isAllowed: Bool) async {
    let fake = FakeTransport { _, _ in .status(status) }
    let session = Session.retained(fake: fake)
    func request() -> DataRequest { session.request("http://a.test/", method: HTTPMethod(rawValue: method)) }
    #expect((await request().serializingData().response.value == Data()) == isAllowed)
    #expect((await request().serializingString().response.value == "") == isAllowed)
    #expect((await request().serializingDecodable(Empty.self).response.value == Empty.value) == isAllowed)
    let item = await request().serializingDecodable(Item.self).response.error
    guard case .responseSerializationFailed(let reason)? = item else {
      Issue.record("\(String(describing: item))")
      return
    }
    switch reason {
    case .invalidEmptyResponse: #expect(isAllowed)
    case .inputDataNilOrZeroLength: #expect(!isAllowed)
    default: Issue.record("\(reason)")
    }
  }

  @Test("Other statuses can be allowed to have an empty body") func emptyResponseCodes() async {
    let session = Session.retained(fake: FakeTransport { _, _ in .status(200) })
    #expect(
      await session.request("http://a.test/").serializingData(emptyResponseCodes: [200]).response.value
        == Data())
    #expect(
      await session.request("http://a.test/").serializingString(emptyRequestMethods: [.get]).response.value
        == "")
  }

  @Test("An error of a serializer is wrapped") func serializerError() async {
    struct Throwing: DataResponseSerializerProtocol {
      let error: any Error & Sendable
      func serialize(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
      ) throws -> Int { throw self.error }
    }
    let session = Session.retained(fake: FakeTransport())
    let wrapped = await session.request("http://a.test/").serializingResponse(
      using: Throwing(error: TestError())
    ).response
    guard case .responseSerializationFailed(.customSerializationFailed(let cause))? = wrapped.error else {
      Issue.record("\(String(describing: wrapped.error))")
      return
    }
    #expect(cause as? TestError == TestError())
    let kept = await session.request("http://a.test/")
      .serializingResponse(using: Throwing(error: AFError.sessionDeinitialized)).response
    #expect(kept.error?.isSessionDeinitializedError == true)
  }

  @Test("A serializer receives the error and can ignore it") func serializerWithError() async {
    struct Ignoring: DataResponseSerializerProtocol {
      func serialize(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
      ) throws -> String { "\(response?.statusCode ?? 0) \(error?.asAFError?.responseCode ?? 0)" }
    }
    let response = await Session.retained(fake: FakeTransport(.status(500))).request("http://a.test/")
      .validate()
      .serializingResponse(using: Ignoring()).response
    #expect(response.value == "500 500")
  }

  @Test("Text is decoded by the charset of the response") func charset() async {
    var reply = FakeReply.status(200, "", headers: [("Content-Type", "text/plain; charset=utf-16be")])
    reply.chunks = [Data([0, 0x41, 0, 0xE4])]
    #expect(
      await Session.retained(fake: FakeTransport(reply)).request("http://a.test/").serializingString()
        .response
        .value == "Aä")
  }

  @Test("The stages run in their order") func stages() async {
    let recorder = Recorder<String>()
    let spy = SpyInterceptor(recorder: recorder, retries: 1)
    let fake = FakeTransport { _, index in
      recorder.add("sent")
      return index == 0 ? .status(500, "x") : .status(200, "x")
    }
    struct Router: URLRequestConvertible {
      let recorder: Recorder<String>
      func asURLRequest() throws -> URLRequest {
        recorder.add("converted")
        return try URLRequest(url: "http://a.test/", method: .get)
      }
    }
    let request = Session.retained(fake: fake, interceptor: spy).request(Router(recorder: recorder))
      .validate { _, response, _ in
        recorder.add("validated")
        return response.statusCode == 200 ? .success(()) : .failure(TestError())
      }
    request.response(queue: .global(), responseSerializer: SlowSerializer { recorder.add("serialized") }) {
      _ in
      recorder.add("handled")
    }
    let attempt = ["converted", "spy adapts", "sent", "validated"]
    #expect(await recorder.wait(for: 11) == attempt + ["spy retries"] + attempt + ["serialized", "handled"])
  }
}
