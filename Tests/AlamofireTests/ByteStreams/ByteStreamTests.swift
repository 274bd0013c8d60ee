import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

extension AFError {
  /// The code of the `URLError` of a failed transfer.
  var transferCode: URLError.Code? {
    guard case .sessionTaskFailed(let error) = self else { return nil }
    return (error as? URLError)?.code
  }
}

/// Returns the error that `body` throws.
func failure(of body: () async throws -> some Any) async -> AFError? {
  do {
    _ = try await body()
    return nil
  } catch {
    return error as? AFError
  }
}

extension Session {
  /// Returns a session of this test, which is released at its end.
  static func forStreams(
    _ change: (inout TransportOptions) -> Void = { _ in }, manager: ServerTrustManager? = nil,
    delegate: SessionDelegate = SessionDelegate(), timeout: TimeInterval = 60,
    wholeTimeout: TimeInterval = 3600
  ) -> Session {
    var options = TransportOptions()
    options.proxy = .none
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    change(&options)
    let configuration = URLSessionConfiguration.isolated
    configuration.timeoutIntervalForRequest = timeout
    configuration.timeoutIntervalForResource = wholeTimeout
    return Session(
      configuration: configuration, delegate: delegate, serverTrustManager: manager, transportOptions: options
    )
  }
}

extension ByteStreamRequest {
  /// Writes until the stream ends, to a peer that does not read, and returns the errors of the writes. The writes
  /// exceed the system's buffers, and each fits into one TLS record.
  func flooded() async -> [AFError?] {
    var ends: [AFError?] = []
    // On a slow machine the first writes may time out before they begin, which does not affect the result.
    for _ in 0..<20 where state != .closed { ends += await manyWritten() }
    return ends
  }

  private func manyWritten() async -> [AFError?] {
    let ends = Recorder<AFError?>()
    let queue = DispatchQueue(label: "test.flood")
    let piece = Data(repeating: 1, count: 10_000)
    for _ in 0..<2000 {
      write(piece, timeout: .seconds(2), queue: queue) { result in
        if case .failure(let error) = result { ends.add(error) } else { ends.add(nil) }
      }
    }
    return await ends.wait(for: 2000)
  }
}

