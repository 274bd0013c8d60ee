import FoundationEssentials
import Glibc
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@testable import HTTPEngine

/// A connection in memory to the test.
final class MemoryPipe: Pipe {
  var descriptor: Int32 { -1 }
  var owner: (any PipeOwner)?
  var keepsWrites: Bool { false }
  var isDrained: Bool {
    if incoming.isEmpty, case .waitsToRead = afterIncoming { true } else { false }
  }
  /// The bytes that the client has not read yet, and what comes after them.
  var incoming: [UInt8] = []
  var afterIncoming = PipeStep.waitsToRead
  /// The bytes of the client.
  private(set) var written: [UInt8] = []
  /// The number of bytes that may still be written; then ``afterRoom`` is the answer.
  var room = Int.max
  var afterRoom = PipeStep.waitsToWrite
  private(set) var isClosed = false
  /// The number of bytes of files that may be sent without reading them.
  var fileRoom = 0
  /// The number of bytes of files that were sent without reading them.
  private(set) var sentOfFiles = 0

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    let count = min(room.count, incoming.count)
    guard count > 0 else { return afterIncoming }
    room.copyBytes(from: incoming[..<count])
    incoming.removeFirst(count)
    return .moved(count)
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep {
    let count = min(room, bytes.count)
    guard count > 0 else { return afterRoom }
    room -= count
    written += bytes.prefix(count)
    return .moved(count)
  }

  func write(_ count: Int, ofFile file: Int32) -> PipeStep? {
    guard fileRoom > 0 else { return nil }
    guard room > 0 else { return afterRoom }
    var bytes = [UInt8](repeating: 0, count: min(count, room, fileRoom))
    let read = Glibc.read(file, &bytes, bytes.count)
    guard read > 0 else { return nil }
    written += bytes.prefix(read)
    room -= read
    fileRoom -= read
    sentOfFiles += read
    return .moved(read)
  }

  func shutWriting() -> PipeStep { .moved(0) }

  func close() {
    isClosed = true
    owner = nil
  }
}

/// The state of a loop, which is used on its thread alone.
private struct LoopReference: @unchecked Sendable {
  let core: LoopCore
}

/// A pool on the thread of a loop, with connections in memory.
final class ConnectionFixture {
  /// The outcome of an exchange.
  ///
  /// Unchecked, because what follows it runs on the thread of the loop.
  final class Ending: TransferCompletion, @unchecked Sendable {
    private let state = Mutex<Result<WireResponse, TransportFailure>?>(nil)
    private let next: (() -> Void)?

    /// Makes an outcome that has not come yet, and that `next` follows at once.
    init(then next: (() -> Void)? = nil) { self.next = next }

    var outcome: Result<WireResponse, TransportFailure>? { state.withLock { $0 } }

    func transferEnded(_ outcome: Result<WireResponse, TransportFailure>) {
      state.withLock { $0 = outcome }
      next?()
    }

    var status: Int? { try? outcome?.get().head.status }
    var text: String? { try? outcome?.get().text }

    var failure: TransportFailure? {
      guard case .failure(let failure) = outcome else { return nil }
      return failure
    }
  }

  let core: LoopCore
  let pool: Pool
  private let profile: ConnectionProfile
  /// The port to which the pool connects. It does not answer, so that connecting never succeeds within a test.
  private let silent: UnresponsivePort
  private let url: String
  private let origin: Origin
  private var begun: [(exchange: Exchange, ending: Ending)] = []
  private var neighbours: [ConnectionFixture] = []

  /// Runs a test on the thread of a separate loop.
  static func run(
    connections: Int = 6, scheme: String = "http", port: Int? = nil,
    _ change: @escaping @Sendable (inout TransportOptions) -> Void = { _ in },
    _ body: @escaping @Sendable (ConnectionFixture) throws -> Void
  ) async throws {
    let silent = try UnresponsivePort()
    let loop = EventLoop(lingering: .milliseconds(50))
    let reference = await withCheckedContinuation { continuation in
      loop.post(.run { continuation.resume(returning: LoopReference(core: $0)) })
    }
    // In the task of the test, so that its issues belong to the test.
    try await withTaskExecutorPreference(loop) {
      let profile = Client.profile(connections, change)
      let fixture = try ConnectionFixture(reference.core, profile, silent, scheme, port ?? silent.port)
      defer { fixture.end() }
      try body(fixture)
    }
  }

