import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Data tasks", .timeLimit(.minutes(5)))
struct DataTaskTests {
  struct Item: Decodable, Sendable, Equatable { let id: Int }

  final class CountingDecoder: DataDecoder {
    let count = Recorder<Void>()
    func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
      count.add(())
      return try JSONDecoder().decode(type, from: data)
    }
  }

  @Test("Value, result and response agree") func agreement() async throws {
    let task = Session.retained(fake: FakeTransport(.json(#"{"id": 3}"#))).request("http://a.test/")
      .serializingDecodable(Item.self)
    #expect(try await task.value == Item(id: 3))
    #expect(await task.result.success == Item(id: 3))
    let response = await task.response
    #expect(response.value == Item(id: 3))
    #expect(response.data == Data(#"{"id": 3}"#.utf8))
    #expect(response.response?.statusCode == 200)
    #expect(response.request?.url?.absoluteString == "http://a.test/")
    #expect(response.serializationDuration > 0)
  }

  @Test("A failure is thrown as an AFError") func failure() async {
    let task = Session.retained(fake: FakeTransport(.status(404))).request("http://a.test/").validate()
      .serializingData()
    await #expect(throws: AFError.self) { try await task.value }
    #expect(await task.response.error?.responseCode == 404)
  }

  @Test("The value is created once for all awaiting tasks") func sharedValue() async throws {
    let gate = Latch()
    let fake = FakeTransport(.json(#"{"id": 3}"#).held(by: gate))
    let decoder = CountingDecoder()
    let task = Session.retained(fake: fake).request("http://a.test/").serializingDecodable(
      Item.self, decoder: decoder)
    try await withThrowingTaskGroup(of: Item.self) { group in
      for _ in 0..<50 { group.addTask { try await task.value } }
      gate.open()
      for try await item in group { #expect(item == Item(id: 3)) }
    }
    #expect(try await task.value == Item(id: 3))
    #expect(decoder.count.count == 1)
    #expect(fake.requests.count == 1)
  }

  @Test("A task that is not awaited runs") func unawaitedTask() async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/get"))
    _ = request.serializingString()
    _ = try await server.takeRequest()
    await request.finished()
    #expect(request.isFinished)
    #expect(request.response?.statusCode == 200)
  }

  @Test("Cancelling the awaiting task cancels the request") func cancelAwaitingTask() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall)
    let request = Session.real().request(server.url("/"))
    let task = request.serializingData()
    let awaiting = Task { await task.result }
    _ = try await server.takeRequest()
    awaiting.cancel()
    #expect(await awaiting.value.failure?.isExplicitlyCancelledError == true)
    #expect(request.isCancelled)
  }

  /// The properties of a download's task that a program can await.
  enum Awaited: CaseIterable { case value, result, response }

  @Test("A cancelled task cancels the download that it awaits", arguments: Awaited.allCases, [true, false])
  func cancelledDownload(awaited: Awaited, automatically: Bool) async {
    let (reached, gate) = (Latch(), Latch())
    let fake = FakeTransport(.text("late").held(by: gate, reached: reached))
    let request = Session.retained(fake: fake).download("http://a.test/")
    let task = request.serializingDownloadedFileURL(automaticallyCancelling: automatically)
    let awaiting = Task { () -> URL? in
      switch awaited {
      case .value: try? await task.value
      case .result: await task.result.success
      case .response: await task.response.value
      }
    }
    await reached.wait()
    awaiting.cancel()
    #expect(request.isCancelled == automatically)
    gate.open()
    let file = await awaiting.value
    #expect((file == nil) == automatically)
    await task.response.removeFile()
  }

  @Test("Automatic cancellation can be disabled") func noAutomaticCancellation() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("late").held(by: gate))
    let request = Session.real().request(server.url("/"))
    let task = request.serializingString(automaticallyCancelling: false)
    let awaiting = Task { [try await task.value, try await task.result.get()] }
    await gate.waitUntilReached()
    awaiting.cancel()
    #expect(!request.isCancelled)
    gate.open()
    #expect(try await awaiting.value == ["late", "late"])
    #expect(request.isFinished)
  }

  @Test("A task that is cancelled already does not wait") func cancelledTask() async {
    let fake = FakeTransport { _, _ in .ok.held(by: Latch()) }
    let session = Session.retained(fake: fake)
    let awaiting = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await session.request("http://a.test/").serializingData().response
    }
    #expect(await awaiting.value.error?.isExplicitlyCancelledError == true)
  }

  @Test("The task cancels, suspends and resumes the request") func control() async {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    let request = session.request("http://a.test/")
    let task = request.serializingString()
    #expect(request.isInitialized)
    task.suspend()
    #expect(request.isSuspended)
    task.resume()
    #expect(await task.result.success == "ok")
    let other = session.request("http://a.test/")
    let cancelled = other.serializingString()
    cancelled.cancel()
    #expect(await cancelled.result.failure?.isExplicitlyCancelledError == true)
    #expect(other.isCancelled)
  }

  @Test("Tasks of one request are independent") func independentTasks() async throws {
    let request = Session.retained(fake: FakeTransport(.json(#"{"id": 3}"#))).request("http://a.test/")
    let decoded = request.serializingDecodable(Item.self)
    let text = request.serializingString()
    let wrong = request.serializingDecodable([Int].self)
    #expect(try await text.value == #"{"id": 3}"#)
    #expect(try await decoded.value == Item(id: 3))
    #expect(await wrong.result.failure?.isResponseSerializationError == true)
  }

  @Test("Concurrent requests are awaited") func concurrentRequests() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for size in 1...200 {
        group.addTask {
          try await session.request(server.url("/bytes/\(size)")).serializingData().value.count
        }
      }
      var sizes: Set<Int> = []
      for try await size in group { sizes.insert(size) }
      #expect(sizes == Set(1...200))
    }
    #expect(session.core.activeCount == 0)
    #expect(server.connectionCount <= 6)
  }
}
