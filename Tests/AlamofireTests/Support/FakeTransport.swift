import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A transport without a network: answers as it is told, remembers what it was asked, and tells the observer
/// what a real one would.
final class FakeTransport: Transport {
  typealias Responder = @Sendable (_ request: WireRequest, _ index: Int) -> FakeReply

  private struct State {
    var replies: [FakeReply]
    var requests: [WireRequest] = []
    var valves: [FakeValve] = []
  }

  private let state: Mutex<State>
  private let responder: Responder
  /// Whether plain requests can go without a task.
  let isDirect: Bool
  /// Whether it says now and then, by chance, that it takes a task to send this one.
  private let isMoody: Bool

  /// The replies are used one a request, in their order; then `responder` answers.
  init(
    _ replies: FakeReply..., isDirect: Bool = true, isMoody: Bool = false,
    responder: @escaping Responder = { _, _ in .text("ok") }
  ) {
    state = Mutex(State(replies: replies))
    self.isDirect = isDirect
    self.isMoody = isMoody
    self.responder = responder
  }

  var requests: [WireRequest] { state.withLock { $0.requests } }
  var urls: [String] { requests.map(\.url) }
  var valves: [FakeValve] { state.withLock { $0.valves } }

  func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    guard !Task.isCancelled else { throw TransportFailure(.cancelled, "cancelled") }
    guard let exchange = begin(request, observer, FakeValve()) else {
      throw TransportFailure(.cancelled, "refused")
    }
    return try await exchange()
  }

  private typealias Exchange = @Sendable () async throws(TransportFailure) -> WireResponse

  /// What is done at once; `nil` when the transfer is not wanted any more.
  private func begin(
    _ request: WireRequest, _ observer: any TransferObserver, _ valve: FakeValve
  ) -> Exchange? {
    let (scripted, index) = state.withLock { state in
      state.requests.append(request)
      state.valves.append(valve)
      return (state.replies.isEmpty ? nil : state.replies.removeFirst(), state.requests.count - 1)
    }
    switch observer.transferBegan(valve) {
    case .go: break
    case .hold: valve.close()
    case .refuse:
      observer.transferEnded()
      return nil
    }
    return { () async throws(TransportFailure) in
      defer { observer.transferEnded() }
      return try await self.play(scripted ?? self.responder(request, index), request, observer, valve)
    }
  }

  private func play(
    _ reply: FakeReply, _ request: WireRequest, _ observer: any TransferObserver, _ valve: FakeValve
  ) async throws(TransportFailure) -> WireResponse {
    var count = ByteCount()
    try await pass(valve)
    count.expectedToSend = request.body.byteCount
    count.sent = request.body.byteCount
    if count.sent > 0 { observer.bytesMoved(count) }
    reply.reached?.open()
    if let gate = reply.gate { await gate.wait() }
    try await pass(valve)
    if !reply.hasHead, let failure = reply.failure { throw failure }
    let openings = valve.openings
    let disposition = observer.headReceived(reply.head)
    if disposition == .hold { valve.close(unlessOpenedSince: openings) }
    count.expectedToReceive = reply.head.block.value(of: "Content-Length").flatMap { Int64($0) } ?? -1
    let sink = disposition == .discard ? nil : request.sink
    var body = Data()
    do throws(TransportFailure) {
      try await move(reply, of: request, observer, valve, sink, &body, &count)
    } catch {
      throw error.with(partial: .init(head: reply.head, body: body.isEmpty ? nil : body))
    }
    return WireResponse(head: reply.head, body: body.isEmpty ? nil : body, metrics: TransferMetrics())
  }

  private func move(
    _ reply: FakeReply, of request: WireRequest, _ observer: any TransferObserver, _ valve: FakeValve,
    _ sink: (any BodySink)?, _ body: inout Data, _ count: inout ByteCount
  ) async throws(TransportFailure) {
    let room = FakeValve()
    if let failure = sink?.begin(reply.head, wake: { room.open() }) { throw failure }
    for chunk in reply.chunks {
      try await pass(valve)
      if let sink {
        try await put(chunk, into: sink, room)
      } else if request.sink == nil {
        body.append(chunk)
      }
      count.received += Int64(chunk.count)
      observer.bytesMoved(count)
    }
    if let failure = sink?.finish() { throw failure }
    if let failure = reply.failure { throw failure }
  }

  /// Offers a chunk again and again, as often as the sink makes room.
  private func put(
    _ chunk: Data, into sink: any BodySink, _ room: FakeValve
  ) async throws(TransportFailure) {
    while true {
      room.close()
      switch chunk.withUnsafeBytes({ sink.receive($0) }) {
      case .taken: return
      case .full: try await pass(room)
      case .failure(let failure): throw failure
      }
    }
  }

  private func pass(_ valve: FakeValve) async throws(TransportFailure) {
    await valve.pass()
    if Task.isCancelled { throw TransportFailure(.cancelled, "cancelled", metrics: TransferMetrics()) }
  }
}

