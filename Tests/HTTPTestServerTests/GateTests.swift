import Glibc
@testable import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GateTests {
  private let server: HTTPTestServer
  private let client: RawClient
  private let gate = Gate()

  init() throws {
    server = try HTTPTestServer()
    client = try RawClient(server)
  }

  @Test("A gate holds the reply") func reply() async throws {
    server.enqueue(Reply.text("late").held(by: gate))
    try client.ask("GET", "/")
    await gate.waitUntilReached()
    #expect(try await server.takeRequest().path == "/")
    #expect(!client.hasBytes)
    gate.open()
    gate.open()
    #expect(try client.readResponse().text == "late")
    #expect(gate.isOpen)
  }

  @Test("A gate holds a part of a body") func partOfBody() async throws {
    server.enqueue(.parts("one", .gate(gate), "two"))
    try client.ask("GET", "/")
    await gate.waitUntilReached()
    let start =
      "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
      + "Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
    #expect(String(decoding: try client.read(start.utf8.count), as: UTF8.self) == start)
    #expect(!client.hasBytes)
    gate.open()
    #expect(String(decoding: try client.read(13), as: UTF8.self) == "3\r\ntwo\r\n0\r\n\r\n")
  }

  @Test("A gate holds the reading of a body") func readingOfBody() async throws {
    server.enqueue(Reply.ok.requestBody(.held(gate)))
    try client.ask("POST", "/", ["Content-Length: 3", "Expect: 100-continue"])
    await gate.waitUntilReached()
    #expect(!client.hasBytes)
    #expect(server.requestCount == 0)
    gate.open()
    #expect(try client.readResponse().status == 100)
    try client.write("abc")
    #expect(try client.readResponse().status == 200)
    #expect(server.recordedRequests.map(\.bodyText) == ["abc"])
  }

  @Test("An open gate does not hold a reply, but counts it") func openGate() async throws {
    gate.open()
    server.enqueue(Reply.ok.held(by: gate), Reply.ok.held(by: gate))
    _ = try client.get("/")
    _ = try client.get("/")
    await gate.waitUntilReached(count: 2)
    #expect(gate.reachedCount == 2)
  }

  @Test("One gate holds several replies") func severalReplies() async throws {
    let clients = try (0..<5).map { _ in try RawClient(server) }
    for client in clients {
      server.enqueue(Reply.text("x").held(by: gate))
      try client.ask("GET", "/")
    }
    await gate.waitUntilReached(count: 5)
    gate.open()
    for client in clients { #expect(try client.readResponse().text == "x") }
  }

  @Test("All replies wait for the same descriptor") func oneDescriptor() {
    guard case .closed(let first?) = gate.reached(), case .closed(let second?) = gate.reached() else {
      Issue.record("the gate is open, or there is no descriptor")
      return
    }
    #expect(first === second)
    gate.open()
    if case .closed = gate.reached() { Issue.record("the gate is closed") }
  }

  #if !THREAD_SANITIZER
    @Test("A gate holds a reply while the process has no free descriptor") func noDescriptor() async {
      // Runs in a separate process, because other tests need descriptors.
      await #expect(processExitsWith: .success) {
        let gate = Gate()
        let server = try HTTPTestServer()
        server.enqueue(Reply.text("late").held(by: gate))
        let client = try RawClient(server)
        while server.openConnectionCount == 0 { sched_yield() }
        var limit = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        var small = limit
        // Standard input, output and error, and at least one socket are open.
        small.rlim_cur = 4
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &small) == 0)
        try client.ask("GET", "/")
        while gate.reachedCount == 0, client.isOpen { sched_yield() }
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        try #require(gate.reachedCount == 1)
        try #require(!client.hasBytes)
        gate.open()
        try #require(client.readResponse().text == "late")
      }
    }
  #endif

  @Test("A closed connection ends the wait") func closedConnection() async throws {
    server.enqueue(Reply.ok.held(by: gate))
    try client.ask("GET", "/")
    await gate.waitUntilReached()
    client.closeNow()
    while server.openConnectionCount > 0 { await Task.yield() }
    gate.open()
  }

  @Test("A cancelled task ends the wait") func cancelledTask() async {
    let waiting = Task { [gate] in await gate.waitUntilReached() }
    waiting.cancel()
    await waiting.value
    #expect(gate.reachedCount == 0)
  }
}
