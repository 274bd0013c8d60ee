import AlamofireV4
import Dispatch
import Foundation
import HTTPTestServer
import Testing

@Suite("Handlers", .timeLimit(.minutes(5))) struct HandlerTests {
  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  @Test("All five handlers are called in order on the main queue") func order() async {
    server.enqueue(.json(#"{"a": 1}"#))
    let notes = Notes<String>()
    func note(_ name: String, _ isSuccess: Bool) {
      notes.add("\(name) \(isSuccess) \(isOnMainQueue)")
    }
    let request = manager.request(server.url("/"))
    request.responseData { note("data", $0.result.isSuccess) }
      .responseString { note("string", $0.value == #"{"a": 1}"#) }
      .responseJSON { note("json", ($0.value as? [String: Int]) == ["a": 1]) }
      .responsePropertyList { note("plist", $0.result.isFailure) }
    let plain = await request.ended()
    #expect(notes.all == ["data true true", "string true true", "json true true", "plist true true"])
    #expect(plain.data == Data(#"{"a": 1}"#.utf8) && plain.metrics != nil)
  }

  @Test("A handler does not wait for later serializers") func laterSerializers() async {
    let isServed = DispatchSemaphore(value: 0)
    let slow = DataResponseSerializer<Bool> { _, _, _, _ in
      // The first handler is called although this serializer has not ended.
      .success(isServed.wait(timeout: .now() + 120) == .success)
    }
    let request = manager.request(server.url("/get"))
    request.responseData(queue: .global()) { _ in isServed.signal() }
    let response = await awaited { done in
      request.response(responseSerializer: slow) { done(UncheckedBox(value: $0)) }
    }
    #expect(response.value == true)
  }

  @Test("A handler that is added after the end sends no request") func lateHandler() async {
    let request = manager.request(server.url("/get"))
    let first = await request.ended()
    let second = await request.text()
    #expect(first.data == second.data && second.result.isSuccess && server.requestCount == 1)
  }

  @Test("Handlers are called on their queues") func queues() async {
    let key = DispatchSpecificKey<String>()
    let queue = DispatchQueue(label: "mine")
    queue.setSpecific(key: key, value: "mine")
    let name = await awaited { done in
      manager.request(server.url("/get")).responseJSON(queue: queue) { _ in
        done(UncheckedBox(value: DispatchQueue.getSpecific(key: key)))
      }
    }
    #expect(name == "mine")
  }

  @Test("An empty body is accepted as data and text") func emptyBody() async {
    server.enqueue(.ok)
    let request = manager.request(server.url("/"))
    let text = await request.text()
    let json = await request.json()
    #expect(text.value == "" && text.data == Data())
    guard case .responseSerializationFailed(.inputDataNilOrZeroLength)? = json.error as? AFError else {
      Issue.record("\(json)")
      return
    }
  }

  @Test("Status 204 has the empty value") func status204() async {
    server.enqueue(.status(204))
    #expect(await manager.request(server.url("/")).json().value is NSNull)
  }

  @Test(
    "JSON is decoded with the options of the caller, by default also without a collection",
    arguments: [nil, .allowFragments, []] as [JSONSerialization.ReadingOptions?])
  func jsonOptions(options: JSONSerialization.ReadingOptions?) async {
    server.enqueue(.json("7"), .json("7"))
    let body: DataResponse<Any> = await awaited { done in
      let request = manager.request(server.url("/"))
      if let options {
        request.responseJSON(options: options) { done(UncheckedBox(value: $0)) }
      } else {
        request.responseJSON { done(UncheckedBox(value: $0)) }
      }
    }
    let file: DownloadResponse<Any> = await awaited { done in
      let request = manager.download(server.url("/"))
      if let options {
        request.responseJSON(options: options) { done(UncheckedBox(value: $0)) }
      } else {
        request.responseJSON { done(UncheckedBox(value: $0)) }
      }
    }
    if let url = file.temporaryURL { try? FileManager.default.removeItem(at: url) }
    #expect(body.value as? Int == (options == [] ? nil : 7))
    #expect(file.value as? Int == (options == [] ? nil : 7))
  }

  @Test("Property lists are decoded") func propertyLists() async throws {
    let body = try PropertyListSerialization.data(fromPropertyList: ["a": 1], format: .xml, options: 0)
    server.enqueue(.data(Array(body)))
    let response = await awaited { done in
      manager.request(server.url("/")).responsePropertyList { done(UncheckedBox(value: $0)) }
    }
    #expect((response.value as? [String: Int]) == ["a": 1])
  }

  @Test("Failures of the network are URLErrors") func networkFailures() async {
    server.enqueue(.closeBeforeReply, .closeBeforeReply)
    let response = await manager.request(server.url("/"), method: .post).json()
    #expect(response.error is URLError)
    #expect(response.data == Data())
  }

  @Test("A serializer of the user receives the error, and its result is delivered") func ownSerializer() async
  {
    struct Own: Error { let inner: any Error }
    server.enqueue(.closeBeforeReply, .closeBeforeReply)
    let own = DataResponseSerializer<Int> { _, _, _, error in
      error.map { .failure(Own(inner: $0)) } ?? .success(1)
    }
    let response = await awaited { done in
      manager.request(server.url("/"), method: .post).response(responseSerializer: own) {
        done(UncheckedBox(value: $0))
      }
    }
    #expect((response.error as? Own)?.inner is URLError)
  }

  @Test("The dates of the timeline are in order") func timeline() async {
    let before = Date().timeIntervalSinceReferenceDate
    let timeline = await manager.request(server.url("/get")).json().timeline
    let after = Date().timeIntervalSinceReferenceDate
    let times = [
      before, timeline.requestStartTime, timeline.initialResponseTime, timeline.requestCompletedTime,
      timeline.serializationCompletedTime, after,
    ]
    #expect(times == times.sorted())
    #expect(timeline.latency > 0 && timeline.totalDuration >= timeline.requestDuration)
  }

  @Test("Streamed data is delivered before the handlers, which receive none") func streamedData() async {
    let pieces = Notes<Data>()
    let gate = Gate()
    server.enqueue(.bytes(100_000).held(by: gate))
    let request = manager.request(server.url("/")).stream { pieces.add($0) }
    gate.open()
    let response = await request.ended()
    #expect(response.data == nil && response.error == nil)
    #expect(Array(pieces.all.joined()) == Reply.patternBytes(100_000))
  }

  @Test("Streamed data is delivered to every closure") func streamClosures() async {
    let (first, second) = (Notes<Int>(), Notes<Int>())
    manager.startRequestsImmediately = false
    let request = manager.request(server.url("/bytes/1000")).stream { first.add($0.count) }
      .stream { second.add($0.count) }
    request.resume()
    _ = await request.ended()
    #expect(first.all.reduce(0, +) == 1000 && first.all == second.all)
  }

  @Test("A stream closure that is added after the last byte is called before later handlers")
  func lateStreamClosure() async {
    server.enqueue(.bytes(100_000))
    let request = manager.request(server.url("/"))
    #expect(await request.ended().data?.count == 100_000)
    let pieces = Notes<Data>()
    let response = await request.stream { pieces.add($0) }.ended()
    #expect(response.data == nil && response.error == nil && response.response?.statusCode == 200)
    #expect(Array(pieces.all.joined()) == Reply.patternBytes(100_000))
  }

  @Test("A stream closure that is added during the transfer receives all bytes")
  func streamClosureDuringTransfer() async {
    let gate = Gate()
    server.enqueue(.parts(.pattern(65_521), .gate(gate), .pattern(65_521)))
    let pieces = Notes<Data>()
    let request = manager.request(server.url("/"))
    await withCheckedContinuation { began in
      let isFirst = Notes<Bool>()
      request.downloadProgress(queue: DispatchQueue(label: "test.progress")) { _ in
        isFirst.add(true)
        if isFirst.count == 1 { began.resume() }
      }
    }
    request.stream { pieces.add($0) }
    gate.open()
    #expect(await request.ended().error == nil)
    #expect(Array(pieces.all.joined()) == Reply.patternBytes(65_521) + Reply.patternBytes(65_521))
  }

  @Test("Parts of two bodies are never concatenated") func retriedStream() async {
    let retrier = ScriptedRetrier { _, _ in (true, 0) }
    manager.retrier = retrier
    // The first failure is retried because none of its bytes was delivered. The second is not, because a part was.
    server.enqueue(
      Reply(status: 500, body: .bytes(Array("sorry".utf8))),
      .bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)), .bytes(200_000))
    let pieces = Notes<Data>()
    let request = manager.request(server.url("/")).validate().stream { pieces.add($0) }
    let response = await request.ended()
    #expect((response.error as? URLError)?.code == .networkConnectionLost)
    #expect(request.retryCount == 1 && retrier.calls.count == 1 && server.recordedRequests.count == 2)
    let all = Array(pieces.all.joined())
    #expect(!all.isEmpty && all == Reply.patternBytes(all.count))
  }

  /// Runs in a separate process, so that no other test changes the peak of memory.
  @Test("Streamed bodies are not collected in memory") func memory() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer()
      let manager = SessionManager.isolated()
      manager.startRequestsImmediately = false
      func used(by body: Int) async throws -> Int {
        server.enqueue(.bytes(body))
        let counts = Notes<Int>()
        let before = try peakOfMemory()
        let request = manager.request(server.url("/")).validate().stream { counts.add($0.count) }
        request.resume()
        let response = await request.ended()
        #expect(response.error == nil && counts.all.reduce(0, +) == body)
        return try peakOfMemory() - before
      }
      _ = try await used(by: 1_000_000)
      let more = try await used(by: 128_000_000)
      #if !ADDRESS_SANITIZER  // It delays the reuse of freed memory.
        #expect(more < 32_000, "\(more) KiB more were needed")
      #endif
    }
  }

  @Test("Progress is reported to the last closure only") func lastProgressClosure() async {
    manager.startRequestsImmediately = false
    let notes = Notes<String>()
    // Progress is reported on a serial queue, so that all calls are complete before `notes` is read.
    let queue = DispatchQueue(label: "progress")
    func note(_ text: String) -> Request.ProgressHandler { { _ in notes.add(text) } }
    let data = manager.request(server.url("/bytes/2000"))
      .downloadProgress(queue: queue, closure: note("a")).downloadProgress(
        queue: queue, closure: note("data"))
    let download = manager.download(server.url("/bytes/2000"))
      .downloadProgress(queue: queue, closure: note("a")).downloadProgress(
        queue: queue, closure: note("download"))
    let upload = manager.upload(Data(repeating: 1, count: 2000), to: server.url("/post"))
      .uploadProgress(queue: queue, closure: note("a")).uploadProgress(queue: queue, closure: note("up"))
      .downloadProgress(queue: queue, closure: note("a")).downloadProgress(
        queue: queue, closure: note("down"))
    for request in [data, download, upload] as [Request] { request.resume() }
    _ = await (data.ended(), download.endedWithoutFile(), upload.ended())
    queue.sync {}
    #expect(Set(notes.all) == ["data", "download", "up", "down"])
    // After the last byte, the queue is suspended until the second closure is added.
    let gate = DispatchSemaphore(value: 0)
    queue.async { gate.wait() }
    data.downloadProgress(queue: queue, closure: note("b")).downloadProgress(
      queue: queue, closure: note("late"))
    gate.signal()
    queue.sync {}
    #expect(notes.all.last == "late" && !notes.all.contains("b"))
  }

  @Test("Progress is reported at least once") func progress() async throws {
    let notes = Notes<Double>()
    let request = manager.request(server.url("/bytes/2000"))
    _ = await request.ended()
    // Added after the last byte.
    await withCheckedContinuation { continuation in
      request.downloadProgress { progress in
        notes.add(progress.fractionCompleted)
        continuation.resume()
      }
    }
    #expect(notes.all == [1] && request.progress.completedUnitCount == 2000)
    let download = manager.download(server.url("/bytes/2000"))
    _ = await download.endedWithoutFile()
    try #require(download.progress.completedUnitCount == 2000)
    await withCheckedContinuation { continuation in
      download.downloadProgress { progress in
        notes.add(progress.fractionCompleted)
        continuation.resume()
      }
    }
    #expect(notes.all == [1, 1])
  }
}
