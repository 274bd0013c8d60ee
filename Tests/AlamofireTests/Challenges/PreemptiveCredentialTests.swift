import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

@Suite("Preemptive credentials", .timeLimit(.minutes(5)))
struct PreemptiveCredentialTests {
  private static let protected: FakeTransport.Responder = { request, _ in
    request.value("Authorization") == nil ? .challenge() : .text("in")
  }

  private static var preemptive: TransportOptions {
    var options = TransportOptions()
    options.preemptiveBasicAuthentication = true
    return options
  }

  @Test("Accepted credentials are sent to URLs below the first one") func acceptedCredentials() async {
    let fake = FakeTransport(responder: Self.protected)
    let session = Session.retained(fake: fake)
    for path in ["a/b", "a/c", "a/d/e", "z"] {
      _ = await session.request("http://a.test/\(path)").authenticate(username: "u", password: "p").end()
    }
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, true, true, false, true])
  }

  @Test("Rejected credentials are forgotten") func rejectedCredentials() async {
    let fake = FakeTransport(.challenge(), .text("in"), .challenge(), .challenge(), .challenge())
    let session = Session.retained(fake: fake)
    for status in [200, 401, 401] {
      let response = await session.request("http://a.test/").authenticate(username: "u", password: "p").end()
      #expect(response.response?.statusCode == status)
    }
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, true, false, true])
  }

  @Test(
    "A response that says nothing about a credential leaves it unknown",
    arguments: [407, 408, 421, 425, 429, 502, 503, 504])
  func undecidedCredentials(status: Int) async {
    let fake = FakeTransport(.challenge(), .status(status), .challenge(), .text("in"), .text("in"))
    let session = Session.retained(fake: fake)
    for expected in [status, 200, 200] {
      let response = await session.request("http://a.test/").authenticate(username: "u", password: "p").end()
      #expect(response.response?.statusCode == expected)
    }
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, false, true, true])
  }

  @Test("preemptiveBasicAuthentication sends the first request with credentials") func firstRequest() async {
    let fake = FakeTransport(responder: Self.protected)
    let session = Session.retained(fake: fake, options: Self.preemptive)
    _ = await session.request("http://a.test/").authenticate(username: "u", password: "p").end()
    _ = await session.request("http://a.test/").end()
    #expect(
      fake.requests.map { $0.value("Authorization") } == [
        HTTPHeader.authorization(username: "u", password: "p").value, nil,
      ])
  }

  @Test("A server that hides its challenge is answered preemptively") func hiddenChallenge() async throws {
    let server = try HTTPTestServer()
    let session = Session()
    let url = server.url("/hidden-basic-auth/u/p")
    #expect(
      await session.request(url).authenticate(username: "u", password: "p").end().response?.statusCode == 404)
    let response = await session.request(url).authenticate(username: "u", password: "p")
      .transportOptions { $0.preemptiveBasicAuthentication = true }.end()
    #expect(response.response?.statusCode == 200)
  }

  @Test("A wrong credential is sent preemptively only once") func wrongCredential() async {
    let fake = FakeTransport { _, _ in .challenge() }
    let session = Session.retained(fake: fake, options: Self.preemptive)
    let response = await session.request("http://a.test/").authenticate(username: "u", password: "p").end()
    #expect(response.response?.statusCode == 401)
    #expect(fake.requests.count == 1)
  }

  @Test("A Digest challenge is answered although Basic was sent preemptively") func digestAfterBasic() async {
    let fake = FakeTransport(.challenge(#"Digest realm="r", nonce="n", qop="auth""#), .text("in"))
    let session = Session.retained(fake: fake, options: Self.preemptive)
    let response = await session.request("http://a.test/").authenticate(username: "u", password: "p").end()
    #expect(response.data == Data("in".utf8))
    #expect(fake.requests.map { $0.value("Authorization")?.hasPrefix("Digest ") } == [false, true])
  }

  @Test("An Authorization field of the caller is not replaced") func ownField() async {
    let fake = FakeTransport(responder: Self.protected)
    let session = Session.retained(fake: fake, options: Self.preemptive)
    _ = await session.request("http://a.test/", headers: [.authorization(bearerToken: "t")])
      .authenticate(username: "u", password: "p").end()
    #expect(fake.requests.map { $0.value("Authorization") } == ["Bearer t"])
  }

  @Test("The credential of a delegate is not sent for a request with another one")
  func credentialOfDelegate() async {
    let calls = Recorder<Bool>()
    let delegate = ChallengeDelegate { _ in
      calls.add(true)
      guard calls.count == 1 else { return (.performDefaultHandling, nil) }
      return (.useCredential, URLCredential(user: "delegate", password: "p", persistence: .forSession))
    }
    let fake = FakeTransport(responder: Self.protected)
    let session = Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
    for user in [nil, nil, "own"] {
      let request = session.request("http://a.test/")
      if let user { request.authenticate(username: user, password: "p") }
      #expect(await request.end().data == Data("in".utf8), "\(user ?? "none")")
    }
    let ofDelegate = HTTPHeader.authorization(username: "delegate", password: "p").value
    let own = HTTPHeader.authorization(username: "own", password: "p").value
    #expect(fake.requests.map { $0.value("Authorization") } == [nil, ofDelegate, ofDelegate, nil, own])
  }

  @Test("A credential of a delegate without persistence is for one request") func credentialOfOneRequest()
    async
  {
    let delegate = ChallengeDelegate { _ in
      (.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
    }
    let fake = FakeTransport(responder: Self.protected)
    let session = Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
    for _ in 0..<2 { #expect(await session.request("http://a.test/").end().data == Data("in".utf8)) }
    #expect(delegate.calls.count == 2)
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true, false, true])
  }

  // MARK: URLs of attempts

  /// Returns an adapter that gives each attempt its URL. It is also a retrier of all but the last one.
  private func interceptor(
    _ urls: [String], beforeRetry: @escaping @Sendable (Request) -> Void = { _ in }
  ) -> SpyInterceptor {
    SpyInterceptor(
      adapt: { request, count in
        var request = request
        request.url = URL(string: urls[min(count, urls.count) - 1])
        return .success(request)
      },
      retry: { request, _, count in
        beforeRetry(request)
        return count < urls.count ? .retry : .doNotRetry
      })
  }

  /// Sends one request whose attempts have these URLs.
  private func attempts(
    _ urls: [String], _ fake: FakeTransport, options: TransportOptions = TransportOptions(),
    _ change: (DataRequest) -> Void = { _ in }
  ) async -> DataRequest {
    let session = Session.retained(fake: fake, interceptor: interceptor(urls), options: options)
    let request = session.request("http://first.test/")
    change(request)
    _ = await request.end()
    return request
  }

  @Test("User and password of one attempt's URL do not reach the host of the next", arguments: [false, true])
  func otherHost(isPreemptive: Bool) async {
    let fake = FakeTransport(.failure(.connectionLost), .challenge())
    let request = await attempts(
      ["http://ann:pass@a.test/", "http://b.test/"], fake,
      options: isPreemptive ? Self.preemptive : TransportOptions())
    #expect(request.response?.statusCode == 401)
    #expect(fake.urls == ["http://a.test/", "http://b.test/"])
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [isPreemptive, false])
    #expect(request.credential == nil)
    #expect(!request.cURLDescription().contains("ann"), "\(request.cURLDescription())")
  }

  @Test("A command does not contain the password of an earlier host, even before its attempt is sent")
  func commandOfOtherHost() async {
    let spy = interceptor(["http://ann:pass@a.test/", "http://b.test/"]) { $0.suspend() }
    let session = Session.retained(
      fake: FakeTransport(.failure(.connectionLost), .text("ok")), interceptor: spy)
    let hosts = Recorder<String?>()
    let request = session.request("http://first.test/").onURLRequestCreation(on: .global()) {
      hosts.add($0.url?.host)
    }
    async let response = request.end()
    #expect(await hosts.wait(for: 2) == ["a.test", "b.test"])
    let command = request.cURLDescription()
    #expect(command.contains("b.test") && !command.contains("ann"), "\(command)")
    request.resume()
    #expect(await response.data == Data("ok".utf8))
  }

  @Test("The URL of each attempt names its credential, which later ones at that origin use")
  func laterPassword() async {
    let rows: [(urls: [String], user: String, password: String)] = [
      (["http://ann:old@a.test/", "http://ann:new@a.test/"], "ann", "new"),
      (["http://ann:pass@a.test/1", "http://a.test/2"], "ann", "pass"),
      (["http://ann:pass@a.test/", "http://bob:word@b.test/"], "bob", "word"),
      (["http://a.test/", "http://ann:pass@a.test/"], "ann", "pass"),
    ]
    for row in rows {
      let fake = FakeTransport(.failure(.connectionLost), .challenge(), .text("in"))
      let request = await attempts(row.urls, fake)
      #expect(
        fake.requests.map { $0.value("Authorization") } == [
          nil, nil, HTTPHeader.authorization(username: row.user, password: row.password).value,
        ], "\(row.urls)")
      #expect(request.credential?.user == row.user)
    }
  }

  @Test("A given credential takes precedence over the URLs of all attempts") func givenCredential() async {
    let fake = FakeTransport(.failure(.connectionLost), .challenge(), .text("in"))
    let request = await attempts(["http://ann:pass@a.test/", "http://bob:word@b.test/"], fake) {
      $0.authenticate(username: "own", password: "1")
    }
    let own = HTTPHeader.authorization(username: "own", password: "1").value
    #expect(fake.requests.map { $0.value("Authorization") } == [nil, nil, own])
    #expect(request.credential?.user == "own")
  }

  // MARK: netrc

  private func withFile(_ text: String, _ body: (String) async -> Void) async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try Data(text.utf8).write(to: file)
    await body(file.path)
    try FileManager.default.removeItem(at: file)
  }

  @Test("The netrc file has the credential for a host") func netrcFile() async throws {
    try await withFile("machine a.test login file password secret\ndefault login any password x") { path in
      let fake = FakeTransport(responder: Self.protected)
      let session = Session.retained(fake: fake)
      for (url, user, password) in [
        ("http://a.test/", "file", "secret"), ("http://b.test/", "any", "x"),
        ("http://own:1@a.test/", "own", "1"),
      ] {
        _ = await session.request(url).transportOptions { $0.netrcFile = path }.end()
        #expect(
          fake.requests.last?.value("Authorization")
            == HTTPHeader.authorization(username: user, password: password).value)
      }
      // Without the option, the file is not read.
      _ = await session.request("http://a.test/").end()
      #expect(fake.requests.last?.value("Authorization") == nil)
    }
  }

  @Test("The default entry of netrc does not apply after a redirect to another host") func netrcRedirect()
    async throws
  {
    try await withFile("default login any password x") { path in
      let fake = FakeTransport(.redirect(307, to: "http://b.test/"), .challenge())
      let response = await Session.retained(fake: fake).request("http://a.test/")
        .transportOptions { $0.netrcFile = path }.end()
      #expect(response.response?.statusCode == 401)
      #expect(fake.requests.allSatisfy { $0.value("Authorization") == nil })
    }
  }

  @Test("A missing netrc file fails the request") func missingNetrcFile() async throws {
    let fake = FakeTransport()
    let response = await Session.retained(fake: fake).request("http://a.test/")
      .transportOptions { $0.netrcFile = "/nowhere/netrc" }.end()
    let error = try #require(response.error?.underlyingError as? URLError)
    #expect(error.code == .fileDoesNotExist)
    #expect(fake.requests.isEmpty)
  }

  @Test("A tilde in the path of the netrc file stands for the home folder") func homeFolder() async throws {
    let name = UUID().uuidString
    let response = await Session.retained(fake: FakeTransport()).request("http://a.test/")
      .transportOptions { $0.netrcFile = "~/\(name)" }.end()
    let text = try #require(response.error?.underlyingError as? URLError).localizedDescription
    #expect(text.contains("/\(name)") && !text.contains("~"), "\(text)")
  }

  @Test("A device without end, a folder or a pipe instead of the netrc file fails the request")
  func unfitNetrcFile() async throws {
    let pipe = FileManager.default.temporaryDirectory.appendingPathComponent("netrc-\(UUID().uuidString)")
      .path
    try #require(mkfifo(pipe, 0o600) == 0)
    defer { unlink(pipe) }
    let cases: [(String, URLError.Code, String)] = [
      ("/dev/zero", .dataLengthExceedsMaximum, "more than 16 MiB"), ("/", .fileIsDirectory, "directory"),
      (pipe, .resourceUnavailable, "no process writes"),
    ]
    for (path, code, words) in cases {
      let fake = FakeTransport()
      let response = await Session.retained(fake: fake).request("http://a.test/")
        .transportOptions { $0.netrcFile = path }.end()
      let error = try #require(response.error?.underlyingError as? URLError, "\(path)")
      #expect(error.code == code, "\(path)")
      #expect(error.localizedDescription.contains(words), "\(path): \(error.localizedDescription)")
      #expect(fake.requests.isEmpty)
    }
  }

  @Test("The text of an error has no control characters of a path") func unsafePath() async throws {
    let response = await Session.retained(fake: FakeTransport()).request("http://a.test/")
      .transportOptions { $0.netrcFile = "/nowhere/\u{1B}[2J\u{202E}x" }.end()
    let text = try #require(response.error?.underlyingError as? URLError).localizedDescription
    #expect(text.contains("/nowhere/"))
    #expect(!text.contains("\u{1B}") && !text.contains("\u{202E}"), "\(text.debugDescription)")
  }

  // MARK: Redirects

  /// Redirects with every status, between every pair of origins and with every kind of credential.
  @Test("No credential reaches another origin", .steps, arguments: [301, 302, 303, 307, 308])
  func origins(status: Int) async throws {
    let netrc = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try Data("default login secret password secret".utf8).write(to: netrc)
    defer { try? FileManager.default.removeItem(at: netrc) }
    let origins = ["http://a.test", "http://a.test:8080", "https://a.test", "https://a.test:8443"]
    let others = origins + ["http://b.test", "http://sub.a.test", "https://a.test.", "http://a.test:443"]
    let challenges = [#"Basic realm="r""#, #"Digest realm="r", nonce="n", qop="auth""#, "NTLM"]
    for initial in origins {
      for other in others where other != initial {
        for (number, challenge) in challenges.enumerated() {
          step("from \(initial) to \(other), which asks for \(challenge)")
          let origin = try #require(Origin(url: initial))
          let fake = FakeTransport { request, index in
            // The initial origin accepts the credential and redirects; the other origin challenges repeatedly.
            guard request.origin == origin else {
              return index > 12 ? .text("away") : .challenge(challenge)
            }
            let isIn = request.value("Authorization") != nil || request.login != nil
            return isIn ? .redirect(status, to: other + "/x") : .challenge(challenge)
          }
          var options = TransportOptions()
          options.protectedHeaders = ["X-Key"]
          options.preemptiveBasicAuthentication = number == 0
          options.netrcFile = netrc.path
          let session = Session.retained(fake: fake, options: options)
          for _ in 0..<2 {
            _ = await session.request(
              initial + "/", method: .post, headers: ["X-Key": "secret", "Cookie": "secret=1"]
            ).authenticate(username: "secret", password: "secret").end()
          }
          let away = fake.requests.filter { $0.origin != origin }
          #expect(!away.isEmpty && fake.requests.contains { $0.origin == origin })
          for request in away {
            #expect(request.login == nil)
            for name in ["Authorization", "X-Key", "Cookie"] {
              #expect(request.value(name) == nil, "\(name) from \(initial) to \(other) by \(status)")
            }
          }
        }
      }
    }
  }
}
