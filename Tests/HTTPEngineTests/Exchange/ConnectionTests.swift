import FoundationEssentials
import Glibc
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConnectionTests {
  @Test("A connection is reused by the next request", arguments: [false, true])
  func reuse(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none)
    let client = Client()
    let first = try await client.get(server.url("/get"))
    #expect(!first.metrics.values.isReusedConnection)
    for _ in 0..<5 {
      let next = try await client.get(server.url("/get"))
      #expect(next.metrics.values.isReusedConnection)
    }
    #expect(server.connectionCount == 1)
    #expect(server.requestCount == 6)
  }

  @Test(
    "Requests to a new server of HTTP/1.1 do not wait for each other's responses", arguments: [false, true])
  func concurrentRequests(isTLS: Bool) async throws {
    let gate = Gate()
    let server = try isTLS ? HTTPTestServer(.tls(.localhost), routes: .none) : HTTPTestServer(routes: .none)
    let client = Client()
    var reply = Reply.status(200)
    reply.gate = gate
    server.enqueue(reply, reply, reply)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 {
        group.addTask {
          let status = try await client.get(server.url("/")).status
          #expect(status == 200)
        }
      }
      await gate.waitForArrival(count: 3)
      gate.open()
      try await group.waitForAll()
    }
  }

  @Test("A connection that the server closes is not reused") func closedByServer() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("1").closing(), .text("2"))
    let client = Client()
    #expect(try await client.get(server.url("/")).text == "1")
    let second = try await client.get(server.url("/"))
    #expect(second.text == "2")
    #expect(!second.metrics.values.isReusedConnection)
    #expect(server.connectionCount == 2)
  }

  @Test("A connection that was closed while idle is replaced", arguments: [false, true])
  func closedWhileIdle(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    let client = Client()
    for round in 0..<5 {
      server.enqueue(.text("\(round)"))
      #expect(try await client.get(server.url("/")).text == "\(round)")
      server.closeIdleConnections()
    }
    #expect(server.requestCount == 5)
    #expect(server.connectionCount == 5)
  }

  @Test("Child processes do not inherit the connection", arguments: [false, true])
  func childProcesses(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none)
    let client = Client()
    _ = try await client.get(server.url("/get"))
    // Other tests may have any number of descriptors open.
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
      Int32($0)
    }
    let sockets = descriptors.filter { Self.remotePort(of: $0) == server.port }
    #expect(sockets.count == 1)
    #expect(sockets.allSatisfy { fcntl($0, F_GETFD) & FD_CLOEXEC != 0 })
    withExtendedLifetime(client) {}
  }

  private static func remotePort(of socket: Int32) -> Int? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(socket, $0, &length) }
    }
    return result == 0 ? Int(UInt16(bigEndian: address.sin_port)) : nil
  }

  @Test("Transports do not share connections") func transports() async throws {
    let server = try HTTPTestServer()
    for _ in 0..<3 { _ = try await Client().get(server.url("/get")) }
    #expect(server.connectionCount == 3)
  }

  /// Compares the longest of a few waits with the delay of the server. The clock is read after sending. On a busy
  /// machine, a delay in between makes the wait seem shorter, never longer.
  @Test("The time to the first byte is measured", arguments: [false, true])
  func timeToFirstByte(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    var longest: Int64 = 0
    for _ in 0..<5 where longest < 19_000 {
      server.enqueue(.bytes(5000).delayed(by: .milliseconds(20)))
      let values = try await Client().get(server.url("/")).metrics.values
      longest = max(longest, Int64(values.responseStart - values.requestStart))
    }
    #expect(longest >= 19_000)
  }

  @Test("Metrics are ordered and plausible", arguments: [false, true])
  func metrics(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    server.enqueue(.bytes(5000).delayed(by: .milliseconds(20)))
    let body = RequestBody.bytes(Data(Reply.patternBytes(300)))
    let client = Client()
    let response = try await client.send(client.request(server.url("/"), "POST", body: body))
    let metrics = response.metrics
    let values = metrics.values
    #expect(abs(values.start - Date().timeIntervalSince1970) < 60)
    let phases =
      [values.lookupEnd, values.connectEnd] + (isTLS ? [values.secureEnd] : [])
      + [values.requestStart, values.requestEnd, values.responseStart, values.end]
    #expect(phases.allSatisfy { $0 > 0 && $0 < 30_000_000 }, "\(phases)")
    #expect(zip(phases, phases.dropFirst()).allSatisfy { $0 <= $1 }, "\(phases)")
    #expect((values.secureEnd > 0) == isTLS)
    #expect(values.requestHeaderBytes > 20 && values.responseHeaderBytes > 20)
    #expect(values.requestBodyBytes == 300)
    #expect(values.responseBodyBytes == 5000 && values.decodedBodyBytes == 5000)
    #expect(!values.isProxyConnection)
    #expect(metrics.version == .http1_1)
    #expect(metrics.localAddress == "127.0.0.1" && metrics.remoteAddress == "127.0.0.1")
    #expect(values.remotePort == Int32(server.port))
    #expect(values.localPort > 0 && values.localPort != values.remotePort)
    let tls = try await server.takeRequest().tls
    #expect(metrics.tlsVersion == tls?.version)
    #expect((metrics.tlsCipher != nil) == isTLS)
    #expect((metrics.tlsVersion != nil) == isTLS)
  }

  @Test("Metrics of a reused connection have no phases of connecting", arguments: [false, true])
  func metricsOfReuse(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none)
    let client = Client()
    let first = try await client.get(server.url("/get")).metrics
    let second = try await client.get(server.url("/get")).metrics
    #expect([second.values.lookupEnd, second.values.connectEnd, second.values.secureEnd] == [-1, -1, -1])
    #expect(second.values.requestStart >= 0 && second.values.responseStart >= second.values.requestStart)
    #expect(second.values.end >= second.values.responseStart)
    #expect(second.values.localPort == first.values.localPort)
    #expect(second.remoteAddress == first.remoteAddress)
    #expect(second.tlsVersion == first.tlsVersion && second.tlsCipher == first.tlsCipher)
    #expect(second.values.start >= first.values.start)
  }

  enum Ending: CaseIterable { case idle, deadline, cancelled }

  @Test(
    "A request that ends before its connection is there has the times until then", arguments: Ending.allCases)
  func metricsWithoutConnection(ending: Ending) async throws {
    // A slow machine may need longer than the first limit to connect.
    for limit in [200, 2_000, 20_000] {
      let values = try await valuesWithoutConnection(ending: ending, .milliseconds(limit))
      #expect(values.secureEnd == -1 && values.requestStart == -1)
      guard values.connectEnd == -1, limit < 20_000 else {
        #expect(values.lookupEnd >= 0 && values.connectEnd >= values.lookupEnd)
        return
      }
    }
  }

  private func valuesWithoutConnection(
    ending: Ending, _ limit: Duration
  ) async throws -> TransferMetrics.Values {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: .stall)
    let client = Client()
    let watcher = Watcher()
    let request = try client.request(
      server.url("/get"), idleTimeout: ending == .idle ? limit : nil,
      deadline: ending == .deadline ? limit : nil)
    async let failure = client.failure(of: request, watcher: watcher)
    if ending == .cancelled {
      await watcher.began.wait()
      // The client has connected.
      try await client.roundTrip()
      watcher.cancel()
    }
    return try #require(try await failure.metrics?.values)
  }

  @Test("Sizes count the bytes on the connection") func sizes() async throws {
    let heads = Received()
    let head =
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    let body = "2\r\nok\r\n0\r\n\r\n"
    let server = try StreamTestServer { connection in
      heads.add(try connection.readHead())
      try connection.write(head + body)
      connection.waitForEnd()
    }
    let values = try await Client().get("http://127.0.0.1:\(server.port)/").metrics.values
    #expect(heads.values.map { Int64($0.count) } == [values.requestHeaderBytes])
    #expect(values.responseHeaderBytes == Int64(head.utf8.count))
    #expect(values.responseBodyBytes == Int64(body.utf8.count) && values.decodedBodyBytes == 2)
  }

  @Test("Sizes count the head of a response that does not come to its end", arguments: [false, true])
  func sizesOfHead(isDropped: Bool) async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write(head + "12345")
      connection.waitForEnd()
    }
    let client = Client()
    let url = "http://127.0.0.1:\(server.port)/"
    let values: TransferMetrics.Values?
    if isDropped {
      // The rest of a body that is discarded is waited for only briefly.
      values = try await client.get(url, watcher: Watcher(disposition: .discard)).metrics.values
    } else {
      let watcher = Watcher(onHead: { $0.cancel() })
      values = try await client.failure(of: client.request(url), watcher: watcher).metrics?.values
    }
    #expect(
      values?.responseHeaderBytes == Int64(head.utf8.count),
      "the head does not count unless the exchange ends with its response")
  }
}
