import HTTPWire
import Randomness
import Scenarios
import Testing

@testable import HTTPEngine

@Suite("Queues of hosts", .seeded, .timeLimit(.minutes(5))) struct HostQueueTests {
  private static let second: UInt64 = 1_000_000_000
  private static let count = 10_000

  @Test("Random changes have the results of a look at all hosts", .steps, arguments: 0..<90)
  func walk(index: Int) {
    let walk = HostQueueWalk(index)
    for number in 0..<400 {
      step("change \(number)")
      walk.change()
    }
    step("end of all requests")
    walk.finish()
  }

  @Test("With a limit of the session, the next request of 10,000 hosts is found in a few steps")
  func session() {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(perSession: 1)
    let exchanges = (0..<Self.count).map {
      fixture.exchange(UInt64($0), of: $0, priority: Float($0 * 7_919 % 1_000) / 1_000, profile)
    }
    let begun = exchanges.filter { fixture.queues.enqueue($0, 0) }.map(\.ticket)
    #expect(begun == [0])
    var running = exchanges[0]
    var order: [UInt64] = []
    while let next = fixture.queues.remove(running, multiplexes: nil, 0).first {
      order.append(next)
      running = exchanges[Int(next)]
    }
    let sorted = exchanges[1...].sorted { ($1.priority, $0.ticket) < ($0.priority, $1.ticket) }
    #expect(order == sorted.map(\.ticket))
    #expect(fixture.queues.order.entryCount == 0)
    #expect(fixture.queues.order.steps <= 20 * Self.count, "\(fixture.queues.order.steps) steps")
  }

  @Test("Of 10,000 hosts with a rate, the one whose time has come is found in a few steps")
  func rates() {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(rate: 1)
    var admissions: [Bool] = []
    for host in 0..<Self.count {
      for ticket in [host, host + Self.count] {
        let exchange = fixture.exchange(UInt64(ticket), of: host, profile)
        admissions.append(fixture.queues.enqueue(exchange, Self.second + UInt64(host)))
      }
    }
    #expect(admissions.count { $0 } == Self.count)
    var released: [[UInt64]] = []
    while fixture.queues.releaseTime < .max, released.count < 2 * Self.count {
      released.append(fixture.queues.release(fixture.queues.releaseTime))
    }
    #expect(released == (Self.count..<2 * Self.count).map { [UInt64($0)] })
    #expect(fixture.queues.order.steps <= 20 * Self.count, "\(fixture.queues.order.steps) steps")
  }

  @Test("Without a rate and a limit of the session, no host has a place in the order") func noLimits() {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(connections: 1)
    let exchanges = (0..<100).map { fixture.exchange(UInt64($0), of: $0 % 10, profile) }
    #expect(exchanges.count { fixture.queues.enqueue($0, 0) } == 10)
    exchanges[99].priority = 1
    fixture.queues.prioritize(exchanges[99], 0)
    #expect(fixture.queues.remove(exchanges[9], multiplexes: nil, 0) == [99])
    #expect(fixture.queues.remove(exchanges[50], multiplexes: nil, 0) == [])
    #expect(fixture.queues.remove(exchanges[0], multiplexes: true, 0).count == 8)
    #expect(fixture.queues.order.steps == 0 && fixture.queues.order.entryCount == 0)
  }

  @Test("A request that was not sent allows none beyond the burst that was used since") func refilledToken() {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(connections: 9, rate: 10, burst: 5)
    let exchanges = (0..<7).map { fixture.exchange(UInt64($0), of: 0, profile) }
    #expect(fixture.queues.enqueue(exchanges[0], Self.second))
    exchanges[0].timing.started = Self.second
    #expect(exchanges[1...].count { fixture.queues.enqueue($0, 3 * Self.second) } == 5)
    #expect(fixture.queues.remove(exchanges[0], multiplexes: nil, 3 * Self.second, isUnsent: true) == [])
  }

  @Test("Places that hosts had before are forgotten") func entries() {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(perSession: 1)
    let exchanges = (0...100).map { fixture.exchange(UInt64($0), of: $0, profile) }
    #expect(exchanges.count { fixture.queues.enqueue($0, 0) } == 1)
    var random = Seed.generator()
    for _ in 0..<10_000 {
      let exchange = exchanges[Int.random(in: 1...100, using: &random)]
      exchange.priority = Float.random(in: 0...0.9, using: &random)
      fixture.queues.prioritize(exchange, 0)
      #expect(fixture.queues.order.entryCount <= 200)
    }
    exchanges[50].priority = 1
    fixture.queues.prioritize(exchanges[50], 0)
    #expect(fixture.queues.remove(exchanges[0], multiplexes: nil, 0) == [50])
  }

  @Test("A request ends when the rate allows several others, which are released in the same turn")
  func burst() {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(rate: 10, burst: 3)
    let exchanges = (0..<7).map { fixture.exchange(UInt64($0), of: 0, profile) }
    #expect(exchanges.count { fixture.queues.enqueue($0, Self.second) } == 3)
    let now = 3 * Self.second
    #expect(fixture.queues.remove(exchanges[6], multiplexes: nil, now) == [])
    #expect(fixture.queues.releaseTime <= now, "a withdrawn request leaves others that may be sent")
    #expect(fixture.queues.remove(exchanges[0], multiplexes: nil, now) == [3])
    #expect(fixture.queues.releaseTime <= now, "two more requests may be sent")
    #expect(fixture.queues.release(now) == [4, 5])
    #expect(fixture.queues.releaseTime == .max)
  }

  @Test(
    "A request whose time has come is released, also if a queue changes first in that turn",
    arguments: ["enqueue", "remove", "prioritize"])
  func changeBeforeRelease(change: String) {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(perSession: 10, rate: 1)
    let exchanges = (0..<4).map { fixture.exchange(UInt64($0), of: 0, profile) }
    #expect(exchanges.prefix(3).count { fixture.queues.enqueue($0, Self.second) } == 1)
    #expect(fixture.queues.remove(exchanges[0], multiplexes: nil, Self.second + 1) == [])
    let now = 2 * Self.second + 1
    switch change {
    case "enqueue": #expect(!fixture.queues.enqueue(exchanges[3], now))
    case "remove": #expect(fixture.queues.remove(exchanges[2], multiplexes: nil, now) == [])
    default:
      exchanges[2].priority = 0.1
      fixture.queues.prioritize(exchanges[2], now)
    }
    #expect(fixture.queues.releaseTime <= now)
    #expect(fixture.queues.release(now) == [1])
    #expect(fixture.queues.releaseTime > now)
  }

  @Test("A host whose connection drains is not chosen after its request has left that connection")
  func draining() throws {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(connections: 1, perSession: 2)
    let hosts = [0, 1, 0, 2]
    let exchanges = hosts.indices.map {
      fixture.exchange(UInt64($0), of: hosts[$0], priority: $0 == 2 ? 0.9 : 0.5, profile)
    }
    #expect(exchanges.count { fixture.queues.enqueue($0, 0) } == 2)
    let hostQueue = try #require(exchanges[0].hostQueue)
    #expect(fixture.queues.noteDraining(hostQueue, 0) == [], "the session has no room")
    #expect(hostQueue.admission.candidate(0)?.ticket == 2)
    // The request is sent again on another connection.
    hostQueue.admission.leftDraining()
    #expect(fixture.queues.remove(exchanges[1], multiplexes: nil, 0) == [3])
    #expect(fixture.queues.remove(exchanges[0], multiplexes: nil, 0) == [2])
  }

  @Test("A priority that is not a number loses no request") func nanPriority() {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(perSession: 1)
    let exchanges = (0..<9).map {
      fixture.exchange(UInt64($0), of: $0, priority: $0 % 3 == 1 ? .nan : 0.5, profile)
    }
    #expect(exchanges.count { fixture.queues.enqueue($0, 0) } == 1)
    var admitted: Set<UInt64> = [0]
    var running = exchanges[0]
    while let next = fixture.queues.remove(running, multiplexes: nil, 0).first {
      #expect(admitted.insert(next).inserted)
      running = exchanges[Int(next)]
    }
    #expect(admitted.count == 9)
  }

  @Test("A rate that is not a positive number gives each host one queue", arguments: [0, -1, Double.nan])
  func unusableRates(rate: Double) {
    let fixture = HostQueueFixture()
    let profile = HostQueueFixture.profile(perHost: 1, rate: rate)
    let exchanges = (0..<6).map { fixture.exchange(UInt64($0), of: $0 % 2, profile) }
    let admissions = exchanges.map { fixture.queues.enqueue($0, 0) }
    #expect(admissions == [true, true, false, false, false, false], "one request of each host is in flight")
    #expect(fixture.queues.hostQueues.count == 2)
  }
}

