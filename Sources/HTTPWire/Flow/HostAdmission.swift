/// Decides how many requests to one host are given to its connections at a time, and which come next. The others can
/// still change their priority, and cost nothing while they wait.
package struct HostAdmission: Sendable {
  package typealias Ticket = UInt64

  /// The most streams of one connection of HTTP/2 (RFC 9113 §6.5.2 recommends at least 100).
  package static var streamsPerConnection: Int { 100 }

  /// A waiting request.
  package struct Waiting: Sendable, Equatable {
    package let ticket: Ticket
    package let priority: Float

    /// Whether the request is sent before one of another host.
    package func precedes(_ other: Waiting) -> Bool {
      priority > other.priority || (priority == other.priority && ticket < other.ticket)
    }
  }

  /// The time of a decision, and the room that other hosts leave.
  package struct Moment: Sendable {
    package let now: UInt64
    /// The number of requests that the limit of the session allows.
    package let room: Int

    package init(now: UInt64 = 0, room: Int = .max) {
      self.now = now
      self.room = room
    }
  }

  /// The number of entries that have left from which on they are removed.
  private static let leastRemoved = 1024

  private let connections: Int
  /// The maximum number of running requests, whatever the connections carry.
  private let mostRunning: Int
  private var rate: TokenBucket?
  /// The streams that a connection takes, and how many connections are known to be there, where that is less than
  /// usual.
  private var limit: (streams: Int, connections: Int)?
  private var multiplexes: Bool?
  /// The number of requests that the connections can carry at a time.
  private var capacity: Int
  private var running = 0
  /// The number of running requests on connections that accept no further requests.
  private var draining = 0
  /// By falling priority, first come first within one. Entries before `head` have left, and so have those with a number
  /// that ``arrivals`` does not have. The entry at `head` has not left.
  private var waiting: [(request: Waiting, number: UInt64)] = []
  private var head = 0
  /// The numbers of the waiting requests in the order of their arrival, and their priorities. A request that is
  /// withdrawn leaves its entry, because finding and removing it would take longer for each request that waits.
  private var arrivals: [Ticket: (number: UInt64, priority: Float)] = [:]
  private var lastNumber: UInt64 = 0
  /// The number of entries that were looked at. Tests count them.
  package private(set) var steps = 0
  /// The number of entries, with those that have left. Tests count them.
  package var entryCount: Int { waiting.count }

  /// Makes the admission of a host. Until a response shows which version of HTTP the host speaks, each connection takes
  /// one request.
  package init(connections: Int, limits: HostLimits? = nil) {
    self.connections = connections
    mostRunning = limits?.inFlight ?? .max
    rate = limits?.rate.map { TokenBucket($0) }
    capacity = connections
  }

  /// The number of requests that may run now. The server expects new connections to replace those that drain, but there
  /// are never more than twice as many as allowed.
  private var most: Int { min(capacity + min(draining, capacity), mostRunning) }

  package var isIdle: Bool { running == 0 && arrivals.isEmpty }
  package var runningCount: Int { running }
  package var waitingCount: Int { arrivals.count }

  /// The waiting requests in their order.
  package var queue: [Waiting] { waiting[head...].filter { !hasLeft($0) }.map(\.request) }

  /// Submits a request. Returns whether it may run now; otherwise it waits.
  package mutating func submitted(_ ticket: Ticket, priority: Float, _ moment: Moment = Moment()) -> Bool {
    if running < most, head == waiting.count, moment.room > 0, mayBegin(moment.now) {
      begin(moment.now)
      return true
    }
    insert(Waiting(ticket: ticket, priority: priority))
    return false
  }

  /// Puts a request after all requests with the same priority or a higher one.
  private mutating func insert(_ request: Waiting) {
    lastNumber += 1
    arrivals[request.ticket] = (lastNumber, request.priority)
    var (low, high) = (head, waiting.count)
    while low < high {
      steps += 1
      let middle = low + (high - low) / 2
      if waiting[middle].request.priority < request.priority { high = middle } else { low = middle + 1 }
    }
    waiting.insert((request, lastNumber), at: low)
  }

  private func hasLeft(_ entry: (request: Waiting, number: UInt64)) -> Bool {
    arrivals[entry.request.ticket]?.number != entry.number
  }

  /// Removes a waiting request, and the entries that have left when they are more than half of all.
  private mutating func leave(_ ticket: Ticket) -> Bool {
    guard arrivals.removeValue(forKey: ticket) != nil else { return false }
    let count = waiting.count - head
    if count > Self.leastRemoved, arrivals.count < count / 2 {
      steps += count
      waiting = waiting[head...].filter { !hasLeft($0) }
      head = 0
    }
    moveHead()
    return true
  }

  /// Moves `head` to the first entry that has not left.
  private mutating func moveHead() {
    while head < waiting.count, hasLeft(waiting[head]) {
      steps += 1
      head += 1
    }
    guard head == waiting.count || head > Self.leastRemoved else { return }
    waiting.removeFirst(head)
    head = 0
  }

  /// Ends a running request. Returns the one that may run instead.
  package mutating func ended(_ moment: Moment = Moment()) -> Ticket? {
    running -= 1
    return next(moment)
  }

  /// Called when a request that was admitted was not sent; the request does not count for the rate. So the rate limits
  /// what is sent, and not how many handshakes with an undecided server follow one another.
  ///
  /// - Parameter time: The time at which the request was admitted. Default: just now.
  package mutating func returned(_ moment: Moment = Moment(), admittedAt time: UInt64 = .max) -> Ticket? {
    rate?.giveBack(takenAt: time)
    return ended(moment)
  }

  /// Removes a waiting request. Returns false if it was not waiting.
  package mutating func withdrawn(_ ticket: Ticket) -> Bool { leave(ticket) }

  /// Changes the priority of a waiting request, which then comes after the others of that priority. Returns false if it
  /// was not waiting.
  package mutating func prioritized(_ ticket: Ticket, _ priority: Float) -> Bool {
    guard let old = arrivals[ticket] else { return false }
    guard old.priority != priority else { return true }
    _ = leave(ticket)
    insert(Waiting(ticket: ticket, priority: priority))
    return true
  }

  /// Called when a response has shown whether the host's connections carry many requests at a time. Returns the
  /// requests that may run now.
  package mutating func learned(multiplexes: Bool, _ moment: Moment = Moment()) -> [Ticket] {
    self.multiplexes = multiplexes
    return admitted(moment)
  }

  /// Limits a host that allows fewer streams on a connection than usual. No more requests run than the known
  /// connections and one new one allow.
  ///
  /// - Parameters:
  ///   - streams: The number of concurrent streams of a connection.
  ///   - count: The number of connections.
  /// - Returns: The requests that may run now.
  package mutating func learned(
    streams: Int, connections count: Int, _ moment: Moment = Moment()
  ) -> [Ticket] {
    limit = (streams, count)
    return admitted(moment)
  }

  private mutating func admitted(_ moment: Moment) -> [Ticket] {
    capacity = connections
    if multiplexes == true {
      capacity =
        limit.map { min($0.connections + 1, connections) * $0.streams } ?? connections
        * Self.streamsPerConnection
    }
    return released(moment)
  }

  /// Notes that connections with running requests accept no further ones (RFC 9113 §6.8). Returns the requests that may
  /// run now.
  package mutating func began(draining count: Int, _ moment: Moment = Moment()) -> [Ticket] {
    draining += count
    return released(moment)
  }

  /// Notes that a running request has left a connection that accepts no further requests.
  package mutating func leftDraining() { draining -= 1 }

  /// Returns the requests that may run now, because time has passed.
  package mutating func released(_ moment: Moment) -> [Ticket] {
    var admitted: [Ticket] = []
    while let ticket = next(Moment(now: moment.now, room: moment.room - admitted.count)) {
      admitted.append(ticket)
    }
    return admitted
  }

  /// Removes all waiting requests and returns them in their order.
  package mutating func drain() -> [Ticket] {
    defer {
      waiting.removeAll()
      head = 0
      arrivals.removeAll()
    }
    return queue.map(\.ticket)
  }

  /// Returns the first waiting request, if only the limit of the session can keep it waiting.
  package func candidate(_ now: UInt64) -> Waiting? {
    running < most && head < waiting.count && mayBegin(now) ? waiting[head].request : nil
  }

  package mutating func next(_ moment: Moment) -> Ticket? {
    guard running < most, head < waiting.count, moment.room > 0, mayBegin(moment.now) else { return nil }
    let ticket = waiting[head].request.ticket
    arrivals[ticket] = nil
    moveHead()
    begin(moment.now)
    return ticket
  }

  // MARK: The rate

  /// Whether nothing of the host has to be remembered.
  package func isForgettable(_ now: UInt64) -> Bool { isIdle && rate?.isFull(now) != false }

  private func mayBegin(_ now: UInt64) -> Bool { rate.map { $0.readyTime <= now } ?? true }

  private mutating func begin(_ now: UInt64) {
    running += 1
    rate?.take(at: now)
  }

  /// The reason for which the first request waits, if it is not the limit of the session.
  package enum Obstacle: Sendable, Equatable {
    case connections
    case inFlight
    /// The rate allows the request at this time.
    case rate(UInt64)
  }

  package func obstacle(_ now: UInt64) -> Obstacle? {
    guard head < waiting.count else { return nil }
    guard running < most else { return most == mostRunning ? .inFlight : .connections }
    return rate.flatMap { $0.readyTime > now ? .rate($0.readyTime) : nil }
  }

  /// Returns the time at which the rate allows the first waiting request; `.max` if something else keeps it waiting.
  package func releaseTime(_ now: UInt64) -> UInt64 {
    if case .rate(let time) = obstacle(now) { time } else { .max }
  }
}

