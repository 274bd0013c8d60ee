import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import Alamofire

/// The tasks of streams show their stream, and control it.
@Suite("Tasks of streams of bytes", .timeLimit(.minutes(1))) struct ByteStreamTaskTests {
  private let fake = FakeSocketSession()

  @Test(
    "A host is a name or an address, with brackets or without",
    arguments: [
      ("a.test", "a.test"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("[::1]", "::1"),
      ("b\u{FC}cher.test", "xn--bcher-kva.test"),
    ])
  func hosts(host: String, shown: String) async throws {
    let (streams, chooser) = (FakeByteStreams(), IdentityChooser(nil))
    let session = Session(
      configuration: .uncached, engine: Engine(transport: FakeTransport(), byteStreams: streams),
      observers: SessionObservers(delegate: chooser))
    let stream = session.byteStream(host: host, port: 80, secure: true) { $0.redirectLimit = 7 }
    #expect(stream.state == .initialized)
    stream.resume()
    let opened = try await streams.streams.value(0)
    #expect(opened.request.origin.host == shown && opened.request.origin.port == 80 && opened.isSecure)
    #expect(opened.request.profile.options.redirectLimit == 7)
    #expect(opened.request.idleTimeout == .seconds(60) && opened.request.deadline != nil)
    #expect(stream.state == .connecting && stream.host == host && stream.port == 80)
    let identity = try #require(await opened.requestIdentity())
    #expect(try identity.get() == nil)
    #expect(
      chooser.calls.values == ["\(shown) stream"], "the challenge names the host as the connection does")
    withExtendedLifetime(session) {}
  }

  @Test("An operation of a task that is already cancelled is not begun") func cancelledBefore() async {
    let stream = fake.session.byteStream(host: "a.test", port: 1)
    let operations: [@Sendable () async throws -> Void] = [
      { try await stream.write(Data(count: 1_000_000)) }, { _ = try await stream.read() },
    ]
    let errors = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      var errors: [AFError?] = []
      for operation in operations {
        do { try await operation() } catch { errors.append(error as? AFError) }
      }
      return errors
    }.value
    #expect(errors.count == 2 && errors.allSatisfy { $0?.isExplicitlyCancelledError == true })
    #expect(stream.state == .initialized, "the stream is not even connected")
    let error = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await failure { try await stream.startTLS() }
    }.value
    #expect(error?.isExplicitlyCancelledError == true)
    #expect(stream.state == .closed && stream.error?.isExplicitlyCancelledError == true, "it is not secure")
    #expect(fake.streams.streams.count == 0, "nothing is connected")
  }

  @Test(
    "A startTLS of a cancelled task does not end a stream without which nothing is sent in the clear",
    arguments: ["secure", "closing", "securing"])
  func cancelledWithoutNeed(way: String) async throws {
    let stream = fake.session.byteStream(host: "a.test", port: 1, secure: way == "secure")
    stream.resume()
    let opened = try await fake.streams.streams.value(0)
    opened.pause()
    switch way {
    case "closing": stream.close()
    case "securing": stream.startTLS(queue: .global()) { _ in }
    default: break
    }
    let error = await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await failure { try await stream.startTLS() }
    }.value
    #expect(error?.isExplicitlyCancelledError == true)
    #expect(stream.state != .closed && opened.ends.values.isEmpty, "the operations before it are performed")
    opened.unpause()
    stream.cancel()
  }

  @Test("A cancelled task waits no longer for the end of a stream, and does not retain it")
  func cancelledWait() async throws {
    var stream: ByteStreamRequest? = fake.session.byteStream(host: "a.test", port: 1)
    weak let released = stream
    let core = try #require(stream?.core)
    let ends = Recorder<AFError?>()
    let watch = Task { [stream] in ends.add(await stream?.ended()) }
    #expect(await eventually { core.waitingCount == 1 })
    watch.cancel()
    #expect(await isSoon { ends.count == 1 }, "the cancelled task waits for the end of the stream")
    #expect(ends.values.first??.isExplicitlyCancelledError == true)
    #expect(stream?.state == .initialized && core.waitingCount == 0, "only the wait has ended")
    stream = nil
    #expect(await isSoon { released == nil }, "the wait retains the stream")
    #expect(core.phase == .closed)
  }

  @Test("A stream that is closing closes in order, although the task that waits for its end is cancelled")
  func cancelledWaitForClose() async throws {
    var stream: ByteStreamRequest? = fake.session.byteStream(host: "a.test", port: 1)
    weak let released = stream
    let core = try #require(stream?.core)
    core.resume()
    let opened = try await fake.streams.streams.value(0)
    // The stream is still closing when the task stops waiting.
    opened.pause()
    stream?.close()
    let errors = await Task { [stream] in
      withUnsafeCurrentTask { $0?.cancel() }
      var errors: [AFError?] = []
      for _ in 0..<10 { errors.append(await stream?.ended()) }
      return errors
    }.value
    #expect(errors.allSatisfy { $0?.isExplicitlyCancelledError == true })
    stream = nil
    #expect(core.waitingCount == 1 && released != nil, "the release of the stream would cut off its close")
    opened.unpause()
    #expect(await isSoon { released == nil }, "nothing releases the stream that has closed")
    #expect(core.phase == .closed && core.error == nil && core.waitingCount == 0)
    #expect(opened.ends.values == [nil])
  }

  private static func error<Value>(of result: Result<Value, AFError>) -> AFError? {
    if case .failure(let error) = result { error } else { nil }
  }

  @Test(
    "The operations of a stream that ended before its first one fail with the reason",
    arguments: [("invalid", .badURL), ("closed", .networkConnectionLost), ("cancelled", nil)]
      as [(String, URLError.Code?)])
  func endedBefore(way: String, code: URLError.Code?) {
    let stream = fake.session.byteStream(host: way == "invalid" ? "a b" : "a.test", port: 1)
    switch way {
    case "closed": stream.close()
    case "cancelled": stream.cancel()
    default: break
    }
    #expect(stream.state == .closed)
    let errors = Recorder<AFError?>()
    let queue = DispatchQueue(label: "handlers")
    stream.read(queue: queue) { errors.add(Self.error(of: $0)) }
    stream.write(Data("x".utf8), queue: queue) { errors.add(Self.error(of: $0)) }
    stream.startTLS(queue: queue) { errors.add(Self.error(of: $0)) }
    queue.sync {}
    #expect(errors.values.map { $0?.transferCode } == [code, code, code])
    #expect(errors.values.allSatisfy { $0?.isExplicitlyCancelledError == (code == nil) })
    #expect(fake.streams.streams.count == 0, "nothing is connected")
  }

  @Test("A task has the state of its stream") func state() async throws {
    let stream = fake.session.byteStream(host: "a.test", port: 1)
    let task = stream.task
    #expect(
      task === stream.task
        && task.taskIdentifier != fake.session.byteStream(host: "b", port: 1).task.taskIdentifier)
    #expect(task.state == .suspended && task.error == nil)
    #expect(task.originalRequest == nil && task.currentRequest == nil && task.response == nil)
    task.resume()
    #expect(task.state == .running)
    let opened = try await fake.streams.streams.value(0)
    task.suspend()
    #expect(task.state == .suspended && stream.isSuspended)
    await opened.settle()
    #expect(opened.isSuspended)
    task.resume()
    #expect(task.state == .running && !stream.isSuspended)
    task.suspend()
    task.cancel()
    #expect(await stream.ended()?.isExplicitlyCancelledError == true)
    #expect(task.state == .completed && (task.error as? URLError)?.code == .cancelled)
    #expect(!stream.isSuspended)
    task.suspend()
    #expect(!stream.isSuspended, "a stream that has ended cannot be suspended")
  }

  @Test("A task reads, writes and counts") func transfer() async throws {
    let stream = fake.session.byteStream(host: "a.test", port: 1)
    let task = stream.task
    let parts = Recorder<String>()
    func read(_ timeout: TimeInterval) {
      task.readData(ofMinLength: 2, maxLength: 3, timeout: timeout) { data, isAtEnd, error in
        parts.add(
          "\(data.map { String(decoding: $0, as: UTF8.self) } ?? "nothing") \(isAtEnd) \(error == nil)")
      }
    }
    read(1.5)
    let opened = try await fake.streams.streams.value(0)
    opened.send(Data("hello".utf8), isLast: true)
    await parts.wait(for: 1)
    read(0)
    await parts.wait(for: 2)
    #expect(parts.values == ["hel false true", "lo true true"])
    for timeout in [0.0001, -1, 1e12] { read(timeout) }
    #expect(opened.timeouts.values == [.milliseconds(1500), nil, .milliseconds(1), nil, nil])
    #expect(opened.sizes.values == [2...3, 2...3, 2...3, 2...3, 2...3])
    let isWritten = await withCheckedContinuation { written in
      task.write(Data("abcd".utf8), timeout: 1) { written.resume(returning: $0 == nil) }
    }
    #expect(isWritten && opened.writes.values == [Data("abcd".utf8)])
    #expect(opened.writeTimeouts.values == [.seconds(1)])
    #expect(task.countOfBytesSent == 4 && task.countOfBytesReceived == 5)
    task.closeRead()
    task.closeWrite()
    #expect(opened.closings.values == ["reading", "writing"])
    opened.fail()
    _ = await stream.ended()
    #expect((task.error as? URLError)?.code == .networkConnectionLost)
    let error = await withCheckedContinuation { ended in
      task.write(Data("x".utf8), timeout: 1) { ended.resume(returning: $0) }
    }
    #expect((error as? URLError)?.code == .networkConnectionLost)
    #expect(task.countOfBytesSent == 4)
  }

  @Test("The later of two decisions to suspend and to resume wins") func racingDecisions() async throws {
    let stream = fake.session.byteStream(host: "a.test", port: 1)
    stream.resume()
    let opened = try await fake.streams.streams.value(0)
    // As on another thread, between the decision to suspend and its effect.
    opened.beforeSuspension { stream.resume() }
    stream.suspend()
    await opened.settle()
    #expect(!stream.isSuspended && !opened.isSuspended)
    stream.suspend()
    await opened.settle()
    #expect(stream.isSuspended && opened.isSuspended)
    stream.cancel()
  }

  @Test("The task of a released stream is complete, and its operations are cancelled") func released() async {
    let task = fake.session.byteStream(host: "a.test", port: 1).task
    #expect(task.state == .completed)
    let codes = Recorder<URLError.Code?>()
    task.write(Data("x".utf8), timeout: 1) { codes.add(($0 as? URLError)?.code) }
    task.readData(ofMinLength: 1, maxLength: 1, timeout: 1) { codes.add(($2 as? URLError)?.code) }
    #expect(await codes.wait(for: 2) == [.cancelled, .cancelled])
    #expect(fake.streams.streams.count == 0)
  }

  @Test("A handler gets the end of the stream, and its write has its time limit") func handlers() async throws
  {
    let stream = fake.session.byteStream(host: "a.test", port: 1)
    let queue = DispatchQueue(label: "handlers")
    let parts = Recorder<Bool?>()
    stream.read(atLeast: 5, atMost: 9, timeout: .seconds(3), queue: queue) {
      parts.add(try? $0.get().isAtEnd)
    }
    stream.write(Data("x".utf8), timeout: .seconds(4), queue: queue) { _ in }
    let opened = try await fake.streams.streams.value(0)
    opened.send(Data("hello".utf8), isLast: true)
    #expect(await parts.wait(for: 1) == [true])
    #expect(opened.sizes.values == [5...9] && opened.timeouts.values == [.seconds(3)])
    #expect(opened.writeTimeouts.values == [.seconds(4)])
  }

  @Test("A delegate learns of the end of a stream if it wants events of transfers", arguments: [true, false])
  func delegate(isWanted: Bool) async throws {
    final class Listener: SessionDelegate, @unchecked Sendable {
      let ends = Recorder<String>()
      override func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
      ) { ends.add("\(task is ByteStreamTask) \(error == nil)") }
    }
    let listener = Listener()
    listener.wantedEvents = isWanted ? .transfers : .all.subtracting(.transfers)
    let session = Session.forStreams(delegate: listener)
    let stream = session.byteStream(host: "127.0.0.1", port: 1)
    stream.close()
    #expect(await stream.ended() == nil)
    let queue = session.rootQueue
    await withCheckedContinuation { done in queue.async { done.resume() } }
    await withCheckedContinuation { done in queue.async { done.resume() } }
    #expect(listener.ends.values == (isWanted ? ["true true"] : []))
  }

  private final class EndListener: SessionDelegate, @unchecked Sendable {
    let ends = Recorder<String>()
    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) { ends.add("stream") }
    override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
      ends.add("session")
    }
  }

  @Test("The end of a session that waits for a stream is reported after the end of the stream")
  func endOfSession() async throws {
    let server = try StreamTestServer()
    let listener = EndListener()
    listener.wantedEvents = .transfers
    let session = Session.forStreams(delegate: listener)
    let streams = (0..<2).map { _ in session.byteStream(host: "127.0.0.1", port: server.port) }
    try await streams[0].write(Data("x".utf8))
    session.session.finishTasksAndInvalidate()
    #expect(await streams[1].ended()?.isSessionInvalidatedError == true, "nothing has connected it")
    _ = try await streams[0].read()
    streams[0].cancel()
    #expect(await listener.ends.wait(for: 3) == ["stream", "stream", "session"])
    withExtendedLifetime(session) {}
  }

  @Test("The end of a session is reported after the end of a stream that is just being reported")
  func endDuringReport() async {
    let listener = EndListener()
    listener.wantedEvents = .transfers
    let session = Session.forStreams(delegate: listener)
    let stream = session.byteStream(host: "127.0.0.1", port: 1)
    stream.core.whenEnded { _ in session.session.finishTasksAndInvalidate() }
    stream.cancel()
    #expect(await listener.ends.wait(for: 2) == ["stream", "session"])
    withExtendedLifetime(session) {}
  }
}
