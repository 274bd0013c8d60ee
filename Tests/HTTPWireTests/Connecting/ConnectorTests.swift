import HTTPWire
import Randomness
import Testing

@Suite("Connecting to several addresses") struct ConnectorTests {
  private typealias Action = Connector.Action
  private static let ms: UInt64 = 1_000_000

  private static func v4(_ last: UInt8, isPublic: Bool = true) -> IPAddress {
    address(.v4, isPublic ? [93, 184, 215, last] : [10, 0, 0, last])
  }

  private static func v6(_ last: UInt8) -> IPAddress {
    address(.v6, [0x26, 0x06, 0x28, 0x00] + [UInt8](repeating: 0, count: 11) + [last])
  }

  private static func address(_ family: IPAddress.Family, _ bytes: [UInt8]) -> IPAddress {
    guard let address = IPAddress(family, bytes: bytes) else {
      preconditionFailure("\(bytes) is not an address")
    }
    return address
  }

  private static func failed(_ address: IPAddress, _ code: Int32) -> Connector.FailedAttempt {
    Connector.FailedAttempt(address: address, code: code)
  }

  @Test("Families alternate, each in the order of the resolver, after a delay") func alternation() {
    let (a, b, c, d) = (Self.v6(1), Self.v6(2), Self.v4(3), Self.v6(4))
    var connector = Connector()
    #expect(
      connector.handle(.resolved([a, b, c, d], isLast: true), at: 0) == [
        .connect(0, a), .wake(at: 200 * Self.ms),
      ])
    #expect(connector.handle(.time, at: 200 * Self.ms - 1) == [.wake(at: 200 * Self.ms)])
    #expect(connector.handle(.time, at: 200 * Self.ms) == [.connect(1, c), .wake(at: 400 * Self.ms)])
    #expect(connector.handle(.time, at: 500 * Self.ms) == [.connect(2, b), .wake(at: 700 * Self.ms)])
    #expect(connector.handle(.time, at: 700 * Self.ms) == [.connect(3, d)], "nothing is left to wake for")
    #expect(connector.handle(.time, at: 2_000 * Self.ms) == [])
    #expect(connector.handle(.connected(2), at: 2_000 * Self.ms) == [.close([0, 1, 3]), .use(2)])
    #expect(connector.isOver)
    #expect(connector.handle(.connected(1), at: 2_000 * Self.ms) == [], "a late connection is closed already")
    #expect(connector.handle(.failed(0, code: 1), at: 2_000 * Self.ms) == [])
  }

  @Test("Addresses that are tried one after the other alternate as well") func order() {
    let (a, b, c, d) = (Self.v6(1), Self.v6(2), Self.v4(3), Self.v6(4))
    #expect(Connector.alternating([a, b, c, d]) == [a, c, b, d])
    let (e, f) = (Self.v4(5), Self.v4(6))
    #expect(
      Connector.alternating([a, b, d, c, e, f]) == [a, c, b, e, d, f], "each differs from the one before it")
    #expect(Connector.alternating([]) == [])
    #expect(Connector.alternating((0..<40).map { Self.v6($0) } + [c]).count == Connector.mostAttempts)
    #expect(Connector.alternating((0..<40).map { Self.v6($0) } + [c])[1] == c)
  }

  @Test("The resolver's first family is first", arguments: [true, false]) func firstFamily(isV4First: Bool) {
    let first = isV4First ? Self.v4(1) : Self.v6(1)
    let second = isV4First ? Self.v6(2) : Self.v4(2)
    var connector = Connector()
    #expect(
      connector.handle(.resolved([first, second], isLast: true), at: 0)
        == [.connect(0, first), .wake(at: 200 * Self.ms)])
  }

  @Test("A failure begins the next attempt at once, and the last one ends all") func failures() {
    let (a, b) = (Self.v6(1), Self.v4(2))
    var connector = Connector(delay: 10)
    #expect(connector.handle(.resolved([a, b], isLast: true), at: 5) == [.connect(0, a), .wake(at: 15)])
    #expect(connector.handle(.failed(0, code: 101), at: 7) == [.connect(1, b)])
    #expect(connector.handle(.failed(0, code: 101), at: 7) == [], "an attempt fails once")
    #expect(connector.handle(.failed(9, code: 101), at: 7) == [], "the attempt does not exist")
    #expect(connector.handle(.connected(0), at: 7) == [])
    #expect(
      connector.handle(.failed(1, code: 111), at: 8)
        == [.fail(.attemptsFailed([Self.failed(a, 101), Self.failed(b, 111)]))])
    #expect(connector.isOver)
  }

  @Test("An attempt that fails while another runs does not end the others") func oneOfTwoFails() {
    let (a, b) = (Self.v6(1), Self.v4(2))
    var connector = Connector(delay: 10)
    _ = connector.handle(.resolved([a, b], isLast: true), at: 0)
    #expect(connector.handle(.time, at: 10) == [.connect(1, b)])
    #expect(connector.handle(.failed(1, code: 111), at: 11) == [])
    #expect(connector.handle(.connected(0), at: 12) == [.use(0)])
  }

  @Test("Hosts without usable addresses") func noAddresses() {
    var connector = Connector()
    #expect(connector.handle(.resolved([], isLast: true), at: 0) == [.fail(.noAddress)])
    connector = Connector(refusesPrivateAddresses: true)
    #expect(
      connector.handle(.resolved([Self.v4(1, isPublic: false)], isLast: true), at: 0) == [
        .fail(.addressesRefused)
      ])
    connector = Connector(refusesPrivateAddresses: true)
    #expect(
      connector.handle(.resolved([Self.v4(1, isPublic: false), Self.v4(2)], isLast: true), at: 0)
        == [.connect(0, Self.v4(2))])
    #expect(
      connector.handle(.failed(0, code: 5), at: 0) == [.fail(.attemptsFailed([Self.failed(Self.v4(2), 5)]))])
    connector = Connector()
    #expect(
      connector.handle(.resolved([Self.v4(1, isPublic: false)], isLast: true), at: 0)
        == [.connect(0, Self.v4(1, isPublic: false))])
  }

  @Test("IPv4 waits a moment for IPv6 if the families are looked up separately") func resolutionDelay() {
    var connector = Connector()
    #expect(connector.handle(.resolved([Self.v4(1)], isLast: false), at: 0) == [.wake(at: 50 * Self.ms)])
    #expect(
      connector.handle(.resolved([Self.v6(2)], isLast: true), at: 10 * Self.ms)
        == [.connect(0, Self.v6(2)), .wake(at: 210 * Self.ms)])
    connector = Connector()
    #expect(connector.handle(.resolved([Self.v4(1)], isLast: false), at: 0) == [.wake(at: 50 * Self.ms)])
    #expect(connector.handle(.time, at: 50 * Self.ms) == [.connect(0, Self.v4(1))])
    #expect(
      connector.handle(.resolved([Self.v6(2)], isLast: true), at: 60 * Self.ms) == [.wake(at: 250 * Self.ms)])
    #expect(connector.handle(.time, at: 250 * Self.ms) == [.connect(1, Self.v6(2))])
    connector = Connector()
    #expect(connector.handle(.resolved([Self.v4(1)], isLast: false), at: 0) == [.wake(at: 50 * Self.ms)])
    #expect(
      connector.handle(.resolved([Self.v4(2)], isLast: false), at: 40 * Self.ms) == [.wake(at: 50 * Self.ms)],
      "the wait does not begin again")
    connector = Connector()
    #expect(connector.handle(.resolved([Self.v4(1)], isLast: false), at: 0) == [.wake(at: 50 * Self.ms)])
    #expect(
      connector.handle(.resolved([], isLast: true), at: 1) == [.connect(0, Self.v4(1))],
      "the name has no IPv6 address")
    connector = Connector()
    #expect(connector.handle(.resolved([Self.v6(1)], isLast: false), at: 0) == [.connect(0, Self.v6(1))])
    connector = Connector()
    #expect(connector.handle(.resolved([], isLast: false), at: 0) == [])
    #expect(connector.handle(.resolved([Self.v4(1)], isLast: true), at: 1) == [.connect(0, Self.v4(1))])
  }

  @Test("Failed attempts wait for the rest of the addresses") func laterAddresses() {
    var connector = Connector()
    _ = connector.handle(.resolved([Self.v6(1)], isLast: false), at: 0)
    #expect(connector.handle(.failed(0, code: 1), at: 1) == [])
    #expect(!connector.isOver)
    #expect(connector.handle(.resolved([Self.v4(2)], isLast: true), at: 2) == [.connect(1, Self.v4(2))])
    connector = Connector()
    _ = connector.handle(.resolved([Self.v6(1)], isLast: false), at: 0)
    _ = connector.handle(.failed(0, code: 7), at: 1)
    #expect(
      connector.handle(.resolved([], isLast: true), at: 2)
        == [.fail(.attemptsFailed([Self.failed(Self.v6(1), 7)]))])
  }

  @Test("Each address is tried once, and sixteen of them at most", arguments: [10, 20])
  func limits(count: Int) {
    var connector = Connector(delay: .max)
    let addresses = (0..<40).map { Self.v4(UInt8($0 % count)) }
    var tried: [IPAddress] = []
    var actions = connector.handle(.resolved(addresses, isLast: true), at: 1)
    while case .connect(let attempt, let address)? = actions.first {
      tried.append(address)
      if tried.count < min(16, count) { #expect(actions.last == .wake(at: .max), "a delay without end") }
      actions = connector.handle(.failed(attempt, code: 111), at: 1)
    }
    #expect(tried == Array(addresses[..<min(16, count)]))
    #expect(actions == [.fail(.attemptsFailed(tried.map { Self.failed($0, 111) }))])
  }

  @Test("Cancelled attempts are closed") func cancellation() {
    var connector = Connector(delay: 1)
    _ = connector.handle(.resolved([Self.v4(1), Self.v4(2)], isLast: true), at: 0)
    _ = connector.handle(.time, at: 1)
    #expect(connector.cancel() == [0, 1])
    #expect(connector.isOver)
    #expect(connector.cancel() == [])
    #expect(connector.handle(.connected(0), at: 2) == [])
  }

  /// The sockets of an owner that performs the actions.
  private struct Sockets {
    var open: Set<Int> = []
    var used = 0, failed = 0, opened = 0
    var wake: UInt64?

    mutating func perform(_ actions: [Connector.Action], _ name: Comment) {
      for action in actions {
        switch action {
        case .connect(let attempt, _):
          #expect(open.insert(attempt).inserted, name)
          opened += 1
        case .close(let attempts): for attempt in attempts { #expect(open.remove(attempt) != nil, name) }
        case .wake(let time): wake = time
        case .use(let attempt):
          #expect(open.remove(attempt) != nil, name)
          used += 1
        case .fail: failed += 1
        }
      }
    }
  }

  @Test("Random walks end exactly once, and leave no socket open") func walks() {
    for seed in UInt64(0)..<10_000 {
      var random = SeededGenerator(seed: seed)
      let name = Comment(rawValue: "seed \(seed)")
      var connector = Connector(refusesPrivateAddresses: Bool.random(using: &random))
      var sockets = Sockets()
      var now: UInt64 = 0
      var answers = 0
      for _ in 0..<400 where !connector.isOver {
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where answers < 2:
          answers += 1
          let addresses = (0..<Int.random(in: 0..<12, using: &random)).map { _ in
            let last = UInt8.random(in: 0..<20, using: &random)
            return Bool.random(using: &random) ? Self.v6(last) : Self.v4(last, isPublic: last % 3 != 0)
          }
          sockets.perform(connector.handle(.resolved(addresses, isLast: answers == 2), at: now), name)
        case 1:
          guard Int.random(in: 0..<8, using: &random) == 0,
            let attempt = sockets.open.sorted().randomElement(using: &random)
          else { continue }
          sockets.perform(connector.handle(.connected(attempt), at: now), name)
        case 2:
          guard let attempt = sockets.open.sorted().randomElement(using: &random) else { continue }
          sockets.open.remove(attempt)
          sockets.perform(connector.handle(.failed(attempt, code: 111), at: now), name)
        default:
          now += UInt64.random(in: 0...300, using: &random) * Self.ms
          guard let wake = sockets.wake, wake <= now else { continue }
          sockets.wake = nil
          sockets.perform(connector.handle(.time, at: now), name)
        }
      }
      #expect(connector.isOver && sockets.used + sockets.failed == 1, name)
      #expect(sockets.open.isEmpty && sockets.opened <= Connector.mostAttempts, name)
    }
  }
}
