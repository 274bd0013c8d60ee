import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Authentication by interceptor", .timeLimit(.minutes(5)))
struct AuthenticationInterceptorTests {
  typealias Interceptor = AuthenticationInterceptor<TokenAuthenticator>

  /// Returns an authenticator whose refreshes wait, and their completions.
  private static func held() -> (TokenAuthenticator, Recorder<TokenAuthenticator.Completion>) {
    let completions = Recorder<TokenAuthenticator.Completion>()
    return (TokenAuthenticator { _, completion in completions.add(completion) }, completions)
  }

  private static let expired = Token(text: "a", requiresRefresh: true)

  @Test("A credential is applied") func application() async {
    let fake = FakeTransport.accepting("a")
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(authenticator: authenticator, credential: Token(text: "a"))
    let response = await Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/")
      .validate().end()
    #expect(response.error == nil)
    #expect(authenticator.applied.values == ["a"])
    #expect(authenticator.refreshed.values.isEmpty)
    #expect(interceptor.credential == Token(text: "a"))
    #expect(interceptor.refreshWindow?.interval == 30)
    #expect(interceptor.refreshWindow?.maximumAttempts == 5)
  }

  @Test("Without a credential the request fails") func noCredential() async {
    let fake = FakeTransport()
    let interceptor = Interceptor(authenticator: TokenAuthenticator())
    let session = Session.retained(fake: fake, interceptor: interceptor)
    let response = await session.request("http://a.test/").end()
    #expect(response.error?.isRequestAdaptationError == true)
    #expect(response.error?.underlyingError as? AuthenticationError == .missingCredential)
    #expect(response.error?.localizedDescription.contains("credential") == true)
    #expect(fake.requests.isEmpty)
    interceptor.credential = Token(text: "a")
    #expect(await session.request("http://a.test/").end().error == nil)
  }

  @Test("An expired credential is refreshed on its queue before a request is sent") func expiredCredential()
    async
  {
    let fake = FakeTransport.accepting("a+")
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(authenticator: authenticator, credential: Self.expired)
    let response = await Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/")
      .validate().end()
    #expect(response.error == nil)
    #expect(fake.requests.count == 1)
    #expect(authenticator.refreshed.values == ["a"])
    #expect(authenticator.queues.values == ["org.alamofire.authentication.inspector"])
    #expect(interceptor.credential?.text == "a+")
  }

  @Test("Requests wait for a refresh that began earlier") func runningRefresh() async throws {
    let fake = FakeTransport.accepting("a+")
    let (authenticator, completions) = Self.held()
    let session = Session.retained(
      fake: fake, interceptor: Interceptor(authenticator: authenticator, credential: Self.expired))
    let responses = Recorder<AFError?>()
    for number in 0..<5 {
      session.request("http://a.test/\(number)").validate().response(queue: .global()) {
        responses.add($0.error)
      }
    }
    let completion = try await completions.value(0)
    #expect(fake.requests.isEmpty)
    completion(.success(Token(text: "a+")))
    completion(.failure(TestError()))
    #expect(await responses.wait(for: 5).allSatisfy { $0 == nil })
    #expect(authenticator.refreshed.count == 1)
  }

  @Test("A rejected credential is refreshed and the request is retried") func rejectedCredential() async {
    let fake = FakeTransport.accepting("a+")
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(authenticator: authenticator, credential: Token(text: "a"))
    let request = Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/").validate()
    #expect(await request.end().error == nil)
    #expect(authenticator.applied.values == ["a", "a+"])
    #expect(request.retryCount == 1)
  }

  @Test("New requests do not wait for a refresh after a rejection") func newRequests() async throws {
    let fake = FakeTransport { request, _ in
      request.url.hasSuffix("/open") ? .text("ok") : .status(401)
    }
    let (authenticator, completions) = Self.held()
    let session = Session.retained(
      fake: fake, interceptor: Interceptor(authenticator: authenticator, credential: Token(text: "a")))
    let refused = session.request("http://a.test/").validate()
    async let response = refused.end()
    let completion = try await completions.value(0)
    #expect(await session.request("http://a.test/open").validate().end().error == nil)
    completion(.failure(TestError()))
    let error = await response.error
    guard case .requestRetryFailed(let retryError, let original)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(retryError as? TestError == TestError())
    #expect(original.asAFError?.responseCode == 401)
  }

