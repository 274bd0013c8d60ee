import HTTPWire
import Synchronization

/// The transfers of a session that several requests wait for (``TransportOptions/sharesIdenticalRequests``).
///
/// A transfer belongs to none of its requests: it runs in a task of its own, tells all of them what it hears, and is
/// cancelled when the last of them has left.
package final class SharedTransfers: Sendable {
  typealias Outcome = Result<WireResponse, TransportFailure>

  /// What has to be the same for two requests to be one.
  struct Key: Hashable {
    private let url: String
    private let fields: [HTTPHeader]
    private let profile: ConnectionProfile
    private let idleTimeout: Duration?
    private let era: UInt64
    /// What is stored of a transfer must not have begun before a removal that its request came after.
    private let removalCount: UInt64

    init(_ request: WireRequest, in era: UInt64, removalCount: UInt64) {
      self.removalCount = removalCount
      url = request.url
      fields = request.fields
      profile = request.profile
      idleTimeout = request.idleTimeout
      self.era = era
    }

    /// Texts are equal to Swift when they look the same; to a server their bytes count.
    static func == (left: Key, right: Key) -> Bool {
      left.url == right.url && left.hasOptions(of: right) && left.idleTimeout == right.idleTimeout
        && left.era == right.era && left.removalCount == right.removalCount
        && left.fields.elementsEqual(right.fields) {
          $0.name.utf8.elementsEqual($1.name.utf8) && $0.value.utf8.elementsEqual($1.value.utf8)
        }
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(url)
      hasher.combine(era)
      hasher.combine(removalCount)
    }

    /// Whether the options are equal. Requests with options of their own each have a profile of their own.
    private func hasOptions(of other: Key) -> Bool {
      profile === other.profile || profile.options == other.profile.options
    }
  }

  /// One request that waits.
  struct Member {
    let id: UInt64
    let observer: any TransferObserver
    var continuation: CheckedContinuation<Outcome, Never>?
    /// Whether it has been told of the head.
    var knowsHead: Bool
    let room: LocalTransferControl
  }

  struct Flight {
    let number: UInt64
    var members: [Member] = []
    var head: ResponseHead?
    var count = ByteCount()
    var control: (any TransferControl)?
  }

  private struct State {
    var flights: [Key: Flight] = [:]
    /// Numbers of requests that have not joined yet.
    var reserved: Set<UInt64> = []
    /// What came for requests that do not wait yet.
    var outcomes: [UInt64: Outcome] = [:]
    var lastNumber: UInt64 = 0
  }

  private let state = Mutex(State())
  private let lastEra = Atomic<UInt64>(0)

  /// What was asked for in another era is not shared: something may have been changed in between.
  var era: UInt64 { lastEra.load(ordering: .acquiring) }

  /// A request that may change something has been answered: who comes now wants what is there now.
  func beginEra() { lastEra.wrappingAdd(1, ordering: .releasing) }

  /// How many requests wait; for tests.
  package var memberCount: Int {
    state.withLock { state in state.flights.values.reduce(0) { $0 + $1.members.count } }
  }

  /// What a request finds that comes.
  enum Place {
    /// It is the first: somebody has to begin the transfer of this number.
    case first(flight: UInt64)
    /// The head may have come already.
    case joined(head: ResponseHead?)
    /// It was cancelled before it came.
    case left
  }

  /// A number for a request that is about to join.
  func reserve() -> UInt64 {
    state.withLock { state in
      state.lastNumber += 1
      state.reserved.insert(state.lastNumber)
      return state.lastNumber
    }
  }

  func join(_ key: Key, _ id: UInt64, _ observer: any TransferObserver, _ room: LocalTransferControl) -> Place
  {
    state.withLock { state in
      guard state.reserved.remove(id) != nil else { return .left }
      let head = state.flights[key]?.head
      let member = Member(id: id, observer: observer, knowsHead: head == nil, room: room)
      if state.flights[key] != nil {
        state.flights[key]?.members.append(member)
        return .joined(head: head)
      }
      state.lastNumber += 1
      state.flights[key] = Flight(number: state.lastNumber, members: [member])
      return .first(flight: state.lastNumber)
    }
  }

  /// It has been told of the head. Returns how far the transfer has come meanwhile.
  func knowsHead(_ key: Key, _ id: UInt64) -> ByteCount? {
    state.withLock { state in
      guard let index = state.flights[key]?.members.firstIndex(where: { $0.id == id }) else { return nil }
      state.flights[key]?.members[index].knowsHead = true
      return state.flights[key]?.count
    }
  }

  /// Waits for the end; not at all when it has come, or the request has left.
  func outcome(_ key: Key, _ id: UInt64) async -> Outcome {
    await withCheckedContinuation { continuation in
      let outcome = state.withLock { state -> Outcome? in
        if let outcome = state.outcomes.removeValue(forKey: id) { return outcome }
        guard let index = state.flights[key]?.members.firstIndex(where: { $0.id == id }) else {
          return .failure(.left)
        }
        state.flights[key]?.members[index].continuation = continuation
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }

  /// A request does not want the response any more. The last one ends the transfer.
  func leave(_ key: Key, _ id: UInt64) {
    let (continuation, control) = state.withLock {
      state -> (CheckedContinuation<Outcome, Never>?, (any TransferControl)?) in
      state.reserved.remove(id)
      guard let index = state.flights[key]?.members.firstIndex(where: { $0.id == id }) else {
        return (nil, nil)
      }
      let member = state.flights[key]?.members.remove(at: index)
      guard state.flights[key]?.members.isEmpty == true else { return (member?.continuation, nil) }
      let flight = state.flights.removeValue(forKey: key)
      return (member?.continuation, flight?.control)
    }
    control?.cancel()
    continuation?.resume(returning: .failure(.left))
  }

  // MARK: The transfer

  func began(_ key: Key, _ flight: UInt64, _ control: any TransferControl) -> TransferStart {
    state.withLock { state in
      guard state.flights[key]?.number == flight else { return .refuse }
      state.flights[key]?.control = control
      return .go
    }
  }

  func headCame(_ key: Key, _ flight: UInt64, _ head: ResponseHead) {
    let members = state.withLock { state -> [Member] in
      guard state.flights[key]?.number == flight else { return [] }
      state.flights[key]?.head = head
      return state.flights[key]?.members ?? []
    }
    for member in members { member.tell(head) }
  }

  func bytesMoved(_ key: Key, _ flight: UInt64, _ count: ByteCount) {
    let members = state.withLock { state -> [Member] in
      guard state.flights[key]?.number == flight else { return [] }
      state.flights[key]?.count = count
      return state.flights[key]?.members.filter { $0.knowsHead } ?? []
    }
    for member in members { member.observer.bytesMoved(count) }
  }

  func ended(_ key: Key, _ flight: UInt64, _ outcome: Outcome) {
    let members = state.withLock { state -> [Member] in
      guard state.flights[key]?.number == flight else { return [] }
      let members = state.flights.removeValue(forKey: key)?.members ?? []
      for member in members where member.continuation == nil { state.outcomes[member.id] = outcome }
      return members
    }
    for member in members { member.continuation?.resume(returning: outcome) }
  }
}

extension SharedTransfers.Member {
  func tell(_ head: ResponseHead) {
    let openings = room.resumptions
    if observer.headReceived(head) == .hold { room.suspend(unlessResumedSince: openings) }
  }
}

extension TransportFailure {
  fileprivate static var left: TransportFailure {
    TransportFailure(.cancelled, "The request was cancelled; others may wait for the same transfer.")
  }
}
