import Alamofire
import Foundation
import HTTPTestServer
import Synchronization
import Testing

/// Over the real engine, with a server that refuses all tokens but one.
@Suite("Authentication with a server", .timeLimit(.minutes(5)))
struct AuthenticationOnServerTests {
  typealias Authentication = AuthenticationInterceptor<TokenAuthenticator>

  private static func server(accepting token: String) throws -> HTTPTestServer {
    try HTTPTestServer(
      routes: Routes.none.adding("/{n}") { request, _ in
        request.header("Authorization") == "Bearer \(token)" ? .text("ok") : .status(401)
      })
  }

  /// Stands between the pipeline and an interceptor, and notes the order of questions and answers. Asks on
  /// one queue, so that there is an order of questions.
  private final class Order: RequestInterceptor {
    let asked = Recorder<String>()
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
        self.asked.add(name)
        self.inner.retry(request, for: session, dueTo: error) { result in
          self.answered.add(name)
          completion(result)
        }
      }
    }
  }

  /// Sends so many requests at once and waits for their responses.
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

  @Test func fiveHundredRefusalsLeadToOneRefreshAndAllSucceedInTheirOrder() async throws {
    let server = try Self.server(accepting: "a+")
    let completions = Recorder<TokenAuthenticator.Completion>()
    let authenticator = TokenAuthenticator { _, completion in completions.add(completion) }
    let order = Order(Authentication(authenticator: authenticator, credential: Token(text: "a")))
    let session = Session.real(interceptor: order)
    let (requests, responses) = responses(of: session, server, count: 500)
    // Held until all wait for it.
    await order.asked.wait(for: 500)
    let completion = await completions.wait(for: 1)[0]
    #expect(order.answered.values.isEmpty)
    completion(.success(Token(text: "a+")))
    let results = await responses.wait(for: 500)
    #expect(results.allSatisfy { $0.value == "ok" })
    #expect(requests.allSatisfy { $0.retryCount == 1 })
    #expect(authenticator.refreshed.count == 1)
    #expect(authenticator.applied.count == 1000)
    #expect(order.answered.values == order.asked.values)
    server.stop()
  }

  @Test func aRefreshThatFailsFailsAllWithItsError() async throws {
    let server = try Self.server(accepting: "a+")
    let completions = Recorder<TokenAuthenticator.Completion>()
    let authenticator = TokenAuthenticator { _, completion in completions.add(completion) }
    let order = Order(Authentication(authenticator: authenticator, credential: Token(text: "a")))
    let (requests, responses) = responses(of: Session.real(interceptor: order), server, count: 50)
    await order.asked.wait(for: 50)
    await completions.wait(for: 1)[0](.failure(TestError(text: "log in again")))
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

  @Test func sixRefusalsAtOnce() async throws {
    let server = try Self.server(accepting: "a+")
    let authenticator = TokenAuthenticator()
    let interceptor = Authentication(authenticator: authenticator, credential: Token(text: "a"))
    let gate = Latch()
    // All six are refused before one of them asks for a refresh.
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

  @Test func theSixthRefreshInARowIsRefused() async throws {
    let server = try Self.server(accepting: "none of ours")
    let authenticator = TokenAuthenticator()
    let session = Session.real(
      interceptor: Authentication(
        authenticator: authenticator, credential: Token(text: "a"),
        // However slow the machine is, the six fall into one window.
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