  @Test("Other failures do not refresh") func otherFailures() async {
    for reply in [FakeReply.status(500), .failure(.connectionLost)] {
      let authenticator = TokenAuthenticator()
      let interceptor = Interceptor(authenticator: authenticator, credential: Token(text: "a"))
      let request = Session.retained(fake: FakeTransport(reply), interceptor: interceptor)
        .request("http://a.test/").validate()
      #expect(await request.end().error != nil)
      #expect(authenticator.refreshed.values.isEmpty)
      #expect(request.retryCount == 0)
    }
  }

  @Test(
    "A server to which a redirect leads cannot refuse a credential that it did not get",
    arguments: [("GET", 302, "GET"), ("POST", 303, "GET"), ("POST", 307, "POST")])
  func refusalElsewhere(method: String, status: Int, next: String) async {
    let fake = FakeTransport { request, _ in
      request.url.hasPrefix("https://a.test/") ? .redirect(status, to: "https://b.test/") : .status(401)
    }
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(authenticator: authenticator, credential: Token(text: "a"))
    let request = Session.retained(fake: fake, interceptor: interceptor)
      .request("https://a.test/", method: HTTPMethod(rawValue: method)).validate()
    #expect(await request.end().error?.responseCode == 401)
    #expect(fake.requests.map(\.method) == [method, next])
    #expect(authenticator.refreshed.values.isEmpty)
  }

  @Test("A request that a server may have performed before its redirect is not sent with another credential")
  func performed() async {
    let fake = FakeTransport { request, _ in
      request.method == "POST" ? .redirect(303, to: "/result") : .status(401)
    }
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(authenticator: authenticator, credential: Token(text: "a"))
    let request = Session.retained(fake: fake, interceptor: interceptor)
      .request("https://a.test/", method: .post).validate()
    #expect(await request.end().error?.responseCode == 401)
    #expect(fake.requests.map(\.method) == ["POST", "GET"])
    #expect(authenticator.refreshed.values.isEmpty)
  }

  @Test("A credential that is refused after a redirect to the same server is refreshed")
  func refusalAfterRedirect() async {
    let fake = FakeTransport { request, _ in
      guard request.url.hasSuffix("/new") else { return .redirect(308, to: "/new") }
      return request.value("Authorization") == "Bearer a+" ? .text("ok") : .status(401)
    }
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(authenticator: authenticator, credential: Token(text: "a"))
    let request = Session.retained(fake: fake, interceptor: interceptor)
      .request("https://a.test/", method: .post).validate()
    #expect(await request.end().error == nil)
    #expect(fake.requests.map(\.method) == Array(repeating: "POST", count: 4))
    #expect(authenticator.refreshed.values == ["a"])
  }

  @Test("A request with an older credential is retried at once") func olderCredential() async {
    let gate = Latch()
    let reached = Latch()
    let fake = FakeTransport(.status(401).held(by: gate, reached: reached))
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(authenticator: authenticator, credential: Token(text: "a"))
    let request = Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/").validate()
    async let response = request.end()
    await reached.wait()
    interceptor.credential = Token(text: "b")
    gate.open()
    #expect(await response.error == nil)
    #expect(authenticator.refreshed.values.isEmpty)
    #expect(authenticator.applied.values == ["a", "b"])
  }

  @Test("A rejected request fails if the credential was removed") func removedCredential() async {
    let gate = Latch()
    let reached = Latch()
    let fake = FakeTransport(.status(401).held(by: gate, reached: reached))
    let interceptor = Interceptor(authenticator: TokenAuthenticator(), credential: Token(text: "a"))
    let request = Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/").validate()
    async let response = request.end()
    await reached.wait()
    interceptor.credential = nil
    gate.open()
    let error = await response.error
    #expect(error?.isRequestRetryError == true)
    #expect(error?.underlyingError as? AuthenticationError == .missingCredential)
  }

