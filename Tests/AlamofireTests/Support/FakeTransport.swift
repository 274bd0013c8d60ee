import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Randomness
import Synchronization

/// A transport without a network. It replies as scripted, records its requests, and calls the observer as the engine
/// does.
final class FakeTransport: Transport {
  typealias Responder = @Sendable (_ request: WireRequest, _ index: Int) -> FakeReply

  private struct State {
    var replies: [FakeReply]
    var requests: [WireRequest] = []
    var controls: [FakeTransferControl] = []
  }

  private let state: Mutex<State>
  private let responder: Responder
  /// Whether its sessions have a thread of the engine, on which runs continue without a task.
  let isDirect: Bool
  /// Whether it begins a transfer after the call at random.
  private let sometimesBeginsLater: Bool
  private let random = Mutex(Seed.generator())

  /// Makes a transport. Each request uses one of the replies in order; then `responder` replies.
  init(
    _ replies: FakeReply..., isDirect: Bool = true, sometimesBeginsLater: Bool = false,
    responder: @escaping Responder = { _, _ in .text("ok") }
  ) {
    state = Mutex(State(replies: replies))
    self.isDirect = isDirect
    self.sometimesBeginsLater = sometimesBeginsLater
    self.responder = responder
  }

  var requests: [WireRequest] { state.withLock { $0.requests } }
  var urls: [String] { requests.map(\.url) }
  var controls: [FakeTransferControl] { state.withLock { $0.controls } }

  func send(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    let start = { @Sendable [self] in
      let control = FakeTransferControl()
      guard let exchange = begin(request, observer, control) else {
        return completion.transferEnded(.failure(TransportFailure(.cancelled, "refused")))
      }
      control.carry(
        by: Task.detached {
          let outcome: Result<WireResponse, TransportFailure>
          do throws(TransportFailure) {
            outcome = .success(try await exchange())
          } catch {
            outcome = .failure(error)
          }
          completion.transferEnded(outcome)
        })
    }
    // As an engine that is called from another thread begins.
    if sometimesBeginsLater, random.withLock({ $0.next() }) % 8 == 0 {
      Task.detached { start() }
    } else {
      start()
    }
  }

  private typealias Exchange = @Sendable () async throws(TransportFailure) -> WireResponse

  /// Returns the reply if it is synchronous; `nil` if the transfer was cancelled.
  private func begin(
    _ request: WireRequest, _ observer: any TransferObserver, _ control: FakeTransferControl
  ) -> Exchange? {
    let (scripted, index) = state.withLock { state in
      state.requests.append(request)
      state.controls.append(control)
      return (state.replies.isEmpty ? nil : state.replies.removeFirst(), state.requests.count - 1)
    }
    switch observer.transferBegan(control) {
    case .go: break
    case .hold: control.suspend()
    case .refuse:
      observer.transferEnded()
      return nil
    }
    return { () async throws(TransportFailure) in
      defer { observer.transferEnded() }
      return try await self.play(scripted ?? self.responder(request, index), request, observer, control)
    }
  }

  private func play(
    _ reply: FakeReply, _ request: WireRequest, _ observer: any TransferObserver,
    _ control: FakeTransferControl
  ) async throws(TransportFailure) -> WireResponse {
    var count = ByteCount()
    try await pass(control)
    count.expectedToSend = request.body.byteCount
    count.sent = request.body.byteCount
    if count.sent > 0 { observer.bytesMoved(count) }
    reply.reached?.open()
    if let gate = reply.gate { await gate.wait() }
    try await pass(control)
    if !reply.hasHead, let failure = reply.failure { throw failure }
    let openings = control.resumptions
    let disposition = observer.headReceived(reply.head)
    if disposition == .hold { control.suspend(unlessResumedSince: openings) }
    if disposition == .discard {
      return WireResponse(head: reply.head, body: nil, metrics: reply.metrics, isBodyDiscarded: true)
    }
    count.expectedToReceive = reply.head.block.value(of: "Content-Length").flatMap { Int64($0) } ?? -1
    var body = Data()
    do throws(TransportFailure) {
      try await move(reply, of: request, observer, control, request.sink, &body, &count)
    } catch {
      throw error.with(partial: .init(head: reply.head, body: body.isEmpty ? nil : body))
    }
    return WireResponse(head: reply.head, body: body.isEmpty ? nil : body, metrics: reply.metrics)
  }

  private func move(
    _ reply: FakeReply, of request: WireRequest, _ observer: any TransferObserver,
    _ control: FakeTransferControl,
    _ sink: (any BodySink)?, _ body: inout Data, _ count: inout ByteCount
  ) async throws(TransportFailure) {
    let room = FakeTransferControl()
    if let failure = sink?.begin(reply.head, wake: { room.resume() }) { throw failure }
    for chunk in reply.chunks {
      try await pass(control)
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

  /// Gives a chunk to a sink, and waits until it has room for more.
  private func put(
    _ chunk: Data, into sink: any BodySink, _ room: FakeTransferControl
  ) async throws(TransportFailure) {
    room.suspend()
    switch chunk.withUnsafeBytes({ sink.receive($0) }) {
    case .more: return
    case .pause: try await pass(room)
    case .failure(let failure): throw failure
    }
  }

  private func pass(_ control: FakeTransferControl) async throws(TransportFailure) {
    await control.pass()
    if Task.isCancelled { throw TransportFailure(.cancelled, "cancelled", metrics: TransferMetrics()) }
  }
}

private let keptSessions = Recorder<Session>()

extension RequestBody {
  var byteCount: Int64 { max(0, count) }

  /// The bytes in memory; `nil` for a source.
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
  /// Returns a session with a fake transport. It is never released, because its release would end its requests.
  static func retained(
    fake: FakeTransport, configuration: URLSessionConfiguration = .uncached,
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    serializationQueue: DispatchQueue? = nil, interceptor: (any RequestInterceptor)? = nil,
    options: TransportOptions = TransportOptions(), observers: SessionObservers = SessionObservers()
  ) -> Session {
    let session = Session(
      fake: fake, configuration: configuration, startRequestsImmediately: startRequestsImmediately,
      requestSetup: requestSetup,
      serializationQueue: serializationQueue, interceptor: interceptor, options: options,
      observers: observers)
    keptSessions.add(session)
    return session
  }

  /// Makes a session with a fake transport.
  convenience init(
    fake: FakeTransport, configuration: URLSessionConfiguration = .uncached,
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    serializationQueue: DispatchQueue? = nil, interceptor: (any RequestInterceptor)? = nil,
    options: TransportOptions = TransportOptions(), observers: SessionObservers = SessionObservers()
  ) {
    let enqueue: @Sendable (any LoopWork) -> Void = { work in Task { work.runOnLoop() } }
    self.init(
      configuration: configuration,
      engine: Engine(transport: fake, enqueue: fake.isDirect ? enqueue : nil), observers: observers,
      startRequestsImmediately: startRequestsImmediately,
      requestSetup: requestSetup, serializationQueue: serializationQueue, interceptor: interceptor,
      transportOptions: options)
  }
}

extension DataRequest {
  /// Adds a handler without a serializer and waits for it.
  func end() async -> AFDataResponse<Data?> {
    await withCheckedContinuation { continuation in
      response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }
}