extension FakeTransport: DirectTransport {
  func admit(_ visitor: any TransportVisitor) { Task { visitor.visit() } }

  func send(
    _ request: WireRequest, observer: any TransferObserver, answering receiver: any TransferReceiver
  ) -> Bool {
    if isMoody, Int.random(in: 0..<8) == 0 { return false }
    let valve = FakeValve()
    guard let exchange = begin(request, observer, valve) else {
      receiver.received(.failure(TransportFailure(.cancelled, "refused")))
      return true
    }
    // Nobody else looks at it until it has its answer.
    nonisolated(unsafe) let receiver = receiver
    valve.carry(
      by: Task {
        let outcome: Result<WireResponse, TransportFailure>
        do throws(TransportFailure) {
          outcome = .success(try await exchange())
        } catch {
          outcome = .failure(error)
        }
        receiver.received(outcome)
      })
    return true
  }
}

private let keptSessions = Recorder<Session>()

extension RequestBody {
  var byteCount: Int64 { max(0, count) }

  /// The bytes in memory; a source has none.
  var bytes: Data? {
    switch self {
    case .none, .source: nil
    case .bytes(let data): data
    }
  }
}

extension WireRequest {
  func value(_ name: String) -> String? { fields.first { FieldName.equal($0.name, name) }?.value }
}

extension Session {
  /// A session over a fake that lives as long as the tests: one that is released ends its requests.
  static func kept(
    fake: FakeTransport, configuration: URLSessionConfiguration = .uncached,
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    serializationQueue: DispatchQueue? = nil, interceptor: (any RequestInterceptor)? = nil,
    options: TransportOptions = TransportOptions(), watching: SessionWatching = SessionWatching()
  ) -> Session {
    let session = Session(
      fake: fake, configuration: configuration, startRequestsImmediately: startRequestsImmediately,
      requestSetup: requestSetup,
      serializationQueue: serializationQueue, interceptor: interceptor, options: options,
      watching: watching)
    keptSessions.add(session)
    return session
  }

  /// A session over a fake.
  convenience init(
    fake: FakeTransport, configuration: URLSessionConfiguration = .uncached,
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    serializationQueue: DispatchQueue? = nil, interceptor: (any RequestInterceptor)? = nil,
    options: TransportOptions = TransportOptions(), watching: SessionWatching = SessionWatching()
  ) {
    self.init(
      configuration: configuration, engine: Engine(transport: fake, direct: fake.isDirect ? fake : nil),
      watching: watching,
      startRequestsImmediately: startRequestsImmediately,
      requestSetup: requestSetup, serializationQueue: serializationQueue, interceptor: interceptor,
      transportOptions: options)
  }
}

extension DataRequest {
  /// Adds a plain handler and waits for it.
  func end() async -> AFDataResponse<Data?> {
    await withCheckedContinuation { continuation in
      response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }
}
