import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The cancellation of event sources whose handlers have not received all events.
@Suite("Cancelled event sources", .timeLimit(.minutes(5))) struct EventSourceCancellationTests {
  private let queue = DispatchQueue(label: "test.handlers")

  private static let backlog: Reply = Reply(
    headers: [.contentType("text/event-stream")],
    body: .parts([.bytes(Array((1...3000).map { "data: \($0)\n\n" }.joined().utf8)), .gate(Gate())]))

  /// A handler that stops at its first event, until the test lets it continue.
  private final class SlowHandler: Sendable {
    let data = Recorder<String>()
    let ends = Recorder<AFError?>()
    let gate = DispatchSemaphore(value: 0)

    func handle(_ stream: DataStreamRequest.Stream<ServerSentEvent, AFError>) {
      switch stream.event {
      case .stream(let result):
        data.add((try? result.get())?.data ?? "")
        if data.count == 1 { gate.wait() }
      case .complete(let completion): ends.add(completion.error)
      }
    }
  }

  @Test("Cancelling drops the backlog, and the completion is next") func backlog() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.backlog)
    let request = Session.real().eventSourceRequest(server.url("/"))
    let (slow, other) = (SlowHandler(), SlowHandler())
    request.responseEvents(on: queue) { slow.handle($0) }
    request.responseEvents(on: DispatchQueue(label: "test.other")) { other.handle($0) }
    await slow.data.wait(for: 1)
    await other.data.wait(for: 1)
    request.cancel()
    slow.gate.signal()
    other.gate.signal()
    for handler in [slow, other] {
      #expect(await handler.ends.wait(for: 1).first??.isExplicitlyCancelledError == true)
      queue.sync {}
      #expect(handler.data.values == ["1"] && handler.ends.count == 1)
    }
    #expect(request.isCancelled)
  }

  @Test("An InputStream gives no events after a cancellation") func inputStream() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.backlog)
    let request = Session.real(startRequestsImmediately: false).eventSourceRequest(server.url("/"))
    let handled = Recorder<String>()
    request.responseEvents(on: queue) { stream in
      if let event = stream.value { handled.add(event.data) }
    }
    let stream = try #require(request.asInputStream())
    stream.open()
    await handled.wait(for: 1)
    request.cancel()
    #expect(await onAThread(stream) { $0.bytes(100) } == nil)
    #expect(stream.streamStatus == .error)
    #expect(stream.streamError?.asAFError?.isExplicitlyCancelledError == true)
  }

  @Test("Cancelling within a handler ends its events, also by the token", arguments: [false, true])
  func withinHandler(byToken: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.backlog)
    #expect(await eventsUntilCancelled(after: 3, byToken: byToken, server) == ["1", "2", "3"])
  }

  /// Returns the data of a request that a handler cancels after a number of events.
  private func eventsUntilCancelled(
    after count: Int, byToken: Bool = false, _ server: HTTPTestServer
  ) async -> [String] {
    let request = Session.real().eventSourceRequest(server.url("/"))
    let (data, ends) = (Recorder<String>(), Recorder<AFError?>())
    request.responseEvents(on: queue) { stream in
      switch stream.event {
      case .stream(let result):
        data.add((try? result.get())?.data ?? "")
        if data.count == count { if byToken { stream.cancel() } else { request.cancel() } }
      case .complete(let completion): ends.add(completion.error)
      }
    }
    #expect(await ends.wait(for: 1).first??.isExplicitlyCancelledError == true)
    queue.sync {}
    #expect(ends.count == 1)
    return data.values
  }

  @Test("Cancelling drops the backlog of a later connection, too") func laterConnection() async throws {
    let server = try HTTPTestServer(routes: .none)
    let first = Reply(
      headers: [.contentType("text/event-stream")], body: .bytes(Array("retry: 1\ndata: 0\n\n".utf8)))
    server.enqueue(first, Self.backlog)
    #expect(await eventsUntilCancelled(after: 3, server) == ["0", "1", "2"])
  }

  @Test("Cancelling ends a loop at once, although events are there") func loop() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.backlog)
    let request = Session.real().eventSourceRequest(server.url("/"))
    var data: [String] = []
    for try await event in request.events() {
      data.append(event.data)
      if data.count == 2 { request.cancel() }
    }
    #expect(data == ["1", "2"])
  }

  @Test("Cancelling after the end drops no event that a loop has not read") func afterEnd() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply(headers: [.contentType("text/event-stream")], body: .bytes(Array("retry: 1\ndata: 1\n\n".utf8))),
      .status(204))
    let request = Session.real().eventSourceRequest(server.url("/"))
    let events = request.events()
    #expect(await eventually { request.isFinished })
    request.cancel()
    var data: [String] = []
    for try await event in events { data.append(event.data) }
    #expect(data == ["1"])
  }

  @Test("The end of the session drops the backlog, too") func releasedSession() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.backlog)
    var session: Session? = Session(configuration: .uncached)
    let request = try #require(session?.eventSourceRequest(server.url("/")))
    let slow = SlowHandler()
    request.responseEvents(on: queue) { slow.handle($0) }
    await slow.data.wait(for: 1)
    session = nil
    slow.gate.signal()
    #expect(await slow.ends.wait(for: 1).first??.isSessionDeinitializedError == true)
    #expect(slow.data.values == ["1"])
  }

  @Test("Two handlers on one queue take turns, event by event") func turns() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream")],
        body: .bytes(Array("retry: 1\ndata: 1\n\ndata: 2\n\ndata: 3\n\n".utf8))), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/"))
    let seen = Recorder<String>()
    for name in ["a", "b"] {
      request.responseEvents(on: queue) { stream in
        if case .stream(let result) = stream.event { seen.add(name + ((try? result.get())?.data ?? "")) }
        if case .complete = stream.event { seen.add(name) }
      }
    }
    #expect(await seen.wait(for: 8) == ["a1", "b1", "a2", "b2", "a3", "b3", "a", "b"])
  }

  @Test("Handlers of bytes and texts receive each event, and an ID once") func otherReaders() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream")],
        body: .bytes(Array(": note\nretry: 1\nevent: a\nid: 5\ndata: 1\ndata: 2\n\ndata: 3\n\n".utf8))),
      .status(204))
    let request = Session.real().eventSourceRequest(server.url("/"))
    let (data, ends) = (Recorder<String>(), Recorder<Bool>())
    request.responseStreamString(on: queue) { stream in
      if let text = stream.value { data.add(text) } else { ends.add(true) }
    }
    await ends.wait(for: 1)
    #expect(data.values.joined() == "event: a\nid: 5\ndata: 1\ndata: 2\n\ndata: 3\n\n")
  }
}