  private init(
    _ core: LoopCore, _ profile: ConnectionProfile, _ silent: UnresponsivePort, _ scheme: String, _ port: Int,
    _ group: HostGroup? = nil
  ) throws {
    self.core = core
    self.profile = profile
    self.silent = silent
    url = "\(scheme)://127.0.0.1:\(port)/"
    origin = try #require(Origin(url: url))
    let key = try ConnectionKey(origin, Route(to: origin, profile.options), profile, isAlternative: false)
    pool = Pool(key, group ?? HostGroup(limit: profile.connectionsPerHost), core.exchanges)
  }

  /// Returns another pool of the same host.
  func neighbour() throws -> ConnectionFixture {
    let neighbour = try ConnectionFixture(core, profile, silent, origin.scheme, origin.port, pool.group)
    neighbours.append(neighbour)
    return neighbour
  }

  /// Ends what the test has left over.
  private func end() {
    for (exchange, ending) in begun where ending.outcome == nil {
      core.exchanges.abandon(exchange, LoopExchanges.cancelled)
    }
    pool.closeAll()
    for neighbour in neighbours { neighbour.end() }
  }

  /// Submits a request as the loop does, so that it gets a pool of the loop's own.
  func submit(
    _ method: String = "GET", _ body: RequestBody = .none, ticket: UInt64 = 1, idleTimeout: Duration? = nil,
    then next: (() -> Void)? = nil
  ) throws -> (Exchange, Ending) {
    let ending = Ending(then: next)
    let request = WireRequest(url: url, origin: origin, profile: profile) { parts in
      parts.method = method
      parts.body = body
      parts.idleTimeout = idleTimeout
    }
    core.exchanges.submit(request, ticket: ticket, observer: Watcher(), completion: ending)
    let exchange = try #require(core.exchanges.exchanges[ticket])
    begun.append((exchange, ending))
    return (exchange, ending)
  }

  // MARK: Connections

  private func facts(_ pipe: MemoryPipe, _ tls: TLSConnection?) -> ConnectionFacts {
    ConnectionFacts(of: pipe, tls, ConnectionFacts.Times(), isProxied: false)
  }

  func http1(_ pipe: MemoryPipe, _ tls: TLSConnection? = nil, for pool: Pool? = nil) -> HTTP1Connection {
    HTTP1Connection(pipe, tls, facts(pipe, tls), for: pool ?? self.pool)
  }

  func http2(
    _ pipe: MemoryPipe, _ tls: TLSConnection? = nil, for pool: Pool? = nil
  ) throws -> HTTP2Connection {
    try #require(
      HTTP2Connection(pipe, tls, facts(pipe, tls), headerSizeLimit: 262_144, for: pool ?? self.pool))
  }

  /// Gives a pool a connection in memory instead of the first one that it begins.
  func open(
    _ pipe: MemoryPipe, _ tls: TLSConnection? = nil, for pool: Pool? = nil
  ) throws -> HTTP1Connection {
    let pool = pool ?? self.pool
    let maker = try #require(pool.pending.first)
    let connection = http1(pipe, tls, for: pool)
    maker.cancel()
    pool.opened(connection, by: maker)
    return connection
  }

  /// Fails the first connection that the pool makes.
  func failFirst() throws {
    let maker = try #require(pool.pending.first)
    maker.cancel()
    pool.failed(TransportFailure(.cannotConnectToHost, "No connection."), ConnectionFacts.Times(), by: maker)
  }

  /// Suspends an exchange as one whose login has begun: it stays in its pool.
  func suspendInPool(_ exchange: Exchange) {
    guard exchange.phase == .connecting else { return core.exchanges.suspend(exchange) }
    exchange.flow.suspend()
    pool.suspend(exchange)
  }

  /// Makes an exchange that does not belong to a pool.
  func exchange(
    _ method: String = "GET", _ body: RequestBody = .none, fields: [HTTPHeader] = [], ticket: UInt64 = 1,
    trailers: RequestTrailers? = nil, idleTimeout: Duration? = nil, isQuestion: Bool = false,
    sink: (any BodySink)? = nil, observer: Watcher = Watcher(), then next: (() -> Void)? = nil
  ) throws -> (Exchange, Ending) {
    let request = WireRequest(url: url, origin: origin, profile: profile) { parts in
      parts.method = method
      parts.body = body
      parts.fields = fields
      parts.trailers = trailers
      parts.idleTimeout = idleTimeout
      parts.isQuestion = isQuestion
      parts.sink = sink
    }
    let ending = Ending(then: next)
    let exchange = Exchange(core.exchanges)
    exchange.begin(request, ticket: ticket, observer: observer, completion: ending)
    exchange.phase = .connecting
    begun.append((exchange, ending))
    return (exchange, ending)
  }
}
