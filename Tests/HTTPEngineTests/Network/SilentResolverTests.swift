import HTTPEngine
import HTTPSystem
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
      let patient = Client(lingering: .seconds(240))
      let transports = [client.transport, patient.transport]
      defer { for transport in transports { transport.shutDown() } }
      let loops = transports.map(\.loop)
      let isReady = await PrivateNetwork.run {
        guard PrivateNetwork.bindNameServers() != nil else { return false }
        for loop in loops { loop.startThread() }
        return true
      }
      guard isReady == true else { return }
      let start = ContinuousClock.now
      let failure = try await client.failure(of: "http://silent.example/")
      #expect(failure.kind == .timedOut, "\(failure.message)")
      #expect(failure.phase == .nameLookup, "\(failure.message)")
      #expect(failure.helps(host: "silent.example"))
      #expect(failure.metrics?.values.lookupEnd == -1)
      #expect(ContinuousClock.now - start >= limit)
      // The total time ends during the look-up.
      let overdue = try await patient.failure(
        of: patient.request("http://silent.example/").changing { $0.deadline = .now + limit })
      #expect(overdue.phase == .total, "\(overdue.message)")
      let values = try #require(overdue.metrics?.values)
      #expect(values.lookupEnd == -1 && values.isConnecting)
      // Addresses do not need a look-up.
      let refused = try await client.failure(of: "http://127.0.0.1:9/")
      #expect(refused.kind == .cannotConnectToHost, "\(refused.message)")
    }
  }
}
