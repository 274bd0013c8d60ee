import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct TransferControlCancellationTests {
  @Test("A control cancels a transfer that waits for its response") func waitingTransfer() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let gate = Gate()
    server.enqueue(Reply.ok.held(by: gate))
    let watcher = Watcher()
    let task = CancellationTests.start(client, try client.request(server.url("/")), watcher)
    await gate.waitForArrival()
    watcher.cancel()
    #expect(await task.value == .cancelled)
    #expect(watcher.endedCount == 1)
    gate.open()
    server.stop()
  }

  @Test("The task that begins a transfer does not end it") func taskOfCaller() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let gate = Gate()
    server.enqueue(Reply.ok.held(by: gate))
    let request = try client.request(server.url("/"))
    let ending = Ending()
    let task = Task {
      client.transport.send(request, observer: Watcher(), completion: ending)
      await gate.waitForArrival()
    }
    await gate.waitForArrival()
    task.cancel()
    gate.open()
    await ending.hasCome.wait()
    #expect(ending.count == 1 && ending.status == 200)
    server.stop()
  }

  @Test("A refused transfer does not send a request") func refusedTransfer() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let watcher = Watcher(isRefusing: true)
    let refused = await CancellationTests.kind(client, try client.request(server.url("/")), watcher)
    #expect(refused == .cancelled)
    #expect(watcher.endedCount == 1)
    #expect(await CancellationTests.kind(client, try client.request(server.url("/get")), Watcher()) == nil)
    #expect(server.requestCount == 1)
    server.stop()
  }
}

/// The completion of one transfer.
private final class Ending: TransferCompletion {
  private let state = Mutex((count: 0, status: Int?.none))
  let hasCome = Moment()

  var count: Int { state.withLock { $0.count } }
  var status: Int? { state.withLock { $0.status } }

  func transferEnded(_ outcome: consuming Result<WireResponse, TransportFailure>) {
    let status = try? outcome.get().head.status
    state.withLock { $0 = ($0.count + 1, status) }
    hasCome.come()
  }
}
