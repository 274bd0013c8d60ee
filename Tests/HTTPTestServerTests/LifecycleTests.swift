import Glibc
@testable import HTTPTestServer
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LifecycleTests {
  /// Returns accepted connections in every state.
  static func clients(of server: HTTPTestServer) throws -> [RawClient] {
    let gate = Gate()
    server.enqueue(
      .stall, Reply.ok.held(by: gate), Reply.ok.delayed(by: .seconds(600)), .stallAfterBody(bytes: 10),
      .slowDrip(bytesPerStep: 1, interval: .seconds(600)), Reply.bytes(1 << 30), .ok)
    var clients: [RawClient] = []
    for _ in 0..<7 {
      let client = try RawClient(server)
      try client.ask("GET", "/")
      clients.append(client)
    }
    let uploading = try RawClient(server)
    try uploading.ask("POST", "/post", ["Content-Length: 10"])
    let silent = try RawClient(server)
    let halfway = try RawClient(server)
    try halfway.write("GET / HT")
    clients += [uploading, silent, halfway]
    while server.connectionCount < clients.count { sched_yield() }
    return clients
  }

  @Test("Stopping ends connections in every state") func stop() throws {
    let server = try HTTPTestServer()
    let clients = try Self.clients(of: server)
    server.stop()
    server.stop()
    #expect(server.openConnectionCount == 0)
    for client in clients { #expect([nil, ECONNRESET].contains(client.endingError())) }
    let error = #expect(throws: RawClient.Failure.self) { try RawClient(server) }
    if case .system("connect", ECONNREFUSED)? = error {} else { Issue.record("\(String(describing: error))") }
  }

  @Test("Stopping ends a connection whose socket is always ready", arguments: [false, true])
  func stopReadySocket(isWriting: Bool) throws {
    var ends: [Int32] = [-1, -1]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
    defer { for end in ends { close(end) } }
    let signal = try Waker()
    let channel = Channel(descriptor: ends[0], stopSignal: signal)
    let piece = [UInt8](repeating: 7, count: 4096)
    // As much as the socket holds, so that neither reading nor writing has to wait.
    if !isWriting { while piece.withUnsafeBytes({ send(ends[1], $0.baseAddress, $0.count, 0) }) > 0 {} }
    signal.wake()
    var count = 0
    let failure = #expect(throws: Channel.Failure.self) {
      while true {
        if isWriting { try channel.write(piece) } else { try #require(channel.read(atMost: 4096).count > 0) }
        count += 4096
      }
    }
    if case .stopped? = failure {} else { Issue.record("\(String(describing: failure))") }
    #expect(count <= 65_536, "A socket holds about three times as much.")
  }

  @Test("Stopping ends handshakes and TLS connections") func stopTLS() throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: .stall)
    let stalled = try RawClient(server)
    let handshaking = try RawClient(server)
    try handshaking.write([0x16, 0x03, 0x01])
    let idle = try TLSClient(server, authority: TestIdentity.localhost.caPEM)
    while server.connectionCount < 3 { sched_yield() }
    server.stop()
    #expect([nil, ECONNRESET].contains(stalled.endingError()))
    #expect([nil, ECONNRESET].contains(handshaking.endingError()))
    #expect(idle.exchange("/").text.isEmpty)
  }

  @Test("The release of a server stops it") func release() throws {
    weak var core: ServerCore?
    let client: RawClient
    do {
      let server = try HTTPTestServer()
      core = server.core
      client = try RawClient(server)
      _ = try client.get("/ip")
    }
    #expect(client.endingError() == nil)
    #expect(core == nil)
  }

  @Test("The thread of a closed connection is joined while the server runs") func closedConnection() throws {
    let server = try HTTPTestServer()
    let clients = try (0..<3).map { _ in try RawClient(server) }
    for client in clients { _ = try client.get("/ip") }
    while server.core.threads.count < 3 { sched_yield() }
    for client in clients { client.closeNow() }
    while server.core.threads.count > 0 { sched_yield() }
    #expect(server.connectionCount == 3)

    let streams = try StreamTestServer()
    let others = try (0..<3).map { _ in try RawClient(port: streams.port) }
    while streams.core.threads.count < 3 { sched_yield() }
    for other in others { other.closeNow() }
    while streams.core.threads.count > 0 { sched_yield() }
    #expect(streams.connectionCount == 3)
    let last = try RawClient(port: streams.port)
    try last.write("x")
    while streams.receivedByteCount == 0 { sched_yield() }
  }

  @Test("A route can stop its own server") func stopByRoute() throws {
    let own = Mutex<HTTPTestServer?>(nil)
    let server = try HTTPTestServer(
      routes: Routes.none.adding("/stop") { _, _ in
        own.withLock { $0 }?.stop()
        return .ok
      })
    own.withLock { $0 = server }
    let client = try RawClient(server)
    try client.ask("GET", "/stop")
    while server.openConnectionCount > 0 { sched_yield() }
    #expect(client.endingError() == nil)
    own.withLock { $0 = nil }
  }

  @Test("A script can stop its own server, or release it", arguments: [false, true])
  func stopByScript(isReleased: Bool) throws {
    let own = Mutex<StreamTestServer?>(nil)
    let client: RawClient
    do {
      let server = try StreamTestServer { connection in
        _ = try connection.line()
        // Taken before, because the release waits for threads.
        let server = own.withLock { $0.take() }
        if !isReleased { server?.stop() }
      }
      own.withLock { $0 = server }
      client = try RawClient(port: server.port)
    }
    try client.write("stop\n")
    #expect(client.endingError() == nil)
  }

  @Test("Threads can stop a server concurrently") func concurrentStop() async throws {
    let server = try HTTPTestServer()
    let clients = try Self.clients(of: server)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 { group.addTask { server.stop() } }
    }
    #expect(server.openConnectionCount == 0)
    #expect(clients.count == 10)
  }

  @Test("Five hundred connections are served concurrently") func manyConnections() throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let server = try HTTPTestServer()
    let clients = try (0..<500).map { _ in try RawClient(server) }
    for round in 0..<2 {
      for (number, client) in clients.enumerated() { try client.ask("GET", "/anything/\(number)/\(round)") }
      for (number, client) in clients.enumerated() {
        #expect(try client.readResponse().text.contains("/anything/\(number)/\(round)\""))
      }
    }
    #expect(server.requestCount == 1000)
    #expect(server.connectionCount == 500)
    #expect(server.openConnectionCount == 500)
    server.stop()
    #expect(clients.allSatisfy { $0.endingError() == nil })
  }

  #if !THREAD_SANITIZER
    @Test("Stopping leaves no thread or descriptor behind") func resources() async {
      // Runs in a separate process, because other code opens descriptors and threads here.
      await #expect(processExitsWith: .success) {
        func count(_ directory: String) -> Int {
          guard let stream = opendir(directory) else { return -1 }
          defer { closedir(stream) }
          var count = 0
          while readdir(stream) != nil { count += 1 }
          return count
        }
        func use() throws {
          let plain = try HTTPTestServer()
          let clients = try LifecycleTests.clients(of: plain)
          let secure = try HTTPTestServer(.tls(.localhost))
          let client = try TLSClient(secure, authority: TestIdentity.localhost.caPEM)
          _ = client.exchange("/ip")
          let failed = try? TLSClient(secure, authority: TestIdentity.localhost.caPEM, name: "other")
          try #require(failed == nil)
          plain.stop()
          secure.stop()
          for client in clients { client.closeNow() }
        }
        // The first run initializes OpenSSL and other libraries, which hold their resources.
        try use()
        let before = (count("/proc/self/task"), count("/proc/self/fd"))
        for _ in 0..<5 { try use() }
        try #require(count("/proc/self/task") == before.0)
        try #require(count("/proc/self/fd") == before.1)
        try #require(before.0 > 0 && before.1 > 0)
      }
    }
  #endif
}
