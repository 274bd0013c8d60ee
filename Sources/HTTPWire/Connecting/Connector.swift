/// The attempts to connect to the addresses of one host (Happy Eyeballs, RFC 8305). Pure: its owner opens the sockets,
/// reads the clock in nanoseconds, and performs the returned actions in their order.
///
/// The addresses keep the order of the resolver, which follows RFC 6724, with alternating families. The next attempt
/// begins after a delay, or at once when one fails. The first connection wins, and the others are closed.
package struct Connector: Sendable {
  package enum Event: Sendable, Equatable {
    /// Addresses of the resolver, in its order. A name service may send each family separately; `isLast` with the last
    /// of them, also if it is empty.
    case resolved([IPAddress], isLast: Bool)
    /// The attempt of this number is connected.
    case connected(Int)
    /// The attempt of this number has failed with an error of the system.
    case failed(Int, code: Int32)
    /// The time of ``Connector/Action/wake(at:)`` has come.
    case time
  }

  package enum Action: Sendable, Equatable {
    case connect(Int, IPAddress)
    case close([Int])
    /// Report ``Connector/Event/time`` at this time. It replaces an earlier one.
    case wake(at: UInt64)
    /// Use the connection of this attempt.
    case use(Int)
    case fail(Failure)
  }

  /// The reason why connecting failed.
  package enum Failure: Error, Sendable, Equatable {
    /// The host has no address.
    case noAddress
    /// All addresses of the host are private.
    case addressesRefused
    /// All attempts have failed, in this order.
    case attemptsFailed([FailedAttempt])
  }

  /// An attempt that has failed with an error of the system.
  package struct FailedAttempt: Sendable, Equatable {
    package let address: IPAddress
    package let code: Int32

    package init(address: IPAddress, code: Int32) {
      self.address = address
      self.code = code
    }
  }

  /// The time between two attempts (RFC 8305 §5), as in curl.
  package static var usualDelay: UInt64 { 200_000_000 }
  /// The time for which IPv4 waits for IPv6 if the families are looked up separately (RFC 8305 §3).
  package static var resolutionDelay: UInt64 { 50_000_000 }
  /// The largest number of addresses that are tried.
  package static var mostAttempts: Int { 16 }

  private let delay: UInt64
  private let refusesPrivateAddresses: Bool
  private var waiting: [IPAddress] = []
  private var seen: Set<IPAddress> = []
  /// The addresses of all attempts, in their order.
  private var attempts: [IPAddress] = []
  private var running: Set<Int> = []
  private var failed: [FailedAttempt] = []
  /// The time at which the next attempt may begin, unless one fails before.
  private var nextStart: UInt64?
  /// Whether the families are looked up separately. Then the addresses have no common order, and IPv6 is first.
  private var isSeparate = false
  private var isResolved = false
  private var hasRefused = false
  package private(set) var isOver = false

  /// Makes a connector.
  ///
  /// - Parameters:
  ///   - delay: The time between two attempts, in nanoseconds.
  ///   - refusesPrivateAddresses: Whether addresses that are not public are left out before a socket is opened.
  package init(delay: UInt64 = Self.usualDelay, refusesPrivateAddresses: Bool = false) {
    self.delay = delay
    self.refusesPrivateAddresses = refusesPrivateAddresses
  }

  package mutating func handle(_ event: Event, at now: UInt64) -> [Action] {
    guard !isOver else { return [] }
    switch event {
    case .resolved(let addresses, let isLast): return resolved(addresses, isLast, now)
    case .connected(let attempt):
      guard running.remove(attempt) != nil else { return [] }
      return end(.use(attempt))
    case .failed(let attempt, let code):
      guard running.remove(attempt) != nil else { return [] }
      failed.append(FailedAttempt(address: attempts[attempt], code: code))
      return startNext(now)
    case .time:
      guard let nextStart, !waiting.isEmpty else { return [] }
      return now >= nextStart ? startNext(now) : [.wake(at: nextStart)]
    }
  }

  /// Ends all attempts, because the connection is no longer needed. Returns the ones to be closed.
  package mutating func cancel() -> [Int] {
    isOver = true
    defer { running = [] }
    return running.sorted()
  }

  private mutating func resolved(_ addresses: [IPAddress], _ isLast: Bool, _ now: UInt64) -> [Action] {
    isResolved = isResolved || isLast
    isSeparate = isSeparate || !isLast
    for address in addresses where seen.insert(address).inserted {
      if refusesPrivateAddresses, !address.isPublic { hasRefused = true } else { waiting.append(address) }
    }
    if !running.isEmpty {
      guard let nextStart, !waiting.isEmpty else { return [] }
      return [.wake(at: nextStart)]
    }
    guard isResolved || !attempts.isEmpty || waiting.contains(where: { $0.family == .v6 }) else {
      guard !waiting.isEmpty else { return [] }
      let start = nextStart ?? Self.sum(now, Self.resolutionDelay)
      nextStart = start
      return [.wake(at: start)]
    }
    return startNext(now)
  }

  private mutating func startNext(_ now: UInt64) -> [Action] {
    guard attempts.count < Self.mostAttempts, let address = takeNext() else {
      guard running.isEmpty, isResolved || attempts.count == Self.mostAttempts else { return [] }
      return end(.fail(failure))
    }
    let attempt = attempts.count
    attempts.append(address)
    running.insert(attempt)
    let start = Self.sum(now, delay)
    nextStart = start
    return [.connect(attempt, address)] + (waiting.isEmpty ? [] : [.wake(at: start)])
  }

  /// Returns the addresses in the order in which they are tried one after the other, as many as may be tried.
  package static func alternating(_ addresses: [IPAddress]) -> [IPAddress] {
    var order = Connector()
    order.waiting = addresses
    while order.attempts.count < mostAttempts, let next = order.takeNext() { order.attempts.append(next) }
    return order.attempts
  }

  /// Takes the next address: of the other family than the last one if there is one (RFC 8305 §4).
  private mutating func takeNext() -> IPAddress? {
    guard !waiting.isEmpty else { return nil }
    let last = attempts.last?.family ?? (isSeparate ? .v4 : nil)
    let other = last.flatMap { last in waiting.firstIndex { $0.family != last } }
    return waiting.remove(at: other ?? 0)
  }

  private var failure: Failure {
    if !failed.isEmpty { return .attemptsFailed(failed) }
    return hasRefused ? .addressesRefused : .noAddress
  }

  private mutating func end(_ action: Action) -> [Action] {
    let rest = cancel()
    return rest.isEmpty ? [action] : [.close(rest), action]
  }

  private static func sum(_ now: UInt64, _ delay: UInt64) -> UInt64 {
    let (sum, isTooLate) = now.addingReportingOverflow(delay)
    return isTooLate ? .max : sum
  }
}
