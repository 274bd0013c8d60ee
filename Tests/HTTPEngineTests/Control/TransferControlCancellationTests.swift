import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct TransferControlCancellationTests {
  @Test("A control cancels a transfer that waits for its response") func waitingTransfer() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let gate = Gate()
    server.enqueue(Reply.ok.held(by: gate))
    let watcher = Watcher(cancelsByControl: true)
    let task = CancellationTests.start(client, try client.request(server.url("/")), watcher)
    await gate.waitForArrival()
    watcher.cancel()
    #expect(await task.value == .cancelled)
    #expect(watcher.endedCount == 1)
    gate.open()
    server.stop()
  }

  @Test("An observer that cancels by control is not ended by its task") func taskOfObserver() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let gate = Gate()
    server.enqueue(Reply.ok.held(by: gate))
    let watcher = Watcher(cancelsByControl: true)
    let task = CancellationTests.start(client, try client.request(server.url("/")), watcher)
    await gate.waitForArrival()
    task.cancel()
    gate.open()
    #expect(await task.value == nil)
    server.stop()
  }

  @Test("A refused transfer sends no request") func refusedTransfer() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let watcher = Watcher(isRefusing: true, cancelsByControl: true)
    let refused = await CancellationTests.kind(client, try client.request(server.url("/")), watcher)
    #expect(refused == .cancelled)
    #expect(watcher.endedCount == 1)
    #expect(await CancellationTests.kind(client, try client.request(server.url("/get")), Watcher()) == nil)
    #expect(server.requestCount == 1)
    server.stop()
  }
}
