import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Limits of sessions", .timeLimit(.minutes(5))) struct SessionLimitTests {
  private func session(_ change: (inout TransportOptions) -> Void) -> Session {
    var options = TransportOptions()
    change(&options)
    return Session.real(options: options)
  }

  /// Waits until the engine has a number of waiting requests.
  private func waiting(_ session: Session, _ count: Int) async -> TransportSnapshot {
    while true {
      let snapshot = await session.transportSnapshot()
      if snapshot.waitingCount == count { return snapshot }
      await Task.yield()
    }
  }

  @Test("The number of connections to a host can be the largest integer")
  func mostConnections() async throws {
    let server = try HTTPTestServer()
    let configuration = URLSessionConfiguration.uncached
    configuration.httpMaximumConnectionsPerHost = .max
    let session = Session.real(configuration: configuration)
    for _ in 0..<2 {
      let response = await session.request(server.url("/get")).serializingData().response
      #expect(response.response?.statusCode == 200)
    }
  }

  @Test("The priority of a request decides its turn, and can change through its task") func priority()
    async throws
  {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let session = session { $0.requestLimits.perHost = 1 }
    let first = session.request(server.url("/1")).serializingData()
    await gate.waitUntilReached()
    let requests = (0..<4).map { session.request(server.url("/anything/\($0)")) }
    requests[2].priority = 0.8
    let tasks = requests.map { $0.serializingData() }
    _ = await waiting(session, 4)
    requests[3].priority = 0.9
    requests[0].task?.priority = URLSessionTask.lowPriority
    #expect(requests[0].priority == URLSessionTask.lowPriority)
    #expect(requests[2].task?.priority == 0.8)
    gate.open()
    for task in [first] + tasks { #expect(await task.response.error == nil) }
    var paths: [String] = []
    for _ in 0..<5 { paths.append(try await server.takeRequest().target) }
    #expect(paths == ["/1", "/anything/3", "/anything/2", "/anything/1", "/anything/0"])
  }

  @Test("The engine gets each request with its priority") func handedPriority() async {
    let fake = FakeTransport()
    let session = Session.retained(fake: fake, startRequestsImmediately: false)
    for priority in [0.8, 0.5, 0.1] as [Float] {
      let request = session.request("http://a.test/")
      request.priority = priority
      _ = await request.resume().serializingData().response
    }
    #expect(fake.requests.map(\.priority) == [0.8, 0.5, 0.1])
  }

  @Test("Priorities are from 0 to 1") func range() {
    let request = session { _ in }.request(
      "http://localhost/", interceptor: nil, shouldAutomaticallyResume: false)
    #expect(request.priority == URLSessionTask.defaultPriority)
    request.priority = 7
    #expect(request.priority == 1)
    request.priority = -1
    #expect(request.priority == 0)
    request.priority = .nan
    #expect(request.priority == 0.5)
  }

  @Test("A request with its own options respects the limits of its session")
  func ofSession() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let session = session { $0.requestLimits.perSession = 1 }
    let first = session.request(server.url("/1")).serializingData()
    await gate.waitUntilReached()
    let second = session.request(server.url("/get")).transportOptions { $0.requestLimits.perSession = 100 }
    let task = second.serializingData()
    let snapshot = await waiting(session, 1)
    #expect(snapshot.hosts.first?.waiting.map(\.reason) == [.requestsOfSession])
    gate.open()
    #expect(await first.response.error == nil)
    #expect(await task.response.error == nil)
  }

  @Test("A snapshot shows no password, and the reason of each wait") func snapshot() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let session = session { $0.requestLimits.perHost = 1 }
    let first = session.request("http://ann:secret@127.0.0.1:\(server.port)/1").serializingData()
    await gate.waitUntilReached()
    let waitingTask = session.request("http://ann:secret@127.0.0.1:\(server.port)/get").serializingData()
    let snapshot = await waiting(session, 1)
    let text = snapshot.description
    #expect(!text.contains("secret") && !text.contains("ann"))
    #expect(text.contains("http://127.0.0.1:\(server.port): 1 running, 1 waiting, 1 connections (0 idle)"))
    #expect(
      text.contains("waiting GET http://127.0.0.1:\(server.port)/get (priority 0.5, limit of the host)"))
    gate.open()
    #expect(await first.response.error == nil)
    #expect(await waitingTask.response.error == nil)
    #expect(await session.transportSnapshot().runningCount == 0)
  }

  @Test("Downloads keep to the bandwidth of the session") func bandwidth() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.data(Array(repeating: 7, count: 300_000)))
    let session = session { $0.sessionBandwidth.download = 400_000 }
    let start = ContinuousClock.now
    let response = await session.download(server.url("/")).serializingData().response
    #expect(response.value == Data(repeating: 7, count: 300_000))
    #expect(ContinuousClock.now - start >= .milliseconds(500))
    response.removeFile()
  }
}