/// The queues of a loop without a thread, and exchanges that no connection carries.
private final class HostQueueFixture {
  let queues = HostQueues()
  private let table: LoopExchanges

  init() { table = LoopExchanges(LoopState(), queues) }

  static func profile(
    connections: Int = 6, perHost: Int? = nil, perSession: Int? = nil, rate: Double? = nil, burst: Int = 1
  ) -> ConnectionProfile {
    var options = TransportOptions()
    options.requestLimits = TransportOptions.RequestLimits(
      perHost: perHost, perSession: perSession, ratePerHost: rate.map { .init(perSecond: $0, burst: burst) })
    return ConnectionProfile(options: options, connectionsPerHost: connections)
  }

  func exchange(
    _ ticket: UInt64, of host: Int, priority: Float = 0.5, _ profile: ConnectionProfile
  ) -> Exchange {
    let name = "h\(host).test"
    let request = WireRequest(
      url: "http://\(name)/", origin: Origin(scheme: "http", host: name, port: 80), profile: profile
    ) { $0.priority = priority }
    let exchange = Exchange(table)
    exchange.begin(request, ticket: ticket, observer: Watcher(), completion: ConnectionFixture.Ending())
    return exchange
  }
}

/// The queues of hosts without an order: each decision looks at all of them.
private struct ScannedQueues {
  struct Host {
    var admission: HostAdmission
    let hasRate: Bool
    var multiplexes: Bool?
    var streamLimit: HostQueues.StreamLimit?
  }

  var hosts: [Host]
  private var running = 0
  private var mostRunning = Int.max
  private(set) var isLimited = false
  private var room: Int { mostRunning - running }

  init(_ profiles: [ConnectionProfile]) {
    hosts = profiles.map {
      Host(
        admission: HostAdmission(connections: $0.connectionsPerHost, limits: $0.hostLimits),
        hasRate: $0.hostLimits?.rate != nil)
    }
  }

  mutating func enqueue(_ exchange: Exchange, _ host: Int, _ profile: ConnectionProfile, _ now: UInt64)
    -> Bool
  {
    mostRunning = profile.mostInFlight
    if mostRunning < .max { isLimited = true }
    let moment = HostAdmission.Moment(now: now, room: room)
    let isFirst = hosts[host].admission.submitted(exchange.ticket, priority: exchange.priority, moment)
    if isFirst { running += 1 }
    return isFirst
  }

  mutating func end(_ host: Int, _ multiplexes: Bool?, isUnsent: Bool, _ now: UInt64) -> [UInt64] {
    running -= 1
    let moment = HostAdmission.Moment(now: now, room: isLimited ? 0 : .max)
    let next = isUnsent ? hosts[host].admission.returned(moment) : hosts[host].admission.ended(moment)
    var admitted = next.map { [$0] } ?? []
    if let multiplexes, multiplexes != hosts[host].multiplexes {
      hosts[host].multiplexes = multiplexes
      admitted += hosts[host].admission.learned(multiplexes: multiplexes, moment)
    }
    running += admitted.count
    return isLimited ? admitted + fill(now) : admitted
  }

  private mutating func fill(_ now: UInt64) -> [UInt64] {
    var admitted: [UInt64] = []
    while room > 0 {
      var best: (host: Int, request: HostAdmission.Waiting)?
      for host in hosts.indices {
        guard let request = hosts[host].admission.candidate(now) else { continue }
        if let best, !request.precedes(best.request) { continue }
        best = (host, request)
      }
      let moment = HostAdmission.Moment(now: now, room: room)
      guard let best, let ticket = hosts[best.host].admission.next(moment) else { break }
      running += 1
      admitted.append(ticket)
    }
    return admitted
  }

  mutating func release(_ now: UInt64) -> [UInt64] {
    if isLimited { return fill(now) }
    var admitted: [UInt64] = []
    for host in hosts.indices where hosts[host].hasRate {
      admitted += hosts[host].admission.released(HostAdmission.Moment(now: now))
    }
    running += admitted.count
    return admitted
  }