/// A bucket of tokens that is refilled at a constant rate. Pure: the caller reads the clock, in nanoseconds.
///
/// The state is the time at which the bucket is full again, so there is no sum that could accumulate an error.
package struct TokenBucket: Sendable, Equatable {
  private static let longest: Double = 86_400e9

  /// The time in which one token is refilled.
  private let interval: Double
  /// The time in which all but the last token of a full bucket are refilled.
  private let tolerance: UInt64
  private var fullTime: UInt64 = 0
  /// The last time at which a token was taken from the full bucket.
  private var lastFull: UInt64 = 0

  /// Makes a full bucket.
  ///
  /// - Parameters:
  ///   - rate: The number of tokens in a second.
  ///   - burst: The number of tokens in a full bucket.
  package init(rate: Double, burst: Double) {
    interval = rate > 0 ? min(1e9 / rate, Self.longest) : Self.longest
    tolerance = Self.nanoseconds((max(burst, 1) - 1) * interval)
  }

  /// The earliest time at which the bucket has a token.
  package var readyTime: UInt64 { fullTime > tolerance ? fullTime - tolerance : 0 }

  package func isFull(_ now: UInt64) -> Bool { fullTime <= now }

  /// Takes tokens. If the bucket has fewer, it is ready when the debt is refilled.
  package mutating func take(_ count: Double = 1, at now: UInt64) {
    if isFull(now) { lastFull = now }
    let sum = max(fullTime, now).addingReportingOverflow(Self.nanoseconds(count * interval))
    fullTime = sum.overflow ? .max : sum.partialValue
  }

  /// Returns a token that was drawn and not used. If the bucket has been full since, the token was refilled already,
  /// and would be one beyond the burst.
  ///
  /// - Parameter time: The time at which the token was drawn. Default: just now.
  package mutating func giveBack(takenAt time: UInt64 = .max) {
    guard time >= lastFull else { return }
    let time = Self.nanoseconds(interval)
    fullTime = fullTime > time ? fullTime - time : 0
  }

  private static func nanoseconds(_ time: Double) -> UInt64 {
    time < 9e18 ? UInt64(max(0, time)) : 9_000_000_000_000_000_000
  }
}

