import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Look-ups by the system's resolver, whose name servers follow a script. Each test has a process of its own, so that
/// no look-up runs on a thread of another namespace. Nothing is checked if the process may not make a namespace.
@Suite("The system's resolver", .serialized, .timeLimit(.minutes(5))) struct SystemResolverTests {
  /// The objects of a test, in one namespace.
  private struct Network: Sendable {
    let client = Client(lingering: .seconds(240))
    let names = NameService()
    let server: HTTPTestServer

    init() throws { server = try HTTPTestServer() }

    /// Makes a namespace with all of them; `nil` if that is not permitted.
    static func make() async -> Network? {
      await PrivateNetwork.run {
        let network = try Network()
        guard PrivateNetwork.answerLookups(by: network.names) else { throw Unavailable() }
        network.client.transport.loop.startThread()
        return network
      }
    }

    private struct Unavailable: Error {}

    func url(_ host: String) -> String { "http://\(host):\(server.port)/get" }
    func questionCount(of name: String) -> Int { names.questions.count { $0.name == name } }
  }

  /// Does not check that names are forgotten after a minute, because libcurl has no clock that a test could set.
  @Test("A name that was found is not looked up again, and a failure is") func cache() async {
    await #expect(processExitsWith: .success) {
      guard let network = await Network.make() else { return }
      network.names.set("kept.example", [.loopback4])
      // The second request needs another connection.
      network.server.enqueue(.text("1").closing(), .text("2").closing())
      #expect(try await network.client.get(network.url("kept.example")).text == "1")
      let count = network.questionCount(of: "kept.example")
      #expect(count > 0)
      #expect(try await network.client.get(network.url("KEPT.example")).text == "2")
      #expect(network.server.connectionCount == 2)
      #expect(network.questionCount(of: "kept.example") == count, "the name was looked up again")

      let failure = try await network.client.failure(of: network.url("late.example"))
      #expect(failure.kind == .cannotFindHost, "\(failure.message)")
      network.names.set("late.example", [.loopback4])
      #expect(try await network.client.get(network.url("late.example")).status == 200)
    }
  }

  @Test("localhost and its subdomains are not looked up") func localNames() async {
    await #expect(processExitsWith: .success) {
      guard let network = await Network.make() else { return }
      for host in ["localhost", "a.localhost", "LOCALHOST", "b.c.LocalHost"] {
        let response = try await network.client.get(network.url(host))
        #expect(response.status == 200, "\(host)")
        #expect(response.metrics.remoteAddress == "127.0.0.1", "\(host)")
      }
      #expect(network.names.questions.allSatisfy { $0.name == "probe.example" }, "\(network.names.questions)")
    }
  }
}
