import Glibc
import HTTPWire
import Synchronization

/// The running part of a server, which its threads retain. The threads never retain ``HTTPTestServer`` itself, so
/// that its release can stop them.
///
/// Threads: one accepts and joins the others, and each connection has one. All wait in `poll`, and every
/// such wait also ends by the stop signal.
final class ServerCore: Sendable {
  /// The requests, replies and connections, for the server and tests.
  let state = Mutex(ServerState())
  let stopSignal: Waker
  let threads: ConnectionThreads
  let routes: Routes
  let tls: TLSContext?
  let port: Int
  let scheme: String

  init(_ security: HTTPTestServer.Security, port: Int, routes: Routes) throws(ServerError) {
    switch security {
    case .none:
      tls = nil
      scheme = "http"
    case .tls(let identity, let options):
      tls = try TLSContext(identity, options)
      scheme = "https"
    }
    self.routes = routes
    stopSignal = try Waker()
    threads = try ConnectionThreads()
    let listener = try Listener(backlog: 1024, port: port)
    self.port = listener.port
    let thread = try ServerThread.start { self.acceptConnections(from: listener) }
    state.withLock { $0.acceptor = thread }
  }

  // MARK: Stopping

  /// Ends all threads and waits for them, unless it is called from one of them.
  func stop() {
    guard let deliveries = state.withLock({ $0.stop() }) else { return }
    stopSignal.wake()
    for (waiter, result) in deliveries { waiter.resume(returning: result) }
    guard let thread = state.withLock({ $0.acceptor.take() }) else { return }
    threads.release(acceptor: thread)
  }

  // MARK: The accepting thread

  private func acceptConnections(from listener: Listener) {
    while let descriptor = listener.next(until: stopSignal, joining: threads) {
      let connection = AcceptedConnection(descriptor)
      let (id, effect) = state.withLock { $0.accepted(connection) }
      do throws(ServerError) {
        try threads.start { self.serve(id, connection, effect) }
      } catch {
        state.withLock { $0.connections[id] = nil }
        connection.end()
      }
    }
    threads.joinAll()
  }

  // MARK: The thread of a connection

  private func serve(_ id: Int, _ connection: AcceptedConnection, _ effect: ConnectionEffect) {
    let channel = Channel(descriptor: connection.descriptor, stopSignal: stopSignal)
    Conversation(id: id, connection, channel: channel, core: self).run(effect)
    state.withLock { $0.connections[id] = nil }
    connection.end()
  }
}

extension ServerCore {
  func received(byteCount: Int) {
    state.withLock { $0.receivedByteCount += byteCount }
  }

  func record(_ request: RecordedRequest) {
    deliver(state.withLock { $0.record(request) })
  }

  /// Takes the next scripted reply, if there is one.
  func nextScriptedReply() -> Reply? {
    state.withLock { $0.replies.isEmpty ? nil : $0.replies.removeFirst() }
  }

  /// Sends FIN on every connection without a request.
  func closeIdleConnections() {
    for connection in state.withLock({ Array($0.connections.values) }) { connection.closeIfIdle() }
  }

  func takeRequest(timeout: Duration) async throws(ServerError) -> RecordedRequest {
    let id = state.withLock { $0.makeWaiterID() }
    // A later time would not fit into the clock.
    let deadline = ContinuousClock.now.advanced(by: min(timeout, .seconds(1_000_000_000)))
    let timer = Task {
      do { try await Task.sleep(until: deadline, clock: .continuous) } catch { return }
      deliver(state.withLock { $0.giveUp(id, .timedOut(after: timeout)) })
    }
    defer { timer.cancel() }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        // Without time left, the task does not wait for its timer.
        let refusal: ServerError? = ContinuousClock.now < deadline ? nil : .timedOut(after: timeout)
        deliver(state.withLock { $0.take(for: id, waiter, orElse: refusal) })
      }
    } onCancel: {
      deliver(state.withLock { $0.giveUp(id, .cancelled) })
    }
    return try result.get()
  }

  private func deliver(_ delivery: ServerState.Delivery?) {
    if let (waiter, result) = delivery { waiter.resume(returning: result) }
  }
}

/// The state of the server; guarded by the lock of ``ServerCore``.
struct ServerState {
  typealias Waiter = CheckedContinuation<Result<RecordedRequest, ServerError>, Never>

  /// A result for a waiting task; resumed after the lock has been released.
  typealias Delivery = (waiter: Waiter, result: Result<RecordedRequest, ServerError>)

  private(set) var isStopped = false
  var replies: [Reply] = []
  var connectionEffects: [ConnectionEffect] = []
  private(set) var recorded: [RecordedRequest] = []
  private var takenCount = 0
  private var waiterCount = 0
  /// The ends of waits that have not begun. The timer or the cancellation of a task may precede its registration.
  private(set) var coming: [Int: [ServerError]] = [:]
  private var waiters: [(id: Int, waiter: Waiter)] = []
  private(set) var acceptedCount = 0
  var receivedByteCount = 0
  /// The accepting thread; `nil` once it has been claimed for joining.
  var acceptor: pthread_t?
  /// The open connections, by their numbers.
  var connections: [Int: AcceptedConnection] = [:]

  // MARK: Requests

  /// Records a request; the task that has waited longest receives it.
  mutating func record(_ request: RecordedRequest) -> Delivery? {
    recorded.append(request)
    guard !waiters.isEmpty else { return nil }
    takenCount += 1
    return (waiters.removeFirst().waiter, .success(request))
  }

  /// Returns the number of a wait, which begins with ``take(for:_:orElse:)`` and can be given up from now on.
  mutating func makeWaiterID() -> Int {
    waiterCount += 1
    coming[waiterCount] = []
    return waiterCount
  }

  /// Returns the delivery of the next request, or registers the waiting task.
  ///
  /// - Parameter refusal: The reason why the task does not wait; `nil` if it does.
  mutating func take(for id: Int, _ waiter: Waiter, orElse refusal: ServerError?) -> Delivery? {
    let ends = coming.removeValue(forKey: id) ?? []
    if ends.contains(.cancelled) { return (waiter, .failure(.cancelled)) }
    if takenCount < recorded.count {
      takenCount += 1
      return (waiter, .success(recorded[takenCount - 1]))
    }
    if isStopped { return (waiter, .failure(.stopped)) }
    if let end = ends.first ?? refusal { return (waiter, .failure(end)) }
    waiters.append((id, waiter))
    return nil
  }

  /// Ends the wait of a task, also if it has not begun.
  mutating func giveUp(_ id: Int, _ error: ServerError) -> Delivery? {
    guard let index = waiters.firstIndex(where: { $0.id == id }) else {
      coming[id]?.append(error)
      return nil
    }
    return (waiters.remove(at: index).waiter, .failure(error))
  }

  mutating func forgetRequests() {
    recorded.removeAll()
    takenCount = 0
  }

  // MARK: Connections

  /// Registers an accepted connection; returns its number and its failure.
  mutating func accepted(_ connection: AcceptedConnection) -> (id: Int, effect: ConnectionEffect) {
    let id = acceptedCount
    acceptedCount += 1
    connections[id] = connection
    return (id, connectionEffects.isEmpty ? .none : connectionEffects.removeFirst())
  }

  /// Returns the deliveries for the tasks that wait; `nil` if the server is already stopped.
  mutating func stop() -> [Delivery]? {
    guard !isStopped else { return nil }
    isStopped = true
    defer { waiters.removeAll() }
    return waiters.map { ($0.waiter, .failure(.stopped)) }
  }
}

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex
