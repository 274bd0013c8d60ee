import HTTPWire
import Synchronization

/// The transfers of a session that several requests wait for (``TransportOptions/sharesIdenticalRequests``).
///
/// A transfer forwards its events to all of its requests. It is cancelled when the last of them has left.
package final class SharedTransfers: Sendable {
  typealias Outcome = Result<WireResponse, TransportFailure>

  /// The properties in which requests must agree to share a transfer.
  struct Key: Hashable {
    private let url: String
    private let fields: [HTTPHeader]
    private let profile: ConnectionProfile
    private let idleTimeout: Duration?
    private let alternative: AlternativeService?
    private let era: UInt64
    /// Keeps a request that follows a removal from a transfer that began before it, because the response may be
    /// stored.
    private let removalCount: UInt64

    init(_ request: WireRequest, in era: UInt64, removalCount: UInt64) {
      self.removalCount = removalCount
      url = request.url
      fields = request.fields
      profile = request.profile
      idleTimeout = request.idleTimeout
      alternative = request.alternative
      self.era = era
    }

    /// Compares bytes, because strings with different bytes can be equal in Swift, but not to a server.
    static func == (left: Key, right: Key) -> Bool {
      left.url == right.url && left.hasOptions(of: right) && left.idleTimeout == right.idleTimeout
        && left.alternative == right.alternative && left.era == right.era
        && left.removalCount == right.removalCount
        && left.fields.elementsEqual(right.fields) {
          $0.name.hasBytes(of: $1.name) && $0.value.hasBytes(of: $1.value)
        }
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(url)
      hasher.combine(era)
      hasher.combine(removalCount)
    }

    /// Whether the options are equal. Requests with their own options each have their own profile.
    private func hasOptions(of other: Key) -> Bool {
      if profile === other.profile { return true }
      let (own, others) = (profile.options, other.profile.options)
      return own == others && Self.names(in: own) == Self.names(in: others)
    }

    /// Returns the names in the options that the system compares by their bytes.
    private static func names(in options: TransportOptions) -> [ByteText?] {
      [options.unixSocket, options.localInterface, options.netrcFile].map { $0.map { ByteText($0) } }
    }
  }

  /// A request that waits for a transfer.
  struct Member {
    let id: UInt64
    let observer: any TransferObserver
    var continuation: CheckedContinuation<Outcome, Never>?
    /// Whether the observer has received the head.
    var knowsHead: Bool
    let room: LocalTransferControl
    var priority: Float
  }

  struct Flight {
    let number: UInt64
    var members: [Member] = []
    /// The highest priority of the members.
    var priority: Float
    var head: ResponseHead?
    var count = ByteCount()
    var control: (any TransferControl)?

    /// Determines the highest priority after a change of the members. Returns whether it is another one.
    mutating func renewPriority() -> Bool {
      let highest = members.reduce(Float(0)) { max($0, $1.priority) }
      defer { priority = highest }
      return highest != priority
    }
  }

  /// The requests that have left a transfer while its event is passed on. They end after that, because the event may
  /// still reach their observers.
  private struct Leaving {
    var ids: Set<UInt64> = []
    var continuations: [CheckedContinuation<Outcome, Never>] = []
  }

  private struct State {
    var flights: [Key: Flight] = [:]
    /// The transfers whose event is passed on, by their numbers.
    var leaving: [UInt64: Leaving] = [:]
    /// The priorities of requests that have not joined yet, by their numbers.
    var reserved: [UInt64: Float] = [:]
    /// The keys of the requests that have joined, by their numbers.
    var keys: [UInt64: Key] = [:]
    /// Outcomes of requests that do not wait yet, with the last byte counts.
    var outcomes: [UInt64: (outcome: Outcome, count: ByteCount)] = [:]
    var lastNumber: UInt64 = 0

    /// Notes that a request leaves a transfer. Returns its continuation, unless it has to wait for an event.
    mutating func leave(_ flight: UInt64, _ member: Member) -> CheckedContinuation<Outcome, Never>? {
      guard leaving[flight] != nil else { return member.continuation }
      if let continuation = member.continuation {
        leaving[flight]?.continuations.append(continuation)
      } else {
        leaving[flight]?.ids.insert(member.id)
      }
      return nil
    }
  }

  /// The shared transfers and their requests, for the loop, attempts and the threads of users.
  private let state = Mutex(State())
  /// The number of unsafe requests that were answered.
  private let lastEra = Atomic<UInt64>(0)

  /// The number of the current era. Requests of different eras share no transfer, because the resource may have
  /// changed in between.
  var era: UInt64 { lastEra.load(ordering: .acquiring) }

  /// Begins another era after a request that may have changed a resource, so that later requests fetch the new state.
  func beginEra() { lastEra.wrappingAdd(1, ordering: .releasing) }

  /// The number of requests that wait; for tests.
  package var memberCount: Int {
    state.withLock { state in state.flights.values.reduce(0) { $0 + $1.members.count } }
  }

  /// The result of joining a transfer.
  enum Membership {
    /// No transfer is running; the caller has to begin the one with this number.
    case first(flight: UInt64)
    /// A transfer is running; `head` is its head, if received.
    case joined(head: ResponseHead?)
    /// The request was cancelled before it joined.
    case left
  }

  /// Returns a number for a request that is about to join.
  func reserve(priority: Float = 0.5) -> UInt64 {
    state.withLock { state in
      state.lastNumber += 1
      state.reserved[state.lastNumber] = priority
      return state.lastNumber
    }
  }

  func join(_ key: Key, _ id: UInt64, _ observer: any TransferObserver, _ room: LocalTransferControl)
    -> Membership
  {
    let (membership, isMoreUrgent) = state.withLock { state -> (Membership, Bool) in
      guard let priority = state.reserved.removeValue(forKey: id) else { return (.left, false) }
      state.keys[id] = key
      let head = state.flights[key]?.head
      let member = Member(id: id, observer: observer, knowsHead: head == nil, room: room, priority: priority)
      if let earlier = state.flights[key]?.priority {
        state.flights[key]?.members.append(member)
        state.flights[key]?.priority = max(priority, earlier)
        return (.joined(head: head), priority > earlier)
      }
      state.lastNumber += 1
      state.flights[key] = Flight(number: state.lastNumber, members: [member], priority: priority)
      return (.first(flight: state.lastNumber), false)
    }
    if isMoreUrgent { alignPriority(key) }
    return membership
  }

  /// Notes the priority of a request. The transfer has the highest one of its requests.
  func prioritize(_ id: UInt64, _ priority: Float) {
    let changed = state.withLock { state -> Key? in
      if state.reserved[id] != nil {
        state.reserved[id] = priority
        return nil
      }
      guard let key = state.keys[id],
        let index = state.flights[key]?.members.firstIndex(where: { $0.id == id })
      else { return nil }
      state.flights[key]?.members[index].priority = priority
      return state.flights[key]?.renewPriority() == true ? key : nil
    }
    if let changed { alignPriority(changed) }
  }

  /// Gives a transfer the priority of its requests. Compares again afterwards, because another thread may have changed
  /// it.
  ///
  /// - Parameter sent: The priority that the transfer has; `nil` if it is not known.
  private func alignPriority(_ key: Key, from sent: Float? = nil) {
    var known = sent
    while true {
      let (priority, control) = state.withLock { ($0.flights[key]?.priority, $0.flights[key]?.control) }
      guard let priority, let control, priority != known else { return }
      control.setPriority(priority)
      known = priority
    }
  }

  /// Records that a request has received the head and the byte counts `reported`. Returns the counts that the request
  /// has to receive first, because they are different; later counts would otherwise overtake these.
  func knowsHead(_ key: Key, _ id: UInt64, after reported: ByteCount) -> ByteCount? {
    state.withLock { state in
      guard let index = state.flights[key]?.members.firstIndex(where: { $0.id == id }) else {
        // The transfer may have ended in the meantime.
        return state.outcomes[id].flatMap { $0.count == reported ? nil : $0.count }
      }
      if let count = state.flights[key]?.count, count != reported { return count }
      state.flights[key]?.members[index].knowsHead = true
      return nil
    }
  }

  /// Waits for the outcome; returns at once if it is known or the request has left.
  func outcome(_ key: Key, _ id: UInt64) async -> Outcome {
    await withCheckedContinuation { continuation in
      let outcome = state.withLock { state -> Outcome? in
        if let outcome = state.outcomes.removeValue(forKey: id)?.outcome { return outcome }
        if let index = state.flights[key]?.members.firstIndex(where: { $0.id == id }) {
          state.flights[key]?.members[index].continuation = continuation
          return nil
        }
        guard let flight = state.leaving.first(where: { $0.value.ids.contains(id) })?.key else {
          return .failure(.left)
        }
        state.leaving[flight]?.continuations.append(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }

  /// Removes a request, which ends when no event can reach it any more. If it is the last one, the transfer is
  /// cancelled.
  func leave(_ id: UInt64) {
    let (continuation, control, changed) = state.withLock {
      state -> (CheckedContinuation<Outcome, Never>?, (any TransferControl)?, Key?) in
      state.reserved[id] = nil
      guard let key = state.keys.removeValue(forKey: id), let number = state.flights[key]?.number,
        let index = state.flights[key]?.members.firstIndex(where: { $0.id == id }),
        let member = state.flights[key]?.members.remove(at: index)
      else { return (nil, nil, nil) }
      let continuation = state.leave(number, member)
      guard state.flights[key]?.members.isEmpty == true else {
        return (continuation, nil, state.flights[key]?.renewPriority() == true ? key : nil)
      }
      return (continuation, state.flights.removeValue(forKey: key)?.control, nil)
    }
    control?.cancel()
    if let changed { alignPriority(changed) }
    continuation?.resume(returning: .failure(.left))
  }

  // MARK: The transfer

  /// Notes the control of a transfer that was sent with a priority.
  func began(
    _ key: Key, _ flight: UInt64, _ control: any TransferControl,
    priority: Float = 0.5
  ) -> TransferStart {
    let start = state.withLock { state -> TransferStart in
      guard state.flights[key]?.number == flight else { return .refuse }
      state.flights[key]?.control = control
      return .go
    }
    if start == .go { alignPriority(key, from: priority) }
    return start
  }

  /// Passes the head to the requests. Returns whether none of them needs the body.
  func headCame(_ key: Key, _ flight: UInt64, _ head: ResponseHead) -> Bool {
    let members = beginEvent(of: flight, key) { $0.head = head }
    defer { endEvent(of: flight) }
    return members.reduce(!members.isEmpty) { $1.notify(head) == .discard && $0 }
  }

  func bytesMoved(_ key: Key, _ flight: UInt64, _ count: ByteCount) {
    let members = beginEvent(of: flight, key) { $0.count = count }
    for member in members where member.knowsHead { member.observer.bytesMoved(count) }
    endEvent(of: flight)
  }

  /// Records an event of a transfer, and returns the requests to which it is passed on.
  private func beginEvent(of flight: UInt64, _ key: Key, _ change: @Sendable (inout Flight) -> Void)
    -> [Member]
  {
    state.withLock { state -> [Member] in
      guard var changed = state.flights[key], changed.number == flight else { return [] }
      change(&changed)
      state.flights[key] = changed
      state.leaving[flight] = Leaving()
      return changed.members
    }
  }

  /// Ends the requests that have left the transfer during its event.
  private func endEvent(of flight: UInt64) {
    let left = state.withLock { $0.leaving.removeValue(forKey: flight) }
    for continuation in left?.continuations ?? [] { continuation.resume(returning: .failure(.left)) }
  }

  func ended(_ key: Key, _ flight: UInt64, _ outcome: Outcome) {
    let members = state.withLock { state -> [Member] in
      guard state.flights[key]?.number == flight else { return [] }
      guard let ended = state.flights.removeValue(forKey: key) else { return [] }
      for member in ended.members {
        state.keys[member.id] = nil
        if member.continuation == nil { state.outcomes[member.id] = (outcome, ended.count) }
      }
      return ended.members
    }
    for member in members { member.continuation?.resume(returning: outcome) }
  }
}

extension SharedTransfers.Member {
  func notify(_ head: ResponseHead) -> HeadDisposition {
    let openings = room.resumptions
    let disposition = observer.headReceived(head)
    if disposition == .hold { room.suspend(unlessResumedSince: openings) }
    return disposition
  }
}

extension TransportFailure {
  fileprivate static var left: TransportFailure {
    TransportFailure(.cancelled, "The request was cancelled; others may wait for the same transfer.")
  }
}

/// Sends a request, or joins the transfer of an identical one.
struct SharedTransport: AsyncTransport {
  let shared: SharedTransfers
  let transport: any Transport
  /// The cache of the session. A request after a removal from it has a different key.
  let store: (any ResponseStore)?

  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let room = LocalTransferControl(deadline: request.deadline, request.profile.options.timeLimits)
    let id = shared.reserve(priority: request.priority)
    defer { observer.transferEnded() }
    room.begin(observer.transferBegan(SharedTransferControl(shared: shared, id: id, room: room)))
    do throws(TransportFailure) { try await room.pass() } catch {
      shared.leave(id)
      throw error
    }
    // Only now, because a resource may have changed while the request was suspended.
    let key = SharedTransfers.Key(request, in: shared.era, removalCount: store?.removalCount ?? 0)
    switch shared.join(key, id, observer, room) {
    case .first(let flight): begin(request, key, flight)
    case .joined(let head?): notify(head, key, id, observer, room)
    case .joined(nil): break
    case .left: throw TransportFailure(.cancelled, "The request was cancelled.")
    }
    let outcome = await shared.outcome(key, id)
    // A failure of the transfer says more than the end of the wait.
    if case .failure(let failure) = outcome, !room.isCancelled { throw failure }
    // Suspended, or not decided about its head yet: the response is there, and waits.
    try await room.pass()
    return try outcome.get()
  }

  private func notify(
    _ head: ResponseHead, _ key: SharedTransfers.Key, _ id: UInt64, _ observer: any TransferObserver,
    _ room: LocalTransferControl
  ) {
    let openings = room.resumptions
    if observer.headReceived(head) == .hold { room.suspend(unlessResumedSince: openings) }
    var reported = ByteCount()
    while let count = shared.knowsHead(key, id, after: reported) {
      observer.bytesMoved(count)
      reported = count
    }
  }

  private func begin(_ request: WireRequest, _ key: SharedTransfers.Key, _ flight: UInt64) {
    let transfer = SharedTransfer(shared: shared, key: key, flight: flight, priority: request.priority)
    transport.send(request, observer: transfer, completion: transfer)
  }
}

/// Forwards the events and the outcome of a transfer to all requests that wait for it.
private final class SharedTransfer: TransferObserver, TransferCompletion {
  private let shared: SharedTransfers
  private let key: SharedTransfers.Key
  private let flight: UInt64
  private let priority: Float

  init(shared: SharedTransfers, key: SharedTransfers.Key, flight: UInt64, priority: Float) {
    self.shared = shared
    self.key = key
    self.flight = flight
    self.priority = priority
  }

  func transferBegan(_ control: any TransferControl) -> TransferStart {
    shared.began(key, flight, control, priority: priority)
  }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    // All requests of the transfer follow a redirect, or leave an alternative service that does not answer for the
    // origin (RFC 9110 §15.5.20). A challenge may concern only one of them.
    let concernsAll = head.status / 100 == 3 || head.status == 421
    return shared.headCame(key, flight, head) && concernsAll ? .discard : .proceed
  }

  func bytesMoved(_ count: ByteCount) { shared.bytesMoved(key, flight, count) }

  func transferEnded() {}

  func transferEnded(_ outcome: consuming Result<WireResponse, TransportFailure>) {
    shared.ended(key, flight, outcome)
  }
}

/// Holds up one request, and never the transfer; cancelled, the request leaves it.
private struct SharedTransferControl: TransferControl {
  let shared: SharedTransfers
  let id: UInt64
  let room: LocalTransferControl

  func suspend() { room.suspend() }
  func resume() { room.resume() }
  func setPriority(_ priority: Float) { shared.prioritize(id, priority) }

  func cancel() {
    room.cancel()
    shared.leave(id)
  }
}