extension TokenBucket {
  /// Makes a bucket for the requests to a host.
  package init(_ rate: TransportOptions.RequestLimits.Rate) {
    self.init(rate: rate.perSecond, burst: Double(rate.burst))
  }
}

/// The limits of the bytes that move in both directions. Pure: the caller reads the clock, in nanoseconds.
///
/// A library delivers bytes in pieces that cannot be divided. Therefore a piece may exceed the limit, and the next one
/// waits until the debt is paid.
package struct BandwidthMeter: Sendable, Equatable {
  package enum Direction: Sendable, CaseIterable { case download, upload }

  /// The largest piece that is moved at once, so that slow transfers do not stand still for long.
  package static var largestPiece: Int { 16_384 }

  private var download: TokenBucket?
  private var upload: TokenBucket?

  package init(_ limits: TransportOptions.Bandwidth) {
    download = limits.download.map { Self.bucket($0) }
    upload = limits.upload.map { Self.bucket($0) }
  }

  /// Makes a bucket with the bytes of a twentieth of a second.
  private static func bucket(_ limit: Int) -> TokenBucket {
    let rate = Double(max(1, limit))
    return TokenBucket(rate: rate, burst: rate / 20)
  }

  /// Returns the earliest time at which more bytes may move.
  package func readyTime(_ direction: Direction) -> UInt64 {
    switch direction {
    case .download: download?.readyTime ?? 0
    case .upload: upload?.readyTime ?? 0
    }
  }

  /// Counts bytes that have moved.
  package mutating func moved(_ count: Int, _ direction: Direction, at now: UInt64) {
    switch direction {
    case .download: download?.take(Double(count), at: now)
    case .upload: upload?.take(Double(count), at: now)
    }
  }
}