  @Test("A completion that is released without a call fails all waiting requests", arguments: [true, false])
  func forgotten(isExpired: Bool) async {
    let authenticator = TokenAuthenticator { _, _ in }
    let interceptor = Interceptor(
      authenticator: authenticator, credential: Token(text: "a", requiresRefresh: isExpired))
    let session = Session.retained(fake: .accepting("b"), interceptor: interceptor)
    let response = await session.request("http://a.test/").validate().end()
    #expect(isExpired == (response.error?.isRequestAdaptationError == true))
    #expect(!isExpired == (response.error?.isRequestRetryError == true))
    #expect(response.error?.underlyingError?.localizedDescription.contains("completion of refresh") == true)
  }

  /// Returns an authenticator whose refreshes make tokens that require another refresh, until they have this length.
  private static func stale(until length: Int) -> TokenAuthenticator {
    TokenAuthenticator { token, completion in
      let text = token.text + "+"
      completion(.success(Token(text: text, requiresRefresh: text.count < length)))
    }
  }

  @Test("A refreshed credential that needs a refresh is refreshed until the window refuses it")
  func staleCredential() async {
    let fake = FakeTransport()
    let authenticator = Self.stale(until: .max)
    let interceptor = Interceptor(
      authenticator: authenticator, credential: Self.expired,
      refreshWindow: .init(interval: 3600, maximumAttempts: 3))
    let session = Session.retained(fake: fake, interceptor: interceptor)
    let response = await session.request("http://a.test/").end()
    #expect(response.error?.isRequestAdaptationError == true)
    #expect(response.error?.underlyingError as? AuthenticationError == .excessiveRefresh)
    #expect(authenticator.refreshed.values == ["a", "a+", "a++"])
    #expect(authenticator.applied.values.isEmpty)
    #expect(fake.requests.isEmpty)
  }

  @Test("A request is sent with the first credential that requires no refresh")
  func staleCredentialOnce() async {
    let authenticator = Self.stale(until: 3)
    let interceptor = Interceptor(authenticator: authenticator, credential: Self.expired)
    let session = Session.retained(fake: .accepting("a++"), interceptor: interceptor)
    #expect(await session.request("http://a.test/").validate().end().error == nil)
    #expect(authenticator.refreshed.values == ["a", "a+"])
    #expect(authenticator.applied.values == ["a++"])
  }

  @Test("Without a window a refreshed credential is applied unchanged")
  func staleCredentialWithoutWindow() async {
    let authenticator = Self.stale(until: .max)
    let interceptor = Interceptor(
      authenticator: authenticator, credential: Self.expired, refreshWindow: nil)
    let session = Session.retained(fake: .accepting("a+"), interceptor: interceptor)
    #expect(await session.request("http://a.test/").validate().end().error == nil)
    #expect(authenticator.refreshed.values == ["a"])
  }

  @Test("A window of no attempts refuses every refresh") func noAttempts() async {
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(
      authenticator: authenticator, credential: Self.expired,
      refreshWindow: .init(interval: 30, maximumAttempts: 0))
    let response = await Session.retained(fake: FakeTransport(), interceptor: interceptor)
      .request("http://a.test/").end()
    #expect(response.error?.underlyingError as? AuthenticationError == .excessiveRefresh)
    #expect(authenticator.refreshed.values.isEmpty)
  }

  @Test("A window of no attempts refuses the refresh after a rejection, too") func noAttemptsAfterRejection()
    async
  {
    let authenticator = TokenAuthenticator()
    let interceptor = Interceptor(
      authenticator: authenticator, credential: Token(text: "a"),
      refreshWindow: .init(interval: 30, maximumAttempts: 0))
    let response = await Session.retained(fake: .accepting("a+"), interceptor: interceptor)
      .request("http://a.test/").validate().end()
    guard case .requestRetryFailed(let error, _)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(error as? AuthenticationError == .excessiveRefresh)
    #expect(authenticator.refreshed.values.isEmpty)
  }

  @Test("A request that is refused after a failed refresh fails with the error of the refresh")
  func lateRejection() async {
    let (gate, reached) = (Latch(), Latch())
    let held = FakeReply.status(401).held(by: gate, reached: reached)
    let fake = FakeTransport(held) { _, _ in .status(401) }
    let authenticator = TokenAuthenticator { _, completion in completion(.failure(TestError())) }
    let session = Session.retained(
      fake: fake, interceptor: Interceptor(authenticator: authenticator, credential: Token(text: "a")))
    async let late = session.request("http://a.test/late").validate().end()
    await reached.wait()
    #expect(await session.request("http://a.test/").validate().end().error?.isRequestRetryError == true)
    gate.open()
    guard case .requestRetryFailed(let error, _)? = await late.error else {
      Issue.record("the request failed with another error")
      return
    }
    #expect(error as? TestError == TestError())
    #expect(authenticator.refreshed.values == ["a"])
  }

