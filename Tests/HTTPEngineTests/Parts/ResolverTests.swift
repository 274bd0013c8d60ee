import Dispatch
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("The addresses that a loop knows", .timeLimit(.minutes(1)))
struct ResolverTests {
  private final class Waiter: Resolver.Waiter {
    private(set) var answers: [[IPAddress]?] = []

    func resolved(_ answer: Resolver.Answer) { answers.append(try? answer.get()) }
  }

  private static let addresses = [IPAddress.loopback4, .loopback6].compactMap { $0 }
  private static let minute: UInt64 = 60_000_000_000

  @Test("Addresses are cached for a minute") func lifetime() {
    let resolver = Resolver()
    #expect(resolver.knownAddresses(of: "kept.invalid", 1) == nil)
    resolver.finished("kept.invalid", .success(Self.addresses), 1)
    #expect(resolver.knownAddresses(of: "kept.invalid", Self.minute) == Self.addresses)
    #expect(resolver.knownAddresses(of: "other.invalid", 1) == nil)
    #expect(resolver.knownAddresses(of: "kept.invalid", Self.minute + 1) == nil)
    #expect(resolver.knownAddresses(of: "kept.invalid", 1) == nil, "old addresses are forgotten")
  }

  @Test("Failed look-ups and empty answers are not cached") func failures() {
    let resolver = Resolver()
    resolver.finished("empty.invalid", .success([]), 1)
    #expect(resolver.knownAddresses(of: "empty.invalid", 1) == nil)
    resolver.finished("known.invalid", .success(Self.addresses), 1)
    resolver.forget("known.invalid")
    #expect(resolver.knownAddresses(of: "known.invalid", 1) == nil)
  }

  @Test("Addresses and names of this machine are not looked up") func literals() {
    let resolver = Resolver()
    #expect(
      resolver.knownAddresses(of: "192.0.2.1", 1)
        == [IPAddress(.v4, bytes: [192, 0, 2, 1])].compactMap { $0 })
    #expect(resolver.knownAddresses(of: "localhost", 1)?.isEmpty == false)
  }

  @Test("At most 1,024 names are cached") func capacity() {
    let resolver = Resolver()
    for number in 0..<1_024 { resolver.finished("h\(number).invalid", .success(Self.addresses), 1) }
    #expect(resolver.knownAddresses(of: "h0.invalid", 1) != nil)
    resolver.finished("new.invalid", .success(Self.addresses), Self.minute + 2)
    #expect(resolver.knownAddresses(of: "new.invalid", Self.minute + 2) != nil)
    #expect(resolver.knownAddresses(of: "h0.invalid", 2) == nil, "expired names were removed")
  }

  @Test("A name is looked up once for all that wait, except those that have left") func waiters() async throws
  {
    try await ConnectionFixture.run { fixture in
      let resolver = fixture.core.resolver
      let waiters = (0..<3).map { _ in Waiter() }
      for waiter in waiters { resolver.lookUp("nobody.invalid", for: waiter) }
      resolver.withdraw(waiters[1], from: "nobody.invalid")
      resolver.finished("nobody.invalid", .success(Self.addresses), fixture.core.now)
      #expect(waiters.map(\.answers) == [[Self.addresses], [], [Self.addresses]])
    }
  }

  /// A waiter for any thread.
  private final class Listener: Resolver.Waiter, Sendable {
    let answer = Moment()
    func resolved(_ answer: Resolver.Answer) { self.answer.come() }
  }

  @Test("A look-up that all have left before it begins is skipped, and a later one begins anew")
  func withdrawn() async {
    let loop = Client().transport.loop
    let gate = DispatchSemaphore(value: 0)
    let calls = Mutex<[String]>([])
    let listeners = (0..<6).map { _ in Listener() }
    loop.post(
      .run { core in
        let resolver = core.resolver
        resolver.threads = LookupThreads(mostThreads: 1)
        resolver.find = { host in
          calls.withLock { $0.append(host) }
          if host == "slow.invalid" { gate.wait() }
          return .success([.loopback4].compactMap { $0 })
        }
        resolver.lookUp("slow.invalid", for: listeners[0])
        for (number, host) in ["left.invalid", "left.invalid", "back.invalid"].enumerated() {
          resolver.lookUp(host, for: listeners[number + 1])
        }
        resolver.withdraw(listeners[1], from: "left.invalid")
        resolver.withdraw(listeners[2], from: "left.invalid")
        resolver.withdraw(listeners[3], from: "back.invalid")
        resolver.lookUp("last.invalid", for: listeners[4])
        resolver.lookUp("back.invalid", for: listeners[5])
        // Not before the others have left, because the thread begins the next look-up as soon as it is free.
        gate.signal()
      })
    for index in [0, 4, 5] { await listeners[index].answer.wait() }
    #expect(calls.withLock { $0 } == ["slow.invalid", "last.invalid", "back.invalid"])
    for index in 1...3 { #expect(!listeners[index].answer.hasCome, "\(index)") }
  }

  @Test("A look-up that has begun serves later waiters, although all have left it") func begun() async {
    let loop = Client().transport.loop
    let (begun, gate) = (Moment(), DispatchSemaphore(value: 0))
    let calls = Mutex(0)
    let listeners = (0..<2).map { _ in Listener() }
    loop.post(
      .run { core in
        core.resolver.threads = LookupThreads(mostThreads: 1)
        core.resolver.find = { _ in
          calls.withLock { $0 += 1 }
          begun.come()
          gate.wait()
          return .success([])
        }
        core.resolver.lookUp("slow.invalid", for: listeners[0])
      })
    await begun.wait()
    loop.post(
      .run { core in
        core.resolver.withdraw(listeners[0], from: "slow.invalid")
        core.resolver.lookUp("slow.invalid", for: listeners[1])
        gate.signal()
      })
    await listeners[1].answer.wait()
    #expect(calls.withLock { $0 } == 1 && !listeners[0].answer.hasCome)
  }

  @Test("The addresses of a host are forgotten when connecting to it has failed") func unreachable()
    async throws
  {
    let port = try HTTPTestServer.refusedPort()
    let client = Client()
    let loop = client.transport.loop
    loop.post(
      .run { $0.resolver.finished("moved.invalid", .success([.loopback4].compactMap { $0 }), $0.now) })
    let failure = try await client.failure(of: "http://moved.invalid:\(port)/")
    #expect(failure.kind == .cannotConnectToHost, "\(failure.message)")
    let known = await withCheckedContinuation { continuation in
      loop.post(
        .run { continuation.resume(returning: $0.resolver.knownAddresses(of: "moved.invalid", $0.now)) })
    }
    #expect(known == nil)
  }
}
