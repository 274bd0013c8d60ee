import Dispatch
import HTTPSystem
import HTTPWire

/// The addresses of names until they expire, and the look-ups that are running.
///
/// A name is looked up once for all requests that wait for it. Each of them waits until its own deadline.
final class NameCache: Sendable {
  typealias Answer = Result<[IPAddress], TransportFailure>

  struct Key: Hashable {
    let service: NameServiceRoute
    /// The partition of the trust settings by which the name service was verified.
    let partition: Int
    let name: String
    /// The family of the addresses.
    let addressFamily: TransportOptions.AddressFamily
  }

  /// The answer of a name service.
  struct Found {
    var addresses: [IPAddress] = []
    /// The time for which the addresses are cached.
    var seconds: UInt32 = 0
  }

  /// A look-up that requests share, because it would be the same for each of them.
  struct Question: Hashable {
    let key: Key
    /// The settings, which are compared by identity.
    let profile: ObjectIdentifier
    let idleTimeout: Duration?
  }

  /// The end of the wait for a look-up.
  enum LookupEnd {
    case answer(Answer)
    case cancelled
    case late
  }

  private struct Entry {
    let addresses: [IPAddress]
    let end: UInt64
  }

  /// A look-up that has not ended, with those that wait for it.
  private struct Lookup {
    var waiters: [ObjectIdentifier: FirstValue<LookupEnd>]
    var task: Task<Void, Never>?
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    /// The look-ups that have not ended, by their numbers.
    var lookups: [UInt64: Lookup] = [:]
    /// The look-up that further requests join.
    var joined: [Question: UInt64] = [:]
    /// The number of the last look-up.
    var last: UInt64 = 0

    /// Removes a look-up, and returns it.
    mutating func remove(_ number: UInt64, _ question: Question) -> Lookup? {
      if joined[question] == number { joined[question] = nil }
      return lookups.removeValue(forKey: number)
    }
  }

  /// The way of a request to its answer.
  private enum Place {
    case known([IPAddress])
    case waiting(UInt64)
    case late
    /// The request has to begin the look-up of this number.
    case first(UInt64)
  }

  private static let capacity = 1024
  /// The longest time for which an answer is cached, in seconds.
  private static let longest: UInt32 = 3600

  /// The addresses and the look-ups. The threads of requests and of look-ups use them.
  private let state = TrackedMutex(State())
  /// The clock for the ages of addresses. It goes on while the machine sleeps, which may wake up in another network.
  private let clock: @Sendable () -> UInt64

  init(clock: @escaping @Sendable () -> UInt64 = { Clock.sinceBoot() }) { self.clock = clock }

  /// Returns the addresses of a name, or the end of the wait for them. The cancellation of the current task ends its
  /// wait. A look-up for which nothing waits any more is cancelled.
  ///
  /// - Parameter find: Looks up the name, in a task of its own.
  nonisolated(nonsending) func addresses(
    _ question: Question, until deadline: MonotonicTime?, on loop: EventLoop,
    find: @escaping @Sendable () async -> Result<Found, TransportFailure>
  ) async -> LookupEnd {
    var mayAskAgain = true
    while true {
      let waiter = FirstValue<LookupEnd>()
      let number: UInt64
      switch place(of: waiter, question, until: deadline) {
      case .known(let addresses): return .answer(.success(addresses))
      case .late: return .late
      case .waiting(let running): number = running
      case .first(let new):
        number = new
        mayAskAgain = false
        let task = Task.detached(executorPreference: loop) { [self] in finished(question, new, await find()) }
        begun(task, number)
      }
      let end = await waiter.value(until: deadline, otherwise: .late, ifCancelled: .cancelled)
      leave(waiter, question, number, end)
      // The limits of the look-up had begun with another request.
      guard mayAskAgain, case .answer(.failure(let failure)) = end, failure.kind == .timedOut else {
        return end
      }
      mayAskAgain = false
    }
  }