  /// Returns the time at which a request has to be released.
  func releaseTime(_ now: UInt64) -> UInt64 {
    hosts.filter { isLimited || $0.hasRate }.map(\.admission).map {
      $0.candidate(now) == nil || isLimited && room <= 0 ? $0.releaseTime(now) : now
    }.min() ?? .max
  }

  mutating func noteStreams(_ streams: Int, connections: Int, _ host: Int, _ now: UInt64) -> [UInt64] {
    let limit = HostQueues.StreamLimit(streams: streams, connections: connections)
    var admitted: [UInt64] = []
    if hosts[host].streamLimit != limit {
      hosts[host].streamLimit = limit
      let moment = HostAdmission.Moment(now: now, room: room)
      admitted += hosts[host].admission.learned(streams: streams, connections: connections, moment)
    }
    if hosts[host].multiplexes != true {
      hosts[host].multiplexes = true
      let moment = HostAdmission.Moment(now: now, room: room - admitted.count)
      admitted += hosts[host].admission.learned(multiplexes: true, moment)
    }
    running += admitted.count
    return admitted
  }

  mutating func noteDraining(_ host: Int, _ now: UInt64) -> [UInt64] {
    let moment = HostAdmission.Moment(now: now, room: room)
    let admitted = hosts[host].admission.began(draining: 1, moment)
    running += admitted.count
    return admitted
  }
}

/// Random changes of queues, whose results must be the same with and without an order.
private final class HostQueueWalk {
  private struct Item {
    let exchange: Exchange
    let host: Int
  }

  private let fixture = HostQueueFixture()
  private var queues: HostQueues { fixture.queues }
  private var random: SeededGenerator
  private var scanned: ScannedQueues
  /// The profiles of the hosts, without and with a limit of the session.
  private var profiles: [(free: ConnectionProfile, limited: ConnectionProfile)] = []
  /// The number of requests of ten that have a limit of the session.
  private let limitedShare: Int
  private var now: UInt64 = 100_000_000_000
  private var lastTicket: UInt64 = 0
  private var waiting: [UInt64: Item] = [:]
  private var running: [UInt64: Item] = [:]
  /// The running requests on connections that drain.
  private var draining: Set<UInt64> = []

  init(_ index: Int) {
    random = Seed.generator(index)
    limitedShare = [0, 10, 5][index % 3]
    let perSession = Int.random(in: 1...8, using: &random)
    for _ in 0..<6 {
      let connections = Int.random(in: 1...3, using: &random)
      let perHost = Bool.random(using: &random) ? Int.random(in: 1...4, using: &random) : nil
      let rate = Bool.random(using: &random) ? Double.random(in: 2...20, using: &random) : nil
      let burst = Int.random(in: 1...3, using: &random)
      let free = HostQueueFixture.profile(
        connections: connections, perHost: perHost, rate: rate, burst: burst)
      let limited = HostQueueFixture.profile(
        connections: connections, perHost: perHost, perSession: perSession, rate: rate, burst: burst)
      profiles.append((free, limited))
    }
    scanned = ScannedQueues(profiles.map(\.free))
  }

  private func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

  func change() {
    switch number(0...14) {
    case 0...4: submit()
    case 5...7: end()
    case 8: withdraw()
    case 9: prioritize()
    case 10: noteDraining()
    case 11: leaveDraining()
    case 12: noteStreams()
    default: passTime()
    }
    #expect(queues.releaseTime <= scanned.releaseTime(now), "a request would be released too late")
  }

  /// Ends the requests until none is left.
  func finish() {
    while !running.isEmpty || !waiting.isEmpty {
      if running.isEmpty {
        guard queues.releaseTime < .max else {
          Issue.record("\(waiting.keys.sorted()) wait forever")
          return
        }
        now = max(now, queues.releaseTime)
        release()
      } else {
        end()
      }
    }
    #expect(queues.order.entryCount == 0 && queues.releaseTime == .max)
  }

  private func admit(_ tickets: [UInt64]) {
    for ticket in tickets {
      let item = waiting.removeValue(forKey: ticket)
      #expect(item != nil, "\(ticket) was admitted and did not wait")
      running[ticket] = item
    }
  }

