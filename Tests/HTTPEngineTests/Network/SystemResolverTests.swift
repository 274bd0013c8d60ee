import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Look-ups by the system's resolver, with name servers that follow a script. Each test runs in a separate process,
/// because a look-up could use a thread of another namespace otherwise. The tests check nothing if the process may not
/// create a namespace.
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

  /// Does not check that names are forgotten after a minute, because the resolver has no clock that a test could set.
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

  /// Uses an address that is valid on one link only, and therefore needs a zone (RFC 6874).
  @Test("A zone chooses the interface and is not part of Host") func zone() async {
    await #expect(processExitsWith: .success) {
      let client = Client(lingering: .seconds(240))
      let heads = Received()
      let port = await PrivateNetwork.run { () throws -> Int in
        guard PrivateNetwork.ip("-6 address add fe80::1/64 dev lo nodad") else { throw SixServer.Failure() }
        client.transport.loop.startThread()
        return try SixServer.start(heads)
      }
      guard let port else { return }
      // An error that leaves this closure would end the process without its text.
      await #expect(throws: Never.self) {
        let url = "http://[fe80::1%25lo]:\(port)/x"
        // The system adds the route to a new address a moment after the address.
        var response = try? await client.get(url)
        for _ in 0..<20 where response == nil { response = try? await client.get(url) }
        let found = if let response { response } else { try await client.get(url) }
        #expect(found.text == "ok")
        #expect(found.metrics.remoteAddress == "fe80::1" && found.metrics.localAddress == "fe80::1")
      }
      let head = heads.texts.first ?? ""
      #expect(head.hasPrefix("GET /x HTTP/1.1\r\n"))
      #expect(head.contains("\r\nHost: [fe80::1]:\(port)\r\n"), "\(head)")
      let advice = [
        "[fe80::1]": "add the interface", "[fe80::1%25nowhere]": "check its zone",
        "192.0.2.1": "check the network",
      ]
      for (host, words) in advice {
        let failure = try await client.failure(of: "http://\(host):\(port)/x")
        #expect(failure.kind == .cannotConnectToHost, "\(host): \(failure.message)")
        #expect(failure.message.contains(words), "\(host): \(failure.message)")
      }
    }
  }
}

/// A server on all IPv6 addresses, which answers the first request of each connection.
private enum SixServer {
  struct Failure: Error {
    let code = errno
  }

  /// Starts the server, which runs as long as the process. Returns its port.
  static func start(_ heads: Received) throws -> Int {
    let listener = socket(AF_INET6, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        listener >= 0 && bind(listener, $0, length) == 0 && listen(listener, 8) == 0
          && getsockname(listener, $0, &length) == 0
      }
    }
    guard isListening else { throw Failure() }
    Thread {
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { continue }
        answer(connection, heads)
        close(connection)
      }
    }.start()
    return Int(in_port_t(bigEndian: address.sin6_port))
  }

  private static func answer(_ connection: Int32, _ heads: Received) {
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8), recv(connection, &byte, 1, 0) == 1 {
      head.append(byte)
    }
    heads.add(head)
    let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".utf8)
    _ = send(connection, response, response.count, Int32(MSG_NOSIGNAL))
  }
}
