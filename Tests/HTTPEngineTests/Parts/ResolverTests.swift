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