  /// Returns one of the requests; `nil` without any. The order of a dictionary would not depend on the seed alone.
  private func randomItem(of items: [UInt64: Item]) -> Item? {
    guard !items.isEmpty else { return nil }
    return items[items.keys.sorted()[number(0...items.count - 1)]]
  }

  private func submit() {
    lastTicket += 1
    let host = number(0...profiles.count - 1)
    let profile = number(0...9) < limitedShare ? profiles[host].limited : profiles[host].free
    let exchange = fixture.exchange(lastTicket, of: host, priority: Float(number(0...4)) / 4, profile)
    let isFirst = queues.enqueue(exchange, now)
    let isExpected = scanned.enqueue(exchange, host, profile, now)
    #expect(isFirst == isExpected)
    let item = Item(exchange: exchange, host: host)
    if isFirst { running[lastTicket] = item } else { waiting[lastTicket] = item }
  }

  private func end() {
    guard let item = randomItem(of: running) else { return }
    let ticket = item.exchange.ticket
    running[ticket] = nil
    leaveDraining(item)
    let isUnsent = number(0...3) == 0
    let multiplexes: Bool? = number(0...3) == 0 ? number(0...3) == 0 : nil
    let admitted = queues.remove(item.exchange, multiplexes: multiplexes, now, isUnsent: isUnsent)
    let expected = scanned.end(item.host, multiplexes, isUnsent: isUnsent, now)
    #expect(admitted == expected, "after the end of \(ticket)")
    admit(admitted)
  }

  private func withdraw() {
    guard let item = randomItem(of: waiting) else { return }
    waiting[item.exchange.ticket] = nil
    let admitted = queues.remove(item.exchange, multiplexes: nil, now)
    let wasWaiting = scanned.hosts[item.host].admission.withdrawn(item.exchange.ticket)
    #expect(admitted == [] && wasWaiting)
  }

  private func prioritize() {
    guard let item = randomItem(of: waiting) else { return }
    item.exchange.priority = Float(number(0...4)) / 4
    queues.prioritize(item.exchange, now)
    let wasWaiting = scanned.hosts[item.host].admission.prioritized(
      item.exchange.ticket, item.exchange.priority)
    #expect(wasWaiting)
  }

  private func noteDraining() {
    guard let item = randomItem(of: running), let hostQueue = item.exchange.hostQueue,
      draining.insert(item.exchange.ticket).inserted
    else { return }
    let admitted = queues.noteDraining(hostQueue, now)
    let expected = scanned.noteDraining(item.host, now)
    #expect(admitted == expected, "after the connection of \(item.exchange.ticket) drains")
    admit(admitted)
  }

  /// Lets a request leave the connection that drains, in order to be sent again.
  private func leaveDraining() {
    if let item = randomItem(of: running) { leaveDraining(item) }
  }

  private func leaveDraining(_ item: Item) {
    guard draining.remove(item.exchange.ticket) != nil else { return }
    item.exchange.hostQueue?.admission.leftDraining()
    scanned.hosts[item.host].admission.leftDraining()
  }

  private func noteStreams() {
    guard let item = randomItem(of: running), let hostQueue = item.exchange.hostQueue else { return }
    let (streams, connections) = (number(1...4), number(1...3))
    let admitted = queues.noteStreams(streams, connections: connections, of: hostQueue, now)
    let expected = scanned.noteStreams(streams, connections: connections, item.host, now)
    #expect(admitted == expected, "after \(streams) streams on \(connections) connections")
    admit(admitted)
  }

  private func passTime() {
    now += UInt64(number(0...125_000_000))
    // A turn of the loop handles events before it looks at the time.
    if number(0...1) == 0 { release() }
  }

  private func release() {
    guard queues.releaseTime <= now else { return }
    let admitted = queues.release(now)
    let expected = scanned.release(now)
    // Without a limit of the session, the order of the hosts does not matter.
    let isSame = scanned.isLimited ? admitted == expected : admitted.sorted() == expected.sorted()
    #expect(isSame, "\(admitted) were released instead of \(expected)")
    #expect(queues.releaseTime > now, "the loop would not wait")
    admit(admitted)
  }
}