  private func place(
    of waiter: FirstValue<LookupEnd>, _ question: Question, until deadline: MonotonicTime?
  ) -> Place {
    let now = clock()
    return state.withLock { state in
      if let entry = state.entries[question.key], entry.end > now { return .known(entry.addresses) }
      guard deadline.map({ $0 > .now }) ?? true else { return .late }
      if let running = state.joined[question] {
        state.lookups[running]?.waiters[ObjectIdentifier(waiter)] = waiter
        return .waiting(running)
      }
      state.last += 1
      state.lookups[state.last] = Lookup(waiters: [ObjectIdentifier(waiter): waiter])
      state.joined[question] = state.last
      return .first(state.last)
    }
  }

  /// Keeps the task of a look-up, unless the look-up has ended, or nothing waits for it any more.
  private func begun(_ task: Task<Void, Never>, _ number: UInt64) {
    let isNeeded = state.withLock { state in
      state.lookups[number]?.task = task
      return state.lookups[number] != nil
    }
    if !isNeeded { task.cancel() }
  }

  /// Passes the answer of a look-up to those that wait for it.
  private func finished(_ question: Question, _ number: UInt64, _ answer: Result<Found, TransportFailure>) {
    let now = clock()
    let waiters = state.withLock { state -> [FirstValue<LookupEnd>] in
      guard let lookup = state.remove(number, question) else { return [] }
      if case .success(let found) = answer { Self.store(found, question.key, &state.entries, now) }
      return Array(lookup.waiters.values)
    }
    for waiter in waiters { waiter.give(.answer(answer.map(\.addresses))) }
  }

  private func leave(
    _ waiter: FirstValue<LookupEnd>, _ question: Question, _ number: UInt64, _ end: LookupEnd
  ) {
    let task = state.withLock { state -> Task<Void, Never>? in
      // Further requests ask anew, because this look-up may be stuck.
      if case .late = end, state.joined[question] == number { state.joined[question] = nil }
      guard state.lookups[number]?.waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil,
        state.lookups[number]?.waiters.isEmpty == true
      else { return nil }
      return state.remove(number, question)?.task
    }
    task?.cancel()
  }

  private static func store(_ found: Found, _ key: Key, _ entries: inout [Key: Entry], _ now: UInt64) {
    guard found.seconds > 0 else { return }
    if entries.count >= capacity {
      entries = entries.filter { $0.value.end > now }
      if entries.count >= capacity { entries.removeAll() }
    }
    let end = now + UInt64(min(found.seconds, longest)) * 1_000_000_000
    entries[key] = Entry(addresses: found.addresses, end: end)
  }
}

/// A value that one task waits for. The first of several events determines it.
final class FirstValue<Value: Sendable>: Sendable {
  private enum State {
    case empty
    case awaited(CheckedContinuation<Value, Never>)
    case given(Value)
  }

  /// The value and the task that waits for it, for any thread.
  private let state = TrackedMutex(State.empty)

  /// Sets the value, unless there is one.
  func give(_ value: Value) {
    let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
      switch state {
      case .given: return nil
      case .empty:
        state = .given(value)
        return nil
      case .awaited(let waiter):
        state = .given(value)
        return waiter
      }
    }
    waiter?.resume(returning: value)
  }

  /// Waits for the value. One task may do so.
  ///
  /// - Parameters:
  ///   - late: The value if the deadline comes first.
  ///   - cancelled: The value if the current task is cancelled before.
  nonisolated(nonsending) func value(
    until deadline: MonotonicTime?, otherwise late: Value, ifCancelled cancelled: Value
  ) async -> Value {
    // Not a task that sleeps: the threads of the pool may all be busy.
    let timer = deadline.map { deadline in
      DispatchSource.timer(at: DispatchTime(deadline)) { [weak self] in self?.give(late) }
    }
    defer { timer?.cancel() }
    let value = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let value = state.withLock { state -> Value? in
          if case .given(let value) = state { return value }
          state = .awaited(continuation)
          return nil
        }
        if let value { continuation.resume(returning: value) }
      }
    } onCancel: {
      give(cancelled)
    }
    // ThreadSanitizer sees no order of the threads if a continuation is resumed before it is awaited.
    state.withLock { _ in }
    return value
  }
}
