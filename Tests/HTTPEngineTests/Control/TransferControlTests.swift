import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct TransferControlTests {
  static let size = 8_000_000

  @Test("A suspended transfer receives no bytes and does not time out", arguments: [false, true])
  func suspended(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    let bytes = Content.bytes(Self.size)
    server.enqueue(.data(bytes))
    let client = Client()
    let hasClosed = Moment()
    let watcher = Watcher(onBytes: { watcher, count in
      guard count.received > 1_000_000, !hasClosed.hasCome else { return }
      watcher.suspend()
      hasClosed.come()
    })
    let request = try client.request(server.url("/"), idleTimeout: .seconds(1))
    async let response = client.send(request, watcher: watcher)
    await hasClosed.wait()
    // The loop reads the command in its next turn. After that, no bytes may arrive.
    try await client.roundTrip()
    let before = try #require(watcher.last?.received)
    #expect(before < Self.size)
    // Longer than the idle timeout, while another request on the same loop is alive.
    try await client.passTime(.milliseconds(1300))
    #expect(watcher.last?.received == before)
    #expect(watcher.endedCount == 0)
    watcher.resume()
    #expect(try await response.body == Data(bytes))
    #expect(watcher.last?.received == Int64(Self.size))
  }

  @Test("A held head stops the body", arguments: [1, 5000, 8_000_000])
  func heldHead(size: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    let bytes = Content.bytes(size)
    server.enqueue(.data(bytes))
    let client = Client()
    let watcher = Watcher(holdsHead: true)
    let request = try client.request(server.url("/"), idleTimeout: .seconds(1))
    async let response = client.send(request, watcher: watcher)
    await watcher.headCame.wait()
    try await client.passTime(.milliseconds(1300))
    #expect(watcher.counts.isEmpty)
    #expect(watcher.endedCount == 0)
    watcher.resume()
    #expect(try await response.body == Data(bytes))
  }

  @Test("A held head without a body ends the transfer") func heldHeadWithoutBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(204))
    let watcher = Watcher(holdsHead: true)
    // The response has no bytes to hold back.
    #expect(try await Client().get(server.url("/"), watcher: watcher).status == 204)
  }

  @Test("A held encoded body is decoded after the release") func heldEncodedBody() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let watcher = Watcher(holdsHead: true)
    async let response = client.get(server.url("/gzip"), watcher: watcher)
    await watcher.headCame.wait()
    watcher.resume()
    #expect(try await response.text.contains("\"gzipped\""))
  }

  @Test("A body above the limit is refused, also after a pause") func bodySizeLimit() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.stallAfterBody(bytes: 500))
    let client = Client { $0.bodySizeLimit = 100 }
    let watcher = Watcher(holdsHead: true)
    let request = try client.request(server.url("/"))
    async let failure = client.failure(of: request, watcher: watcher)
    await watcher.headCame.wait()
    watcher.resume()
    #expect(try await failure.kind == .dataLengthExceedsMaximum)
  }

  @Test("A transfer that starts suspended is sent after resume") func startsSuspended() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let watcher = Watcher(startsClosed: true)
    let request = try client.request(server.url("/get"), idleTimeout: .seconds(1))
    async let response = client.send(request, watcher: watcher)
    await watcher.began.wait()
    try await client.passTime(.milliseconds(1300))
    #expect(server.connectionCount == 0)
    watcher.resume()
    #expect(try await response.status == 200)
  }

  @Test("Transfers that start suspended do not occupy the queue") func queueOfSuspended() async throws {
    let server = try HTTPTestServer()
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/get")
    let closed = [Watcher(startsClosed: true), Watcher(startsClosed: true)]
    try await withThrowingTaskGroup(of: Int.self) { group in
      for watcher in closed { group.addTask { try await client.get(url, watcher: watcher).status } }
      for watcher in closed { await watcher.began.wait() }
      #expect(try await client.get(url).status == 200)
      for watcher in closed { watcher.resume() }
      for try await status in group { #expect(status == 200) }
    }
    #expect(server.requestCount == 3)
  }

  @Test("A transfer that is suspended in the queue is skipped") func suspendedInQueue() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate), .text("second"), .text("third"))
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/")
    async let first = client.get(url)
    await gate.waitForArrival()
    let watcher = Watcher()
    async let suspended = client.get(url, watcher: watcher)
    await watcher.began.wait()
    watcher.suspend()
    // The loop has suspended the transfer before a later request to another server ends.
    let elsewhere = try HTTPTestServer()
    #expect(try await client.get(elsewhere.url("/get")).status == 200)
    async let other = client.get(url)
    gate.open()
    #expect(try await first.text == "first")
    #expect(try await other.text == "second")
    watcher.resume()
    #expect(try await suspended.text == "third")
  }

  @Test(
    "A transfer that is suspended while it connects leaves its place to another one, also before its login",
    arguments: [false, true])
  func suspendedWhileConnecting(logsIn: Bool) async throws {
    let gate = Gate()
    let connections = Counter()
    let server = try StreamTestServer { connection in
      connections.enter()
      if connections.most == 1 { try connection.pass(gate) }
      try connection.startTLS(.localhost)
      while true {
        let head = String(decoding: try connection.readHead(), as: UTF8.self)
        try connection.write(
          head.contains("Authorization: NTLM TlRMTVNTUAAB")
            ? "HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM \(NTLMExample.challenge)\r\nContent-Length: 0\r\n\r\n"
            : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
    let client = Client(connectionsPerHost: 1)
    let url = "https://localhost:\(server.port)/"
    let login = ConnectionLogin(
      scheme: .ntlm, credential: PasswordCredential(user: "anna", password: "secret"))
    let request = try client.request(url).changing { if logsIn { $0.login = login } }
    let watcher = Watcher()
    async let suspended = client.send(request, watcher: watcher)
    await gate.waitForArrival()
    watcher.suspend()
    #expect(try await client.get(url).text == "ok")
    #expect(await client.transport.snapshot().hosts.flatMap { $0.waiting.map(\.reason) } == [.suspended])
    watcher.resume()
    let response = try await suspended
    #expect(response.status == 200 && response.text == "ok")
    gate.open()
  }

  @Test("An upload can be paused and resumed") func upload() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("done"))
    let client = Client()
    let bytes = Content.bytes(Self.size)
    let hasClosed = Moment()
    let watcher = Watcher(onBytes: { watcher, count in
      guard count.sent > 500_000, !hasClosed.hasCome else { return }
      watcher.suspend()
      hasClosed.come()
    })
    let request = try client.request(server.url("/"), "POST", body: .bytes(Data(bytes)))
    async let response = client.send(request, watcher: watcher)
    await hasClosed.wait()
    watcher.resume()
    #expect(try await response.text == "done")
    let seen = try await server.takeRequest()
    #expect(Data(seen.body) == Data(bytes))
  }

  @Test("Random suspensions lose no byte") func randomSuspensions() async throws {
    let server = try HTTPTestServer(routes: .none)
    let bytes = Content.bytes(2_000_000)
    server.enqueue(.data(bytes).framed(.chunked))
    let client = Client()
    let watcher = Watcher(onBytes: { watcher, count in
      watcher.suspend()
      watcher.resume()
      if count.received % 3 == 0 { watcher.suspend() }
      watcher.resume()
      watcher.resume()
    })
    #expect(try await client.get(server.url("/"), watcher: watcher).body == Data(bytes))
    // The control of an ended transfer has no effect.
    watcher.suspend()
    watcher.resume()
    #expect(watcher.endedCount == 1)
  }
}
