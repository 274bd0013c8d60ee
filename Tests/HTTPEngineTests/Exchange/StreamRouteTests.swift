import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// The ways of connections that carry streams of bytes.
@Suite("Routes of streams", .timeLimit(.minutes(5))) struct StreamRouteTests {
  private static func loopback(_ last: UInt8) throws -> IPAddress {
    try #require(IPAddress(.v4, bytes: [127, 0, 0, last]))
  }

  /// A socket that listens and never answers: the queue of its connections is full.
  private final class SilentListener {
    private var descriptors: [Int32] = []
    let port: Int

    init(_ address: IPAddress, port: Int = 0) throws {
      var place = sockaddr_in()
      place.sin_family = sa_family_t(AF_INET)
      place.sin_port = in_port_t(port).bigEndian
      withUnsafeMutableBytes(of: &place.sin_addr) { $0.copyBytes(from: address.bytes) }
      let size = socklen_t(MemoryLayout<sockaddr_in>.size)
      func call(_ descriptor: Int32, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        withUnsafePointer(to: &place) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body(descriptor, $0, size) }
        }
      }
      let listener = socket(AF_INET, 1, 0)
      descriptors.append(listener)
      guard call(listener, bind) == 0, listen(listener, 0) == 0 else {
        self.port = 0
        throw TransportFailure(.unknown, "The listener cannot be made: \(String(cString: strerror(errno))).")
      }
      var length = size
      withUnsafeMutablePointer(to: &place) { pointer in
        _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) }
      }
      self.port = Int(in_port_t(bigEndian: place.sin_port))
      // The first connections fill the queue, the last ones wait for ever.
      for _ in 0..<3 {
        let client = socket(AF_INET, 1, 0)
        descriptors.append(client)
        _ = fcntl(client, F_SETFL, fcntl(client, F_GETFL) | O_NONBLOCK)
        _ = call(client, connect)
      }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
  }

  @Test("A silent first address costs a fraction of a second, and not the timeout") func silentAddress()
    async throws
  {
    let server = try StreamTestServer()
    let silent = try SilentListener(Self.loopback(2), port: server.port)
    let client = Client { $0.happyEyeballsDelay = .milliseconds(20) }
    let (stream, probe) = try client.stream(
      "two.example", port: server.port, addresses: [Self.loopback(2), Self.loopback(1)])
    #expect(try await stream.echo([1, 2, 3]).get() == [1, 2, 3])
    #expect(probe.wasOpened)
    stream.cancel()
    _ = await probe.end()
    withExtendedLifetime(silent) {}
  }

  @Test("A refused address is followed by the next one at once") func refusedAddresses() async throws {
    let server = try StreamTestServer()
    // With this delay, the test would not end in time.
    let client = Client { $0.happyEyeballsDelay = .seconds(3600) }
    let (stream, probe) = try client.stream(
      "three.example", port: server.port,
      addresses: [Self.loopback(5), Self.loopback(6), Self.loopback(1)])
    #expect(try await stream.echo([7]).get() == [7])
    stream.cancel()
    _ = await probe.end()
  }

  @Test("When no address accepts, the failure names the last one and the reason") func noneAccepts()
    async throws
  {
    let port = try HTTPTestServer.refusedPort()
    let (stream, probe) = try Client().stream(
      "none.example", port: port, addresses: [Self.loopback(5), Self.loopback(6)])
    stream.resume()
    let end = await probe.end()
    #expect(throws: TransportFailure.self) { try end.get() }
    guard case .failure(let failure) = end else { return }
    #expect(failure.kind == .cannotConnectToHost)
    #expect(failure.message.contains("none.example does not accept the connection"))
    #expect(failure.message.contains("port \(port). (127.0.0.6: Connection refused)"))
    #expect(failure.metrics != nil)
    #expect(!probe.wasOpened)
  }

  @Test("A host without an answer ends with the connect timeout") func connectTimeout() async throws {
    let silent = try SilentListener(Self.loopback(1))
    let client = Client { $0.connectTimeout = .milliseconds(50) }
    let (stream, probe) = client.stream("127.0.0.1", port: silent.port)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it has connected") }
    #expect(failure.kind == .timedOut)
    #expect(failure.phase == .connect)
    #expect(failure.message.contains("raise the connect timeout"))
    withExtendedLifetime(silent) {}
  }

  @Test("A server that is silent in the handshake ends the stream with the connect timeout")
  func handshakeTimeout() async throws {
    let silent = try StreamTestServer { try $0.stall() }
    let client = Client { $0.connectTimeout = .milliseconds(100) }
    let (stream, probe) = client.stream("127.0.0.1", port: silent.port, isSecure: true)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it is secure") }
    #expect(failure.kind == .timedOut)
    #expect(failure.message.contains("raise the connect timeout"))
  }

  @Test("The failure of a stream whose total time is over names the limit") func totalLimit() async throws {
    let silent = try SilentListener(Self.loopback(1))
    let limit = Duration.milliseconds(50)
    let client = Client { $0.timeLimits.total = limit }
    let origin = Origin(scheme: "http", host: "127.0.0.1", port: silent.port)
    let request = WireRequest(url: "\(origin)/", origin: origin, profile: client.profile) {
      $0.deadline = .now + limit
    }
    let probe = StreamProbe()
    let stream = client.transport.stream(request, isSecure: false, watcher: probe)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it has connected") }
    #expect(failure.phase == .total && failure.message.contains("(timeLimits.total)"), "\(failure.message)")
    withExtendedLifetime(silent) {}
  }

  @Test("A stream that is cancelled while it connects opens nothing") func cancelled() async throws {
    let silent = try SilentListener(Self.loopback(1))
    let client = Client()
    let (stream, probe) = client.stream("127.0.0.1", port: silent.port)
    stream.resume()
    stream.cancel()
    guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it has connected") }
    #expect(failure.kind == .cancelled)
    withExtendedLifetime(silent) {}
  }

  @Test("Private addresses are refused before a socket is opened, even if a name resolves to them")
  func privateAddresses() async throws {
    let server = try StreamTestServer()
    for host in ["127.0.0.1", "localhost", "name.example", "127.1", "0x7f000001"] {
      let client = Client { $0.refusesPrivateAddresses = true }
      let known = host == "name.example" ? [try Self.loopback(1)] : nil
      let (stream, probe) = client.stream(host, port: server.port, addresses: known)
      stream.resume()
      guard case .failure(let failure) = await probe.end() else {
        return _ = Issue.record("\(host) was reached")
      }
      #expect(failure.kind == .addressRefused, "\(host)")
    }
  }

  @Test(
    "A stream goes out by the chosen local end",
    arguments: ["127.0.0.1", "host!127.0.0.1", "lo", "if!lo", "host!localhost"])
  func localEnds(setting: String) async throws {
    let server = try StreamTestServer()
    let (stream, probe) = Client { $0.localInterface = setting }.stream("127.0.0.1", port: server.port)
    #expect(try await stream.echo([9]).get() == [9])
    stream.cancel()
    _ = await probe.end()
  }

  @Test(
    "A local end that is not there is a clear failure",
    arguments: ["if!no-such", "host!192.0.2.7", "192.0.2.7"])
  func missingLocalEnds(setting: String) async throws {
    let server = try StreamTestServer()
    let (stream, probe) = Client { $0.localInterface = setting }.stream("127.0.0.1", port: server.port)
    stream.resume()
    guard case .failure(let failure) = await probe.end() else {
      return _ = Issue.record("\(setting) was used")
    }
    #expect(failure.kind == .cannotConnectToHost)
    #expect(failure.message.contains("localInterface"), "\(failure.message)")
  }

  @Test("An unknown name is a clear failure, and a second attempt asks again") func unknownName() async {
    let client = Client()
    for _ in 0..<2 {
      let (stream, probe) = client.stream("no-such-host.invalid", port: 80)
      stream.resume()
      guard case .failure(let failure) = await probe.end() else { return _ = Issue.record("it was found") }
      #expect(failure.kind == .cannotFindHost)
      #expect(failure.helps(host: "no-such-host.invalid"))
    }
  }
}
