import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

/// A transport of streams of bytes without a network. The test is the server.
final class FakeByteStreams: ByteStreamTransport {
  /// The streams in the order in which they were opened.
  let streams = Recorder<FakeByteStream>()
  private let willOpen: @Sendable () -> Void

  /// Makes a transport.
  ///
  /// - Parameter willOpen: Called before each stream is made, while its request is being started.
  init(willOpen: @escaping @Sendable () -> Void = {}) { self.willOpen = willOpen }

  func stream(
    _ request: WireRequest, isSecure: Bool, watcher: any ByteStreamWatcher
  ) -> any ByteStream {
    willOpen()
    let stream = FakeByteStream(request, isSecure: isSecure, watcher: watcher)
    streams.add(stream)
    return stream
  }
}

/// A stream whose completions are called on one queue, as the engine calls its completions on one thread.
final class FakeByteStream: ByteStream {
  private struct State {
    var number: Number = 0
    var watcher: (any ByteStreamWatcher)?
    var received = Data()
    var isAtEnd = false
    var reads: [(most: Int, completion: ByteStreamCompletion<StreamedBytes>)] = []
    var readCount = 0
    var holdsWrites = false
    var failsWrites = false
    var heldWrites: [ByteStreamCompletion<Void>] = []
    var isSuspended = false
    var beforeSuspension: (@Sendable () -> Void)?
    var end: TransportFailure??
  }

  let request: WireRequest
  let isSecure: Bool
  /// The bytes of each write.
  let writes = Recorder<Data>()
  /// The timeout of each read.
  let timeouts = Recorder<Duration?>()
  /// The reasons of the end: one.
  let ends = Recorder<TransportFailure.FailureKind?>()
  private let queue = DispatchQueue(label: "test.stream")
  private let state: Mutex<State>
  /// The fewest and the most bytes of each read.
  let sizes = Recorder<ClosedRange<Int>>()
  /// The timeout of each write.
  let writeTimeouts = Recorder<Duration?>()
  /// The sides that were closed alone.
  let closings = Recorder<String>()

  init(_ request: WireRequest, isSecure: Bool, watcher: any ByteStreamWatcher) {
    self.request = request
    self.isSecure = isSecure
    state = Mutex(State(watcher: watcher))
  }

  // MARK: The server

  /// The number of reads so far.
  var readCount: Int { state.withLock { $0.readCount } }
  var isSuspended: Bool { state.withLock { $0.isSuspended } }

  /// Waits until all that was done before has had its effect.
  func settle() async {
    for _ in 0..<3 { await withCheckedContinuation { done in queue.async { done.resume() } } }
  }

  /// Sends bytes to the client.
  func send(_ bytes: Data, isLast: Bool = false) {
    queue.async { [self] in
      state.withLock { state in
        state.received.append(bytes)
        state.isAtEnd = isLast
      }
      serve()
    }
  }

  /// Does nothing until ``unpause()``, as an engine whose thread is busy.
  func pause() { queue.suspend() }
  func unpause() { queue.resume() }

  /// Leaves writes without a completion until ``finishWrites()``.
  func holdWrites() { state.withLock { $0.holdsWrites = true } }

  /// Lets later writes fail, although the stream can still be read.
  func failWrites() { state.withLock { $0.failsWrites = true } }

  /// Completes the writes so far.
  ///
  /// - Parameter holdsNext: Whether later writes are held again.
  func finishWrites(holdsNext: Bool = false) {
    queue.async { [self] in
      let held = state.withLock { state in
        defer { state.heldWrites = [] }
        state.holdsWrites = holdsNext
        return state.heldWrites
      }
      for completion in held { completion(.success(())) }
    }
  }

