import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// A loop without work uses no processor time. Each test runs in a separate process.
@Suite(.serialized, .timeLimit(.minutes(5))) struct IdleTests {
  /// Expects that the process takes little processor time while nothing should happen, measured on the loop of another
  /// client.
  static func expectIdle(_ location: SourceLocation = #_sourceLocation) async throws {
    let other = Client()
    let before = ProcessFacts.processorTime
    try await other.passTime(.milliseconds(400))
    let used = ProcessFacts.processorTime - before
    #expect(used < .milliseconds(100), "the process was busy", sourceLocation: location)
  }

  @Test("An early response to a large upload leaves the core idle") func earlyResponse() async {
    await #expect(processExitsWith: .success) {
      for security in [HTTPTestServer.Security.none, .tls(.localhost)] {
        let server = try HTTPTestServer(security, routes: .none)
        server.enqueue(.earlyReply(200, then: .afterReply), .earlyReply(413), .earlyReply(200))
        let client = Client(lingering: .seconds(60))
        let body = RequestBody.bytes(Data(Content.bytes(5 << 20)))
        for status in [200, 413, 200] {
          let response = try await client.send(client.request(server.url("/"), "POST", body: body))
          #expect(response.status == status)
        }
        try await Self.expectIdle()
        client.transport.shutDown()
      }
    }
  }

  @Test("A waiting transfer uses no processor time") func waitingTransfer() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer(.tls(.localhost), routes: .none)
      let gate = Gate()
      server.enqueue(.ok.held(by: gate))
      server.enqueue(.data(Content.bytes(5_000_000)))
      server.enqueue(.ok.requestBody(.held(gate)))
      let client = Client(lingering: .seconds(60))
      let url = server.url("/")
      let held = Task { try await client.get(url).status }
      await gate.waitForArrival()
      let watcher = Watcher(holdsHead: true)
      let paused = Task { try await client.get(url, watcher: watcher).status }
      await watcher.headCame.wait()
      let body = RequestBody.bytes(Data(count: 20_000_000))
      let sending = Watcher()
      let upload = Task {
        try await client.send(client.request(url, "POST", body: body), watcher: sending).status
      }
      await gate.waitForArrival(count: 2)
      // The upload fills the buffers of the kernel first.
      var sent: Int64 = -1
      while let now = sending.last?.sent, now != sent {
        sent = now
        try await client.roundTrip()
      }
      try await Self.expectIdle()
      gate.open()
      watcher.resume()
      #expect(try await [held.value, paused.value, upload.value] == [200, 200, 200])
      client.transport.shutDown()
    }
  }

  @Test("A transfer that is cancelled at its start leaves the core idle") func cancelledTransfer() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer()
      let client = Client(lingering: .seconds(60))
      let request = try client.request(server.url("/get"))
      for _ in 0..<50 {
        let kind = await Task(executorPreference: client.transport.loop) {
          // The job that continues with a response runs after the sockets in the turn of the loop.
          _ = await CancellationTests.kind(client, request, Watcher())
          return await CancellationTests.kind(client, request, CancellingObserver())
        }.value
        #expect(kind == .cancelled)
      }
      try await Self.expectIdle()
      client.transport.shutDown()
    }
  }

  /// Without lingering, the loop gives its thread back in the turn in which the response has ended.
  @Test(
    "An idle connection is closed at its time, although the loop has no thread", arguments: [1, 2],
    [Duration.milliseconds(1), .zero])
  func expiredConnection(count: Int, lingering: Duration) async throws {
    let ended = Moment()
    let server = try StreamTestServer { connection in
      // The end of the connection is an error of the next read.
      defer { ended.come() }
      while true {
        _ = try connection.readRequest()
        try connection.write("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n")
      }
    }
    let client = Client(lingering: lingering)
    for _ in 0..<count { _ = try await client.get("http://127.0.0.1:\(server.port)/") }
    await ended.wait()
    client.transport.shutDown()
  }

  @Test("A stream that ends while it has more to do leaves the core idle") func endedStream() async {
    await #expect(processExitsWith: .success) {
      let server = try StreamTestServer { $0.waitForEnd() }
      let client = Client(lingering: .seconds(60))
      for _ in 0..<5 {
        let request = try client.request("http://127.0.0.1:\(server.port)/")
        let watcher = StreamEnd()
        let stream = client.transport.stream(request, isSecure: false, watcher: watcher)
        stream.resume()
        // The cancellation is a command for the next turn, and until then the stream is busy.
        stream.read(least: 1, most: 10, timeout: .milliseconds(20)) { _ in stream.cancel() }
        await watcher.ended.wait()
      }
      try await Self.expectIdle()
      client.transport.shutDown()
    }
  }
}

/// Says when a stream has ended.
private final class StreamEnd: ByteStreamWatcher {
  let ended = Moment()

  func evaluate(_ chain: PresentedChain) async -> TransportFailure? { nil }
  func identity() async -> Result<ClientIdentity?, TransportFailure> { .success(nil) }
  func streamOpened() {}
  func streamEnded(_ failure: TransportFailure?) { ended.come() }
}

/// Cancels the task that sends, when its transfer begins: the command waits while the transfer starts.
private final class CancellingObserver: TransferObserver {
  func transferBegan(_ control: any TransferControl) -> TransferStart {
    withUnsafeCurrentTask { $0?.cancel() }
    return .go
  }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { .proceed }
  func bytesMoved(_ count: ByteCount) {}
  func transferEnded() {}
}
