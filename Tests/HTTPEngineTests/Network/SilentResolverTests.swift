import HTTPEngine
import HTTPWire
import Testing

/// The system's resolver, with name servers that never answer. Skipped if the process may not create a network
/// namespace.
@Suite("Silent resolvers", .timeLimit(.minutes(5))) struct SilentResolverTests {
  @Test("A name that the resolver does not find in time") func nameLookup() async {
    // A separate process, because a look-up can use a thread that was started outside of the namespace.
    await #expect(processExitsWith: .success) {
      let limit = Duration.milliseconds(300)
      let client = Client(lingering: .seconds(240)) {
        $0.timeLimits = .init(
          nameLookup: limit, connect: .nanoseconds(1), firstByte: .nanoseconds(1))
      }
      defer { client.transport.shutDown() }
      let loop = client.transport.loop
      let isReady = await PrivateNetwork.run {
        guard PrivateNetwork.bindNameServers() != nil else { return false }
        loop.startThread()
        return true
      }
      guard isReady == true else { return }
      let start = ContinuousClock.now
      let failure = try await client.failure(of: "http://silent.example/")
      #expect(failure.kind == .timedOut, "\(failure.message)")
      #expect(failure.phase == .nameLookup, "\(failure.message)")
      #expect(failure.helps(host: "silent.example"))
      #expect(failure.metrics?.values.lookupEnd == -1 && failure.metrics?.values.isConnecting == true)
      #expect(ContinuousClock.now - start >= limit)
      // Addresses do not need a look-up.
      let refused = try await client.failure(of: "http://127.0.0.1:9/")
      #expect(refused.kind == .cannotConnectToHost, "\(refused.message)")
    }
  }
}
