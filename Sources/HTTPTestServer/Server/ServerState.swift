import Glibc
import HTTPWire

/// The state of the server; guarded by the lock of ``ServerCore``.
struct ServerState {
  /// A connection that is open. The descriptor is valid as long as the entry is there.
  struct Connection {
    let descriptor: Int32
    var isIdle = false
    var thread: pthread_t?
  }

  typealias Waiter = CheckedContinuation<Result<RecordedRequest, ServerError>, Never>

  /// A result for a waiting task; resumed after the lock has been released.
  typealias Delivery = (waiter: Waiter, result: Result<RecordedRequest, ServerError>)

  private(set) var isStopped = false
  var replies: [Reply] = []
  var connectionEffects: [ConnectionEffect] = []
  private(set) var recorded: [RecordedRequest] = []
  private var takenCount = 0
  private var waiterCount = 0
  private var waiters: [(id: Int, waiter: Waiter)] = []
  private(set) var acceptedCount = 0
  var receivedByteCount = 0
  /// The accepting thread; `nil` once it has been claimed for joining.
  var acceptor: pthread_t?
  var connections: [Int: Connection] = [:]

  // MARK: Requests

  /// Records a request; the task that has waited longest receives it.
  mutating func record(_ request: RecordedRequest) -> Delivery? {
    recorded.append(request)
    guard !waiters.isEmpty else { return nil }
    takenCount += 1
    return (waiters.removeFirst().waiter, .success(request))
  }

  mutating func makeWaiterID() -> Int {
    waiterCount += 1
    return waiterCount
  }

  /// Returns the delivery of the next request, or registers the waiting task.
  mutating func take(for id: Int, _ waiter: Waiter, isCancelled: Bool) -> Delivery? {
    if isCancelled { return (waiter, .failure(.cancelled)) }
    if takenCount < recorded.count {
      takenCount += 1
      return (waiter, .success(recorded[takenCount - 1]))
    }
    if isStopped { return (waiter, .failure(.stopped)) }
    waiters.append((id, waiter))
    return nil
  }

  /// Ends the wait of a task.
  mutating func giveUp(_ id: Int, _ error: ServerError) -> Delivery? {
    guard let index = waiters.firstIndex(where: { $0.id == id }) else { return nil }
    return (waiters.remove(at: index).waiter, .failure(error))
  }

  mutating func forgetRequests() {
    recorded.removeAll()
    takenCount = 0
  }

  // MARK: Connections

  /// Registers an accepted connection; returns its number and its failure.
  mutating func accepted(_ descriptor: Int32) -> (id: Int, effect: ConnectionEffect) {
    let id = acceptedCount
    acceptedCount += 1
    connections[id] = Connection(descriptor: descriptor)
    return (id, connectionEffects.isEmpty ? .none : connectionEffects.removeFirst())
  }

  /// Removes a connection, so that its descriptor is not used any more.
  mutating func closing(_ id: Int) {
    connections[id] = nil
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