@Suite("Streams of bytes", .timeLimit(.minutes(5))) struct ByteStreamTests {
  private let session = Session.forStreams()

  @Test("Written bytes are echoed") func echo() async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    #expect(stream.state == .initialized)
    try await stream.write(Data("hello ".utf8))
    try await stream.write(Data("world".utf8))
    let (data, isAtEnd) = try await stream.read(atLeast: 11)
    #expect(data == Data("hello world".utf8) && !isAtEnd)
    #expect(stream.state == .open)
    #expect(stream.sentByteCount == 11 && stream.receivedByteCount == 11)
    stream.close()
    #expect(await stream.ended() == nil)
    #expect(stream.state == .closed && stream.error == nil)
  }

  @Test("A stream without operations does not connect") func lazyConnection() async throws {
    let server = try StreamTestServer()
    do {
      let stream = session.byteStream(host: "127.0.0.1", port: server.port)
      #expect(stream.host == "127.0.0.1" && stream.port == server.port)
      stream.close()
      #expect(await stream.ended() == nil)
    }
    _ = session.byteStream(host: "127.0.0.1", port: server.port)
    #expect(server.connectionCount == 0)
  }

  @Test("Closing both sides ends an unused stream, and does not connect", arguments: [false, true])
  func closeUnused(isSecure: Bool) async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "127.0.0.1", port: server.port, secure: isSecure)
    stream.closeRead()
    let error = await failure { try await stream.read() }
    #expect(error?.transferCode == .networkConnectionLost && stream.state == .initialized)
    stream.closeWrite()
    #expect(await stream.ended() == nil)
    #expect(stream.state == .closed && server.connectionCount == 0)
  }

  @Test("An operation after the closure of one side connects") func closeBeforeWrite() async throws {
    let server = try StreamTestServer { connection in try connection.write(connection.readToEnd()) }
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    stream.closeRead()
    #expect(stream.state == .initialized)
    try await stream.write(Data("x".utf8))
    #expect(stream.state == .open)
    stream.closeWrite()
    #expect(await stream.ended() == nil)
  }

  @Test(
    "A stream that ends beside its first operation leaves no open connection",
    arguments: ["cancel", "close", "session"])
  func endBesideFirstOperation(way: String) async {
    let fake = FakeSocketSession()
    let queue = DispatchQueue(label: "handlers")
    var streams: [ByteStreamRequest] = []
    for _ in 0..<300 {
      let stream = fake.session.byteStream(host: "a.test", port: 1)
      streams.append(stream)
      await withCheckedContinuation { done in
        DispatchQueue.global().async {
          DispatchQueue.concurrentPerform(iterations: 2) { index in
            guard index > 0 else { return _ = stream.read(queue: queue) { _ in } }
            switch way {
            case "cancel": stream.cancel()
            case "close": stream.close()
            default: fake.session.cancelAllRequests()
            }
          }
          done.resume()
        }
      }
    }
    for opened in fake.streams.streams.values {
      await opened.settle()
      #expect(opened.ends.count == 1)
    }
    #expect(streams.allSatisfy { $0.state == .closed })
  }

  @Test("The end is reported on the given queue, also to later handlers") func endHandlers() async throws {
    let stream = session.byteStream(host: "127.0.0.1", port: 1)
    let ends = Recorder<(queue: String, error: AFError?)>()
    let queue = DispatchQueue(label: "test.ends")
    stream.onEnd(queue: queue) { ends.add((queueLabel(), $0)) }
    stream.cancel()
    await ends.wait(for: 1)
    stream.onEnd(queue: queue) { ends.add((queueLabel(), $0)) }
    await ends.wait(for: 2)
    #expect(ends.values.map(\.queue) == ["test.ends", "test.ends"])
    #expect(ends.values.allSatisfy { $0.error?.isExplicitlyCancelledError == true })
  }

  @Test("A stream that is suspended before its first operation is opened suspended") func heldOpening()
    async throws
  {
    let fake = FakeSocketSession()
    let stream = fake.session.byteStream(host: "a.test", port: 1)
    stream.suspend()
    stream.read(atLeast: 1, queue: DispatchQueue(label: "handlers")) { _ in }
    let opened = try await fake.streams.streams.value(0)
    #expect(await eventually { opened.isSuspended })
    stream.resume()
    #expect(await eventually { !opened.isSuspended })
  }

  @Test("Reads and writes with handlers run in order") func order() async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    let queue = DispatchQueue(label: "handlers")
    let pieces = Recorder<String>()
    await withCheckedContinuation { done in
      for index in 0..<10 {
        stream.read(atLeast: 2, atMost: 2, queue: queue) { result in
          dispatchPrecondition(condition: .onQueue(queue))
          pieces.add((try? result.get()).map { String(decoding: $0.data, as: UTF8.self) } ?? "failed")
          if index == 9 { done.resume() }
        }
      }
      for index in 0..<10 {
        stream.write(Data("\(index),".utf8), queue: queue) { #expect((try? $0.get()) != nil) }
      }
    }
    #expect(pieces.values == (0..<10).map { "\($0)," })
  }

  @Test("The write side closes alone") func closeWrite() async throws {
    let server = try StreamTestServer { connection in
      let all = try connection.readToEnd()
      try connection.write("\(all.count)")
    }
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    try await stream.write(Data(count: 1234))
    stream.closeWrite()
    let (data, isAtEnd) = try await stream.read(atLeast: 100)
    #expect(data == Data("1234".utf8) && isAtEnd)
    #expect(await stream.ended() == nil)
    let again = try await stream.read()
    #expect(again.data.isEmpty && again.isAtEnd)
    let late = await failure { try await stream.write(Data([1])) }
    #expect(late?.transferCode == .networkConnectionLost)
  }

  @Test("The read side closes alone") func closeRead() async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    try await stream.write(Data([1]))
    #expect(try await stream.read().data == Data([1]))
    stream.closeRead()
    #expect(await failure { try await stream.read() }?.transferCode == .networkConnectionLost)
    try await stream.write(Data([2]))
    stream.closeWrite()
    #expect(await stream.ended() == nil)
  }

  @Test(
    "A server is not blocked by bytes that arrive after the read side was closed", arguments: [false, true])
  func discardedBytes(isSecure: Bool) async throws {
    let received = Recorder<[UInt8]>()
    let server = try StreamTestServer(isSecure ? .tls(.localhost) : .none) { connection in
      _ = try connection.readExactly(1)
      try connection.write([UInt8](repeating: 7, count: 32 << 20))
      received.add(try connection.readExactly(4))
    }
    let stream = session.byteStream(host: "localhost", port: server.port, secure: isSecure)
    try await stream.write(Data([1]))
    stream.closeRead()
    try await stream.write(Data("last".utf8))
    #expect(await received.wait(for: 1) == [Array("last".utf8)])
    stream.closeWrite()
    #expect(await stream.ended() == nil)
  }

  @Test("A read that times out loses no bytes") func readTimeout() async throws {
    let gate = Gate()
    let server = try StreamTestServer { connection in
      try connection.write("ab")
      try connection.pass(gate)
      try connection.write("cd")
      try connection.stall()
    }
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    let error = await failure { try await stream.read(atLeast: 4, timeout: .milliseconds(200)) }
    #expect(error?.transferCode == .timedOut)
    #expect(stream.state == .open)
    gate.open()
    #expect(try await stream.read(atLeast: 4).data == Data("abcd".utf8))
  }

  @Test("Cancelling a task ends its read") func cancelledTask() async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    try await stream.write(Data("x".utf8))
    _ = try await stream.read()
    let reader = Task { await failure { try await stream.read() } }
    reader.cancel()
    guard case .explicitlyCancelled? = await reader.value else {
      Issue.record("it was not cancelled")
      return
    }
    try await stream.write(Data("y".utf8))
    #expect(try await stream.read().data == Data("y".utf8))
  }

  @Test("Cancelling the stream ends its reads and the connection") func cancel() async throws {
    let gone = Gate()
    let server = try StreamTestServer { connection in
      try connection.write("x")
      _ = try connection.readToEnd()
      gone.open()
    }
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    _ = try await stream.read()
    async let error = failure { try await stream.read() }
    stream.cancel()
    guard case .explicitlyCancelled? = await error, case .explicitlyCancelled? = await stream.ended() else {
      Issue.record("it was not cancelled")
      return
    }
    while server.openConnectionCount > 0 { await Task.yield() }
  }

  @Test("cancelAllRequests cancels streams") func cancelAll() async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    try await stream.write(Data("x".utf8))
    session.cancelAllRequests()
    guard case .explicitlyCancelled? = await stream.ended() else {
      Issue.record("it was not cancelled")
      return
    }
  }

  @Test("The end of the session ends its streams") func endOfSession() async throws {
    let server = try StreamTestServer()
    var session: Session? = .forStreams()
    let stream = try #require(session).byteStream(host: "127.0.0.1", port: server.port)
    let unused = try #require(session).byteStream(host: "127.0.0.1", port: server.port)
    // Closing one side does not connect.
    let unconnected = try #require(session).byteStream(host: "127.0.0.1", port: server.port)
    unconnected.closeWrite()
    try await stream.write(Data("x".utf8))
    _ = try await stream.read()
    async let error = failure { try await stream.read() }
    session = nil
    guard case .sessionDeinitialized? = await error, case .sessionDeinitialized? = await stream.ended(),
      case .sessionDeinitialized? = await unused.ended(),
      case .sessionDeinitialized? = await unconnected.ended()
    else {
      Issue.record("it was not ended by the session")
      return
    }
    let late = await failure { try await unconnected.read() }
    #expect(late != nil)
    #expect(server.connectionCount == 1)
  }

  @Test("A session that finishes ends the streams that nothing has connected") func finish() async throws {
    let server = try StreamTestServer()
    let streams = (0..<3).map { _ in session.byteStream(host: "127.0.0.1", port: server.port) }
    try await streams[0].write(Data("x".utf8))
    // Closing one side does not connect.
    streams[1].closeWrite()
    session.session.finishTasksAndInvalidate()
    for stream in streams.dropFirst() {
      let error = await stream.ended()
      #expect(error?.isSessionInvalidatedError == true)
    }
    _ = try await streams[0].read()
  }

  @Test("Releasing a stream ends it") func release() async throws {
    let server = try StreamTestServer()
    var stream: ByteStreamRequest? = session.byteStream(host: "127.0.0.1", port: server.port)
    try await stream?.write(Data("x".utf8))
    _ = try await stream?.read()
    #expect(server.openConnectionCount == 1)
    stream = nil
    while server.openConnectionCount > 0 { await Task.yield() }
  }

  @Test("Failures are the same as for requests") func failures() async throws {
    let refused = session.byteStream(host: "127.0.0.1", port: 1)
    #expect(await failure { try await refused.read() }?.transferCode == .cannotConnectToHost)
    #expect(await refused.ended()?.transferCode == .cannotConnectToHost)
    let unknown = session.byteStream(host: "nobody.invalid", port: 80)
    let code = await failure { try await unknown.write(Data([1])) }?.transferCode
    #expect(code == .cannotFindHost || code == .notConnectedToInternet)
    for (host, port) in [
      ("", 80), ("a b", 80), ("host", 0), ("host", 65_536), ("host/path", 80), ("u@h", 80),
    ] {
      let stream = session.byteStream(host: host, port: port)
      #expect(await failure { try await stream.read() }?.transferCode == .badURL, "\(host):\(port)")
    }
    let silent = try UnresponsivePort()
    let slow = Session.forStreams(timeout: 0.3)
    let stream = slow.byteStream(host: "127.0.0.1", port: silent.port)
    #expect(await failure { try await stream.read() }?.transferCode == .timedOut)
  }

  @Test("timeoutIntervalForResource ends the stream", arguments: [true, false]) func resourceTimeout(
    isSuspended: Bool
  ) async throws {
    let server = try StreamTestServer()
    let session = Session.forStreams(wholeTimeout: 1)
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    // On a busy machine, the write may time out as well.
    _ = await failure { try await stream.write(Data("x".utf8)) }
    if isSuspended { stream.suspend() }
    #expect(await failure { try await stream.read(atLeast: 2) }?.transferCode == .timedOut)
    #expect(await stream.ended()?.transferCode == .timedOut)
    while server.openConnectionCount > 0 { await Task.yield() }
    // The time counts from the first operation, so it includes connecting.
    let silent = try UnresponsivePort()
    let slow = session.byteStream(host: "127.0.0.1", port: silent.port)
    #expect(await failure { try await slow.read() }?.transferCode == .timedOut)
  }

  @Test("A connection reset ends the stream") func reset() async throws {
    let server = try StreamTestServer { connection in
      _ = try connection.read()
      connection.reset()
    }
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    try await stream.write(Data("x".utf8))
    #expect(await failure { try await stream.read() }?.transferCode == .networkConnectionLost)
    #expect(await stream.ended()?.transferCode == .networkConnectionLost)
  }

  @Test("A suspended stream transfers no bytes") func suspend() async throws {
    let server = try StreamTestServer()
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    try await stream.write(Data("x".utf8))
    _ = try await stream.read()
    stream.suspend()
    #expect(stream.isSuspended)
    let received = server.receivedByteCount
    // The limit is shorter than the suspension.
    let read = Recorder<Result<ByteStreamRequest.Bytes, AFError>>()
    stream.read(atLeast: 3, timeout: .milliseconds(300), queue: .global()) { read.add($0) }
    let written = Recorder<Bool>()
    stream.write(Data("abc".utf8), queue: .global()) { written.add((try? $0.get()) != nil) }
    // The loop stays awake, because another stream waits for a longer limit.
    let other = session.byteStream(host: "127.0.0.1", port: server.port)
    await #expect(throws: AFError.self) { try await other.read(timeout: .milliseconds(500)) }
    #expect(read.values.isEmpty && written.values.isEmpty)
    #expect(server.receivedByteCount == received)
    stream.resume()
    #expect(await written.wait(for: 1) == [true])
    #expect(try await read.value(0).get().data == Data("abc".utf8))
  }

  @Test("A fast sender is slowed down by back-pressure", .steps) func backPressure() async throws {
    let size = 64 << 20
    @Sendable func send(_ connection: StreamTestConnection, _ sent: Recorder<Int>) throws {
      let piece = [UInt8](repeating: 7, count: 1 << 20)
      for index in 0..<64 {
        try connection.write(piece)
        sent.add(index)
      }
    }
    let (sent, sentToOther) = (Recorder<Int>(), Recorder<Int>())
    let server = try StreamTestServer { try send($0, sent) }
    let other = try StreamTestServer { try send($0, sentToOther) }
    step("first byte")
    let stream = session.byteStream(host: "127.0.0.1", port: server.port)
    var count = try await stream.read(atMost: 1).data.count
    step("all of the other stream")
    // While the same loop transfers all of another stream, it reads no bytes of this one without a pending read. The
    // sender is never further ahead than the buffers of both sockets.
    let quick = session.byteStream(host: "127.0.0.1", port: other.port)
    var countOfOther = 0
    while true {
      let (data, isAtEnd) = try await quick.read(atLeast: 1 << 20, atMost: 1 << 20)
      countOfOther += data.count
      if isAtEnd { break }
    }
    #expect(countOfOther == size)
    var furthest = sent.count << 20
    #expect(furthest < 32 << 20)
    step("rest of the first stream")
    while true {
      let (data, isAtEnd) = try await stream.read(atLeast: 1 << 20, atMost: 1 << 20)
      count += data.count
      furthest = max(furthest, sent.count << 20 - count)
      if isAtEnd { break }
    }
    #expect(furthest < 32 << 20)
    #expect(count == size)
  }

  @Test("Descriptors and threads are released") func resources() async {
    await #expect(processExitsWith: .success) {
      func sockets() -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.count { name in
          let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
          return target?.hasPrefix("socket:") == true
        }
      }
      let server = try StreamTestServer()
      let secure = try StreamTestServer(.tls(.localhost))
      let before = sockets()
      do {
        let session = Session.forStreams()
        for index in 0..<40 {
          let isSecure = index % 2 == 0
          let stream = session.byteStream(
            host: isSecure ? "localhost" : "127.0.0.1", port: isSecure ? secure.port : server.port,
            secure: isSecure)
          try await stream.write(Data("x".utf8))
          _ = try await stream.read()
          switch index % 4 {
          case 0, 1: stream.close()
          case 2: stream.cancel()
          default: break
          }
        }
      }
      #expect(await eventually { sockets() <= before })
    }
  }
}
