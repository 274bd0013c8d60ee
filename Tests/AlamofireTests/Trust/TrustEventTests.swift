import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Events of trust", .timeLimit(.minutes(1))) struct TrustEventTests {
  private struct Evaluator: ServerTrustEvaluating {
    var refuses = false
    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      if refuses { throw TestError(text: "refused") }
    }
  }

  private let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "trust"))
  private let events = Recorder<String>()

  /// Lets the monitor record its events.
  private func record() {
    let events = events
    monitor.taskDidReceiveChallenge = { _, _, challenge in
      let isAboutTrust =
        challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust
      events.add("challenge \(challenge.protectionSpace.host) \(isAboutTrust)")
    }
    monitor.requestDidFailTaskEarlyWithError = { request, task, error in
      events.add("early \(request.task === task) \(error.isServerTrustEvaluationError)")
    }
    monitor.requestDidCompleteTaskWithError = { _, _, error in
      events.add("complete \(error?.isServerTrustEvaluationError == true)")
    }
    monitor.requestDidFinish = { _ in events.add("finish") }
  }

  private func reported(_ evaluator: Evaluator) async throws -> [String] {
    let server = try HTTPTestServer(.tls(.localhost))
    record()
    let session = Session(
      serverTrustManager: ServerTrustManager(evaluators: ["localhost": evaluator]), eventMonitors: [monitor])
    let url = server.url("/get").replacing("127.0.0.1", with: "localhost")
    _ = await session.request(url).serializingData().response
    monitor.queue.sync {}
    return events.values
  }

  @Test("Monitors receive the challenge of a server that is trusted") func trusted() async throws {
    #expect(try await reported(Evaluator()) == ["challenge localhost true", "complete false", "finish"])
  }

  @Test("Monitors receive the challenge of a server without a manager of trust, too") func unmanaged()
    async throws
  {
    let server = try HTTPTestServer(.tls(.localhost))
    let challenges = Recorder<Int>()
    monitor.taskDidReceiveChallenge = { _, _, challenge in challenges.add(challenge.protectionSpace.port) }
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let session = Session(eventMonitors: [monitor], transportOptions: options)
    let response = await session.request(server.url("/get")).serializingData().response
    #expect(response.response?.statusCode == 200)
    monitor.queue.sync {}
    #expect(challenges.values == [server.port])
  }

  @Test("Each attempt that an evaluator refuses fails its own task") func refusedAgain() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let (created, failed) = (Recorder<Int>(), Recorder<Int>())
    monitor.requestDidCreateTask = { _, task in created.add(task.taskIdentifier) }
    monitor.requestDidFailTaskEarlyWithError = { _, task, _ in failed.add(task.taskIdentifier) }
    let session = Session(
      interceptor: SpyInterceptor(retries: 1),
      serverTrustManager: ServerTrustManager(evaluators: ["localhost": Evaluator(refuses: true)]),
      eventMonitors: [monitor])
    let url = server.url("/get").replacing("127.0.0.1", with: "localhost")
    _ = await session.request(url).serializingData().response
    monitor.queue.sync {}
    #expect(Set(created.values).count == 2)
    #expect(failed.values == created.values)
  }

  @Test("Monitors receive the failure of an evaluator before the end of the task") func refused() async throws
  {
    #expect(
      try await reported(Evaluator(refuses: true)) == [
        "challenge localhost true", "early true true", "complete true", "finish",
      ])
  }

  @Test("A monitor of one request receives the failure of an evaluator that decides within the handshake")
  func refusedInHandshake() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    record()
    // Without keys it accepts no server, and needs nothing but the certificates.
    let evaluator = PublicKeysTrustEvaluator(keys: [])
    let session = Session(
      serverTrustManager: ServerTrustManager(evaluators: ["localhost": evaluator]), eventMonitors: [])
    let url = server.url("/get").replacing("127.0.0.1", with: "localhost")
    let response = await session.request(url).eventMonitor(monitor).serializingData().response
    withExtendedLifetime(session) {}
    #expect(response.error?.isServerTrustEvaluationError == true, "\(String(describing: response.error))")
    monitor.queue.sync {}
    #expect(events.values == ["early true true", "complete true", "finish"])
  }
}
