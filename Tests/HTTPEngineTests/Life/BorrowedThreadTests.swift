import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// The caller runs the loop if the system has no thread left.
@Suite("The loop on the thread of a caller", .timeLimit(.minutes(1)))
struct BorrowedThreadTests {
  private final class Permission: Sendable {
    let isGiven = Atomic<Bool>(false)
    let questions = Atomic<Int>(0)
    /// Whether the thread of the caller still counts as the loop's after the call.
    var isKept: Bool { keepsThread.load(ordering: .relaxed) }
    let keepsThread = Atomic<Bool>(false)

    func ask() -> Bool {
      questions.wrappingAdd(1, ordering: .relaxed)
      return isGiven.load(ordering: .relaxed)
    }
  }

  private let permission = Permission()
  private let returned = Moment()
  private let ended = Moment()

  /// Sends a request from a new thread, on which the loop has to run.
  private func send(_ client: Client, _ request: WireRequest) -> Task<Int?, Never> {
    let (stream, continuation) = AsyncStream<Task<Int?, Never>>.makeStream()
    let transport = client.transport
    let thread = Thread { [permission, returned, ended] in
      let task = Task<Int?, Never>(executorPreference: transport.loop) {
        let response = try? await transport.send(request, observer: Watcher())
        ended.come()
        return response?.status
      }
      // The loop has no thread, or another one. If this one still counted as the loop's, it would touch its state.
      permission.keepsThread.store(transport.loop.isCurrent, ordering: .relaxed)
      continuation.yield(task)
      returned.come()
    }
    thread.start()
    return Task {
      for await task in stream { return await task.value }
      return nil
    }
  }

  @Test("The caller returns as soon as its work is done") func work() async throws {
    let server = try HTTPTestServer()
    // A loop that lingered would hold the caller for longer than the limit of the suite.
    let client = Client(lingering: .seconds(600), mayStartThread: { [permission] in permission.ask() })
    for _ in 0..<3 {
      let request = try client.request(server.url("/get"))
      #expect(await send(client, request).value == 200)
      await returned.wait()
      #expect(!permission.isKept)
    }
    #expect(permission.questions.load(ordering: .relaxed) >= 3)
    #expect(server.connectionCount == 1)
  }

  // Repeated, because the new thread may be there before the caller returns.
  @Test("A new thread relieves the caller as soon as one can be started", arguments: 0..<5)
  func relief(_: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let client = Client(mayStartThread: { [permission] in permission.ask() })
    let status = try send(client, client.request(server.url("/")))
    await gate.waitForArrival()
    permission.isGiven.store(true, ordering: .relaxed)
    await returned.wait()
    #expect(!ended.hasCome, "the caller did not wait for the response")
    #expect(!permission.isKept)
    gate.open()
    #expect(await status.value == 200)
  }
}
