import Alamofire
import Foundation
import HTTPTestServer
import Synchronization
import Testing

/// Authentication with the engine, and a server that accepts one token only.
@Suite("Authentication with a server", .timeLimit(.minutes(5)))
struct AuthenticationOnServerTests {
  typealias Authentication = AuthenticationInterceptor<TokenAuthenticator>

  private static func server(accepting token: String) throws -> HTTPTestServer {
    try HTTPTestServer(
      routes: Routes.none.adding("/{n}") { request, _ in
        request.header("Authorization") == "Bearer \(token)" ? .text("ok") : .status(401)
      })
  }

  /// Wraps an interceptor and records the order of its calls and completions. It calls the interceptor on one queue, so
  /// that the calls have an order.
  private final class Order: RequestInterceptor {
    let calls = Recorder<String>()
    let answered = Recorder<String>()
    private let inner: any RequestInterceptor
    private let queue = DispatchQueue(label: "order")

    init(_ inner: any RequestInterceptor) { self.inner = inner }

    func adapt(
      _ urlRequest: URLRequest, using state: RequestAdapterState,
      completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
      inner.adapt(urlRequest, using: state, completion: completion)
    }

    func retry(
      _ request: Request, for session: Session, dueTo error: any Error,
      completion: @escaping @Sendable (RetryResult) -> Void
    ) {
      let name = request.request?.url?.lastPathComponent ?? ""
      queue.async {
        self.inner.retry(request, for: session, dueTo: error) { result in
          self.answered.add(name)
          completion(result)
        }
        // After the call, so that a request which has been counted waits for the refresh.
        self.calls.add(name)
      }
    }
  }

  /// Sends a number of concurrent requests and waits for their responses.
  private func responses(
    of session: Session, _ server: HTTPTestServer, count: Int
  ) -> (requests: [DataRequest], responses: Recorder<AFDataResponse<String>>) {
    let responses = Recorder<AFDataResponse<String>>()
    let requests = (0..<count).map { number in
      session.request(server.url("/\(number)")).validate()
        .responseString(queue: .global()) { responses.add($0) }
    }
    return (requests, responses)
  }

  @Test("Five hundred rejections cause one refresh, and all requests succeed in order") func oneRefresh()
    async throws
  {
    let server = try Self.server(accepting: "a+")
    let completions = Recorder<TokenAuthenticator.Completion>()
    let authenticator = TokenAuthenticator { _, completion in completions.add(completion) }
    let order = Order(Authentication(authenticator: authenticator, credential: Token(text: "a")))
    let session = Session.real(interceptor: order)
    let (requests, responses) = responses(of: session, server, count: 500)
    // The refresh ends when all requests wait for it.
    await order.calls.wait(for: 500)
    let completion = try await completions.value(0)
    #expect(order.answered.values.isEmpty)
    completion(.success(Token(text: "a+")))
    let results = await responses.wait(for: 500)
    #expect(results.allSatisfy { $0.value == "ok" })
    #expect(requests.allSatisfy { $0.retryCount == 1 })
    #expect(authenticator.refreshed.count == 1)
    #expect(authenticator.applied.count == 1000)
    #expect(order.answered.values == order.calls.values)
    server.stop()
  }

  @Test("A failed refresh fails all requests with its error") func failedRefresh() async throws {
    let server = try Self.server(accepting: "a+")
    let completions = Recorder<TokenAuthenticator.Completion>()
    let authenticator = TokenAuthenticator { _, completion in completions.add(completion) }
    let order = Order(Authentication(authenticator: authenticator, credential: Token(text: "a")))
    let (requests, responses) = responses(of: Session.real(interceptor: order), server, count: 50)
    await order.calls.wait(for: 50)
    try await completions.value(0)(.failure(TestError(text: "log in again")))
    for response in await responses.wait(for: 50) {
      guard case .requestRetryFailed(let error, _)? = response.error else {
        Issue.record("\(response)")
        continue
      }
      #expect(error as? TestError == TestError(text: "log in again"))
    }
    #expect(authenticator.refreshed.count == 1)
    #expect(requests.allSatisfy { $0.retryCount == 0 })
    server.stop()
  }

  @Test("Six concurrent rejections cause one refresh") func concurrentRejections() async throws {
    let server = try Self.server(accepting: "a+")
    let authenticator = TokenAuthenticator()
    let interceptor = Authentication(authenticator: authenticator, credential: Token(text: "a"))
    let gate = Latch()
    // All six are rejected before one of them starts a refresh.
    let order = Order(interceptor)
    let waiting = Retrier { request, session, error, completion in
      Task {
        await gate.wait()
        order.retry(request, for: session, dueTo: error, completion: completion)
      }
    }
    let session = Session.real(
      interceptor: Interceptor(adapters: [interceptor], retriers: [waiting]))
    let (requests, responses) = responses(of: session, server, count: 6)
    for _ in 0..<6 { _ = try await server.takeRequest() }
    gate.open()
    #expect(await responses.wait(for: 6).allSatisfy { $0.value == "ok" })
    #expect(authenticator.refreshed.count == 1)
    #expect(authenticator.applied.count == 12)
    #expect(requests.map(\.retryCount) == [1, 1, 1, 1, 1, 1])
    server.stop()
  }

  @Test("The sixth refresh in a row is refused") func excessiveRefresh() async throws {
    let server = try Self.server(accepting: "none of ours")
    let authenticator = TokenAuthenticator()
    let session = Session.real(
      interceptor: Authentication(
        authenticator: authenticator, credential: Token(text: "a"),
        // A long interval, so that on a slow machine all six refreshes are in one window.
        refreshWindow: .init(interval: 3600, maximumAttempts: 5)))
    let request = session.request(server.url("/x")).validate()
    let response = await request.end()
    guard case .requestRetryFailed(let error, let original)? = response.error else {
      Issue.record("\(response)")
      return
    }
    #expect(error as? AuthenticationError == .excessiveRefresh)
    #expect(original.asAFError?.responseCode == 401)
    #expect(authenticator.refreshed.values == ["a", "a+", "a++", "a+++", "a++++"])
    #expect(request.retryCount == 5)
    server.stop()
  }
}
