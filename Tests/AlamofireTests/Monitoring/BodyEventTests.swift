import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Events of bodies", .timeLimit(.minutes(1))) struct BodyEventTests {
  private let spy = EventSpy()

  private func session(_ fake: FakeTransport) -> Session {
    Session.retained(fake: fake, observers: SessionObservers(eventMonitors: [spy]))
  }

  private func reply(_ status: Int, _ headers: [(String, String)], _ chunks: [String]) -> FakeReply {
    var reply = FakeReply.status(status, headers: headers)
    reply.chunks = chunks.map { Data($0.utf8) }
    return reply
  }

  /// Returns the events about the bytes of a download that continues after three bytes.
  private func continued(_ rest: FakeReply) async throws -> [String] {
    var broken = reply(200, [("ETag", "\"1\""), ("Content-Length", "10")], ["abc"])
    broken.failure = TransportFailure(.connectionLost, "The connection broke.")
    let session = session(FakeTransport(broken, rest))
    let first = session.download("http://a.test/")
    let data = try #require(await first.serializingData().response.resumeData)
    let before = spy.reported.count
    let second = session.download(resumingWith: data)
    let response = await second.serializingData().response
    response.removeFile()
    return spy.reported.dropFirst(before).filter { $0.contains("Offset") || $0.contains("Write") }
  }

  @Test("No chunks are copied for the monitors of the library") func ownMonitors() {
    let monitors: [any EventMonitor] = [
      AlamofireNotifications(), RequestLog { _ in }, WireLog { _ in }, RequestRecorder(),
    ]
    for monitor in monitors {
      #expect(!CompositeEventMonitor(monitors: [monitor]).hearsBodies, "\(type(of: monitor))")
    }
    #expect(CompositeEventMonitor(monitors: monitors + [spy]).hearsBodies)
  }

  @Test("Chunks are copied for monitors that may use them, and not for chunk readers") func copiedChunks() {
    let log = SessionObservers(eventMonitors: [RequestLog { _ in }])
    let request = Session.retained(fake: FakeTransport(), startRequestsImmediately: false, observers: log)
      .request("http://a.test/").responseChunks(on: .global()) { _ in }
    #expect(request.core.observers.contains([.task, .bodies]))
    #expect(!request.core.observers.contains(.chunks))
    request.transferMonitor(spy)
    #expect(request.core.observers.contains([.task, .bodies, .chunks]))
    let observed = SessionObservers(eventMonitors: [spy]).observedEvents
    #expect(observed.contains([.task, .bodies, .chunks]))
  }

  /// A monitor that uses no chunks, and records those that it gets.
  private final class DeafMonitor: ChunklessMonitor {
    let queue = DispatchQueue(label: "deaf monitor")
    let chunks = Recorder<Data>()

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      chunks.add(data)
    }
  }

  @Test("A monitor that uses no chunks gets none, although another one does") func deafMonitor() async {
    let deaf = DeafMonitor()
    let session = Session.retained(
      fake: FakeTransport(.text("value")), observers: SessionObservers(eventMonitors: [deaf, spy]))
    _ = await session.request("http://a.test/").end()
    #expect(await eventually { spy.reported.contains { $0.hasPrefix("didReceive data") } })
    deaf.queue.sync {}
    #expect(deaf.chunks.count == 0)
  }

  @Test("A download that continues reports the offset, and then only the bytes that are written")
  func offset() async throws {
    let rest = reply(
      206, [("ETag", "\"1\""), ("Content-Range", "bytes 3-9/10"), ("Content-Length", "7")], ["def", "ghij"])
    #expect(
      try await continued(rest) == ["didResumeAtOffset 3 10", "didWriteData 3 6 10", "didWriteData 4 10 10"])
  }

  @Test("The length of a file is unknown without the length of its rest") func unknownLength() async throws {
    let rest = reply(206, [("ETag", "\"1\""), ("Content-Range", "bytes 3-9/10")], ["defghij"])
    #expect(try await continued(rest) == ["didResumeAtOffset 3 -1", "didWriteData 7 10 -1"])
  }

  @Test("A download that begins again reports no offset") func whole() async throws {
    let rest = reply(200, [("ETag", "\"2\""), ("Content-Length", "4")], ["1234"])
    #expect(try await continued(rest) == ["didWriteData 4 4 4"])
  }

  @Test("A part that the caller has asked for is no continuation") func ownRange() async throws {
    let part = reply(206, [("Content-Range", "bytes 3-9/10"), ("Content-Length", "7")], ["defghij"])
    let download = session(FakeTransport(part)).download("http://a.test/", headers: ["Range": "bytes=3-"])
    let response = await download.serializingData().response
    response.removeFile()
    #expect(
      spy.reported.filter { $0.contains("Offset") || $0.contains("Write") } == ["didWriteData 7 7 7"])
  }

  /// Records the values of streams.
  private final class StreamSpy: EventMonitor {
    let queue = DispatchQueue(label: "stream spy")
    let values = Recorder<String>()

    func request<Value: Sendable>(
      _ request: DataStreamRequest, didParseStream result: Result<Value, AFError>
    ) {
      switch result {
      case .success(let value): values.add("\(value)")
      case .failure(let error): values.add("\(error.isResponseSerializationError)")
      }
    }

    /// Returns the values of a response to a request that `read` reads to its end.
    func values(of text: String, _ read: (DataStreamRequest) async -> Void) async -> [String] {
      let session = Session.retained(
        fake: FakeTransport { _, _ in .text(text) }, observers: SessionObservers(eventMonitors: [self]))
      await read(session.streamRequest("http://a.test/"))
      queue.sync {}
      return values.values
    }
  }

  @Test("Each value of a stream is reported, and each failure") func streamValues() async {
    let monitor = StreamSpy()
    for text in ["1", "x", "3"] {
      let session = Session.retained(
        fake: FakeTransport(reply(200, [], [text])), observers: SessionObservers(eventMonitors: [monitor]))
      let ended = Latch()
      session.streamRequest("http://a.test/").responseStreamDecodable(of: Int.self, on: .global()) { stream in
        if stream.completion != nil { ended.open() }
      }
      await ended.wait()
      monitor.queue.sync {}
    }
    #expect(monitor.values.values == ["1", "true", "3"])
  }

  @Test("The texts of a stream are reported, and its bytes are not") func streamTexts() async {
    let texts = await StreamSpy().values(of: "text") { request in
      let ended = Latch()
      request.responseStreamString(on: .global()) { if $0.completion != nil { ended.open() } }
      await ended.wait()
    }
    #expect(texts == ["text"])
    let bytes = await StreamSpy().values(of: "text") { request in
      let ended = Latch()
      request.responseStream(on: .global()) { if $0.completion != nil { ended.open() } }
      await ended.wait()
    }
    #expect(bytes.isEmpty)
  }

  @Test("The values that a loop reads are reported like those of a handler") func loopValues() async {
    let numbers = await StreamSpy().values(of: "1") { request in
      for await _ in request.streamTask().streamingDecodables(Int.self) {}
    }
    #expect(numbers == ["1"])
    let failures = await StreamSpy().values(of: "x") { request in
      for await _ in request.streamTask().streamingDecodables(Int.self) {}
    }
    #expect(failures == ["true"])
    let texts = await StreamSpy().values(of: "text") { request in
      for await _ in request.streamTask().streamingStrings() {}
    }
    #expect(texts == ["text"])
    let bytes = await StreamSpy().values(of: "text") { request in
      for await _ in request.streamTask().streamingData() {}
    }
    #expect(bytes.isEmpty)
  }

  @Test("The bytes of an upload are reported by their differences") func uploads() async throws {
    let request = session(FakeTransport()).upload(Data(count: 20), to: "http://a.test/")
    _ = await request.end()
    #expect(spy.reported.filter { $0.hasPrefix("didSendBodyData") } == ["didSendBodyData 20"])
    let server = try HTTPTestServer()
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "uploads"))
    let counts = Recorder<(new: Int64, all: Int64, expected: Int64)>()
    monitor.taskDidSendBodyData = { _, _, new, all, expected in counts.add((new, all, expected)) }
    let large = Session.real(eventMonitors: [monitor]).upload(
      Data(count: 3_000_000), to: server.url("/upload-sink"))
    #expect(await large.end().error == nil)
    monitor.queue.sync {}
    #expect(counts.count > 1 && counts.values.map(\.new).reduce(0, +) == 3_000_000)
    #expect(counts.values.last?.all == 3_000_000)
    #expect(counts.values.allSatisfy { $0.expected == 3_000_000 })
  }
}