  /// Calls `body` before the next suspension has its effect.
  func beforeSuspension(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.beforeSuspension = body }
  }

  /// Asks the client for its certificate, as a server does in the handshake of TLS; `nil` after the end.
  func requestIdentity() async -> Result<ClientIdentity?, TransportFailure>? {
    await state.withLock { $0.watcher }?.identity()
  }

  /// Breaks the connection.
  func fail(_ kind: TransportFailure.FailureKind = .connectionLost) {
    queue.async { [self] in end(TransportFailure(kind, "The stream broke.")) }
  }

  // MARK: The client

  func resume() {
    queue.async { [self] in
      state.withLock { $0.isSuspended = false }
      serve()
    }
  }

  func suspend() {
    state.withLock { $0.beforeSuspension.take() }?()
    queue.async { [self] in state.withLock { $0.isSuspended = true } }
  }

  func read(
    least: Int, most: Int, timeout: Duration?, _ completion: @escaping ByteStreamCompletion<StreamedBytes>
  ) -> Number {
    timeouts.add(timeout)
    sizes.add(least...most)
    queue.async { [self] in
      let failure = state.withLock { state -> TransportFailure? in
        state.readCount += 1
        if let end = state.end { return end ?? TransportFailure(.connectionLost, "closed") }
        state.reads.append((most, completion))
        return nil
      }
      if let failure { completion(.failure(failure)) } else { serve() }
    }
    return nextNumber()
  }

  func write(
    _ data: @escaping @Sendable () -> Data, timeout: Duration?,
    _ completion: @escaping ByteStreamCompletion<Void>
  ) -> Number {
    writeTimeouts.add(timeout)
    queue.async { [self] in
      let (failure, isHeld) = state.withLock { state -> (TransportFailure?, Bool) in
        if let end = state.end { return (end ?? TransportFailure(.connectionLost, "closed"), false) }
        if state.failsWrites { return (TransportFailure(.connectionLost, "The write failed."), false) }
        if state.holdsWrites { state.heldWrites.append(completion) }
        return (nil, state.holdsWrites)
      }
      if let failure { return completion(.failure(failure)) }
      writes.add(data())
      if !isHeld { completion(.success(())) }
    }
    return nextNumber()
  }

  func secure(_ completion: @escaping ByteStreamCompletion<Void>) -> Number { nextNumber() }
  func withdraw(_ number: Number) {}
  func closeReading() { closings.add("reading") }
  func closeWriting() { closings.add("writing") }
  func close() { queue.async { [self] in end(nil) } }
  func shutDown() { cancel() }
  func cancel() { queue.async { [self] in end(TransportFailure(.cancelled, "cancelled")) } }

  private func nextNumber() -> Number {
    state.withLock { state in
      state.number += 1
      return state.number
    }
  }

  private func serve() {
    let (completion, bytes) = state.withLock {
      state -> (ByteStreamCompletion<StreamedBytes>?, StreamedBytes?) in
      guard !state.isSuspended, let read = state.reads.first, !state.received.isEmpty || state.isAtEnd else {
        return (nil, nil)
      }
      state.reads.removeFirst()
      let data = Data(state.received.prefix(read.most))
      state.received = Data(state.received.dropFirst(data.count))
      return (read.completion, StreamedBytes(data: data, isAtEnd: state.isAtEnd && state.received.isEmpty))
    }
    if let completion, let bytes { completion(.success(bytes)) }
  }

  private func end(_ failure: TransportFailure?) {
    let (watcher, reads, writes) = state.withLock { state in
      defer {
        state.end = state.end ?? .some(failure)
        state.watcher = nil
        state.reads = []
        state.heldWrites = []
      }
      return (state.watcher, state.reads, state.heldWrites)
    }
    guard let watcher else { return }
    let lost = failure ?? TransportFailure(.connectionLost, "closed")
    for read in reads { read.completion(.failure(lost)) }
    for write in writes { write(.failure(lost)) }
    ends.add(failure?.kind)
    watcher.streamEnded(failure)
  }
}

extension FakeByteStream {
  /// Answers the handshake, which is the first write, and sends more bytes after the head.
  func accept(fields: String = "", then bytes: Data = Data()) async throws {
    send(Data(try await acceptance(fields: fields).utf8) + bytes)
  }

  /// Returns the head of the response that accepts the handshake.
  func acceptance(fields: String = "") async throws -> String {
    let head = String(decoding: try await writes.value(0), as: UTF8.self)
    let line = head.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }
    let key = line.map { String($0.dropFirst(19)) } ?? ""
    let accept = WebSocketKey.accept(key) { OpenSSLHashes.sha1($0) } ?? ""
    return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      + "Sec-WebSocket-Accept: \(accept)\r\n\(fields)\r\n"
  }

  /// The events of the client's frames so far.
  var events: [WebSocketEvent] {
    var connection = WebSocketConnection(WebSocketOptions(role: .server)) { 0 }
    let bytes = writes.values.dropFirst().reduce(into: Data()) { $0 += $1 }
    var position = 0
    var events: [WebSocketEvent] = []
    bytes.withUnsafeBytes { bytes in
      while let event = connection.receive(bytes, from: &position) { events.append(event) }
    }
    return events
  }

  /// Waits until the client has sent `count` events.
  func events(count: Int) async -> [WebSocketEvent] {
    _ = await eventually { events.count >= count }
    return events
  }
}

/// Returns a frame of a server.
func serverFrame(_ first: UInt8, _ payload: [UInt8] = []) -> Data {
  var frame = Data([first])
  switch payload.count {
  case 0...125: frame.append(UInt8(payload.count))
  case 126...65_535: frame += [126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
  default:
    frame.append(127)
    for index in stride(from: 56, through: 0, by: -8) {
      frame.append(UInt8(truncatingIfNeeded: payload.count >> index))
    }
  }
  return frame + payload
}

/// Returns a Close frame of a server.
func closeFrame(_ code: Int = 1000, _ reason: String = "") -> Data {
  serverFrame(0x88, [UInt8(code >> 8), UInt8(code & 255)] + Array(reason.utf8))
}

/// A session over streams that a test serves.
struct FakeSocketSession {
  let streams = FakeByteStreams()
  let session: Session

  init(options: TransportOptions = TransportOptions(), interceptor: (any RequestInterceptor)? = nil) {
    session = Session.forFakeSockets(streams, options, interceptor)
  }

  /// Opens a connection whose handshake is accepted.
  func connected(
    _ configuration: WebSocketRequest.Configuration = .default
  ) async throws -> (WebSocketRequest, Recorder<SocketEvent>, FakeByteStream) {
    let socket = session.webSocketRequest(to: "ws://a.test/", configuration: configuration)
    let events = socket.recorded()
    let stream = try await streams.streams.value(0)
    try await stream.accept()
    await events.wait(for: 1)
    return (socket, events, stream)
  }
}