  @Test("A cancelled request does not wait for the refresh") func cancelled() async throws {
    let (authenticator, completions) = Self.held()
    let session = Session.retained(
      fake: FakeTransport(),
      interceptor: Interceptor(authenticator: authenticator, credential: Self.expired))
    let request = session.request("http://a.test/")
    async let response = request.end()
    let completion = try await completions.value(0)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    completion(.success(Token(text: "b")))
  }

  @Test("After a wait only the adaptation of the interceptor runs again") func repeatedStep() async {
    let fake = FakeTransport.accepting("a+")
    let before = SpyInterceptor(adapt: AdaptationTests.adding("x"))
    let interceptor = Interceptor(authenticator: TokenAuthenticator(), credential: Self.expired)
    let request = Session.retained(fake: fake, interceptor: before)
      .request("http://a.test/", interceptor: interceptor)
    #expect(await request.end().error == nil)
    #expect(before.adaptCount == 1)
    #expect(fake.requests.first?.value("X-Trail") == "x")
    #expect(fake.requests.first?.value("Authorization") == "Bearer a+")
  }

  /// A cause for which the error of an earlier refresh is replaced.
  enum Replacement: CaseIterable { case credential, success, failure }

  /// An error that reads the credential when it is released.
  private final class ReadingError: Error {
    let interceptors: Recorder<Interceptor>
    let read: Recorder<String?>

    init(_ interceptors: Recorder<Interceptor>, _ read: Recorder<String?>) {
      self.interceptors = interceptors
      self.read = read
    }

    deinit {
      for interceptor in interceptors.values { read.add(interceptor.credential?.text) }
    }
  }

  @Test("The error of a refresh may use the interceptor when it is released", arguments: Replacement.allCases)
  func replacedError(by replacement: Replacement) async {
    let (interceptors, refreshes) = (Recorder<Interceptor>(), Recorder<Void>())
    let (read, isApplied) = (Recorder<String?>(), Recorder<Bool>())
    let authenticator = TokenAuthenticator { token, completion in
      refreshes.add(())
      if refreshes.count == 1 { return completion(.failure(ReadingError(interceptors, read))) }
      // The queue has performed what followed the first refresh, so that only the interceptor has its error.
      if replacement == .credential { interceptors.values.first?.credential = Token(text: "b") }
      completion(replacement == .failure ? .failure(TestError()) : .success(token.next))
    }
    let interceptor = Interceptor(authenticator: authenticator, credential: Self.expired)
    interceptors.add(interceptor)
    let session = Session.retained(fake: FakeTransport())
    for count in 1...2 {
      interceptor.adapt(URLRequest(url: URL(filePath: "/")), for: session) { result in
        if case .success = result { isApplied.add(true) } else { isApplied.add(false) }
      }
      await isApplied.wait(for: count)
    }
    #expect(isApplied.values == [false, replacement != .failure])
    let expected = [Replacement.credential: "b", .success: "a+", .failure: "a"]
    #expect(await read.wait(for: 1) == [expected[replacement]])
  }

  @Test("No request is retained after a refresh") func release() async {
    weak var released: TokenAuthenticator?
    let completions = Recorder<TokenAuthenticator.Completion>()
    let gone = Latch()
    do {
      let releaseSignal = ReleaseSignal(gone)
      let authenticator = TokenAuthenticator { token, completion in
        withExtendedLifetime(releaseSignal) {}
        completions.add(completion)
        completion(.success(token.next))
      }
      released = authenticator
      let session = Session(
        fake: FakeTransport(),
        interceptor: Interceptor(authenticator: authenticator, credential: Self.expired))
      #expect(await session.request("http://a.test/").end().error == nil)
    }
    await gone.wait()
    #expect(released == nil, "not even by a user who keeps the completion")
    #expect(completions.count == 1)
  }
}
