import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// `URLProtocol` classes of a user serve requests instead of the engine.
@Suite(.timeLimit(.minutes(5))) struct URLProtocolTests {
  @Test("A protocol serves a data request") func dataRequest() async throws {
    let script = ProtocolScript { loader, client in
      loader.respond(client, 200, ["Content-Type": "text/plain", "X-Stub": "yes"])
      loader.load(client, "Hello, ")
      loader.load(client, "world")
      loader.finish(client)
    }
    let request = Session.scripted().request(script.url, headers: ["X-Mine": "1"]).validate()
    let response = await request.serializingString().response
    #expect(response.value == "Hello, world")
    #expect(response.response?.statusCode == 200)
    #expect(response.response?.value(forHTTPHeaderField: "X-Stub") == "yes")
    #expect(response.metrics?.transactionMetrics.isEmpty == true)
    #expect(script.calls.count == 1)
    let seen = try #require(script.started.values.first)
    #expect(seen.value(forHTTPHeaderField: "X-Mine") == "1")
    #expect(seen.value(forHTTPHeaderField: "User-Agent") != nil)
    await script.stopped.wait(for: 1)
    #expect(script.stopped.count == 1)
  }

  @Test("The measured time begins before the class loads the request") func beginning() async {
    let times = Recorder<Date>()
    let script = ProtocolScript { loader, client in
      times.add(Date())
      loader.respond(client)
      loader.finish(client)
    }
    let response = await Session.scripted().request(script.url).end()
    let (start, loaded) = (response.metrics?.taskInterval.start, times.values.first ?? .distantPast)
    #expect(start.map { $0 <= loaded } == true, "\(String(describing: start)) \(loaded)")
  }

  @Test("A class sees the values of a repeated field as one") func repeatedFields() async {
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.finish(client)
    }
    let request = Session.scripted().request(script.url, headers: ["X-A": "1"]).transportOptions {
      $0.repeatedHeaders = [HTTPHeader(name: "X-A", value: "2"), HTTPHeader(name: "X-A", value: "3")]
    }
    #expect(await request.end().error == nil)
    #expect(script.started.values.map { $0.value(forHTTPHeaderField: "X-A") } == ["1, 2, 3"])
  }

  @Test("Data without a response is delivered, as Foundation does it") func dataAlone() async throws {
    let script = ProtocolScript { loader, client in
      loader.load(client, "Hello, ")
      loader.load(client, "world")
      loader.finish(client)
    }
    let session = Session.scripted()
    let request = session.request(script.url).validate()
    let response = await request.serializingString().response
    #expect(response.value == "Hello, world")
    #expect(response.response == nil)
    #expect(request.task?.response == nil)
    #expect(request.downloadProgress.totalUnitCount == -1)
    var text = ""
    for try await part in session.streamRequest(script.url).validate().strings() { text += part }
    #expect(text == "Hello, world")
    let download = await session.download(script.url).serializingDownloadedFileURL().response
    let file = try #require(download.value)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try String(contentsOf: file, encoding: .utf8) == "Hello, world")
  }

  @Test("Data without a response may fail later, and has the limit of a body") func failureOfDataAlone() async
  {
    let script = ProtocolScript { loader, client in
      loader.load(client, "part")
      client.urlProtocol(loader, didFailWithError: URLError(.networkConnectionLost))
    }
    let response = await Session.scripted().request(script.url).serializingString().response
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    let endless = ProtocolScript { loader, client in
      loader.load(client, String(repeating: "a", count: 100))
      loader.finish(client)
    }
    var options = TransportOptions()
    options.bodySizeLimit = 10
    let large = await Session.scripted(options: options).request(endless.url).serializingString().response
    #expect((large.error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)
  }

  @Test("A protocol gets fields and methods that must not be sent") func invalidFields() async throws {
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.finish(client)
    }
    let fake = FakeTransport(.text("engine"))
    let session = Session.scripted(fake: fake)
    let headers: HTTPHeaders = ["X Stub": "a", "X-Lines": "a\r\nb"]
    let response = await session.request(
      script.url, method: HTTPMethod(rawValue: "IN VALID"), headers: headers
    )
    .serializingData(emptyResponseCodes: [200]).response
    #expect(response.error == nil)
    let seen = try #require(script.started.values.first)
    #expect(seen.value(forHTTPHeaderField: "X Stub") == "a")
    #expect(seen.httpMethod == "IN VALID")
    // The engine refuses them, also after a redirect by the class.
    let redirecting = ProtocolScript { loader, client in
      guard let url = URL(string: "https://elsewhere.test/"),
        let response = HTTPURLResponse(
          url: url, statusCode: 302, httpVersion: nil, headerFields: ["Location": url.absoluteString])
      else { return }
      client.urlProtocol(loader, wasRedirectedTo: URLRequest(url: url), redirectResponse: response)
    }
    for url in ["https://elsewhere.test/", redirecting.url] {
      let refused = await session.request(url, headers: ["X Stub": "a"]).serializingData().response
      #expect((refused.error?.underlyingError as? URLError)?.code == .badURL, "\(url)")
      #expect(refused.error?.localizedDescription.contains("\"X Stub\" is not the name") == true, "\(url)")
    }
    #expect(fake.urls == [])
  }

  @Test("The response is the object of the protocol") func responseObject() async {
    let given = Recorder<HTTPURLResponse>()
    let script = ProtocolScript { loader, client in
      guard let url = loader.request.url,
        let response = HTTPURLResponse(url: url, statusCode: 404, httpVersion: nil, headerFields: nil)
      else { return }
      given.add(response)
      client.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
      loader.finish(client)
    }
    let response = await Session.scripted().request(script.url).validate().serializingData().response
    #expect(response.error?.responseCode == 404)
    #expect(response.response === given.values.first)
  }

  @Test("A request that no protocol accepts is sent by the engine") func engine() async {
    let fake = FakeTransport(.text("engine"))
    let response = await Session.scripted(fake: fake).request("https://elsewhere.test/").serializingString()
      .response
    #expect(response.value == "engine")
    #expect(fake.urls == ["https://elsewhere.test/"])
  }

  @Test("Classes of Foundation are ignored") func foundationClasses() async {
    let fake = FakeTransport(.text("engine"))
    let session = Session(fake: fake)
    #expect(session.sessionConfiguration.protocolClasses?.isEmpty == false)
    #expect(await session.request("https://elsewhere.test/").serializingString().response.value == "engine")
  }

  @Test("A protocol can serve its own scheme") func ownScheme() async throws {
    let script = ProtocolScript { loader, client in
      guard let url = loader.request.url else { return }
      let response = URLResponse(
        url: url, mimeType: "text/plain", expectedContentLength: 3, textEncodingName: "utf-8")
      client.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
      loader.load(client, "äb")
      loader.finish(client)
    }
    let response = await Session.scripted().request("app://\(script.host)/x").validate().serializingString()
      .response
    #expect(response.value == "äb")
    #expect(response.response == nil)
  }

  @Test("A scheme without a class is unsupported") func unsupportedScheme() async {
    let response = await Session.scripted().request("ftp://example.com/x").serializingData().response
    #expect((response.error?.underlyingError as? URLError)?.code == .unsupportedURL)
    #expect(response.error?.localizedDescription.contains("ftp:") == true)
  }

  @Test("An error of a protocol is delivered unchanged") func error() async throws {
    struct Broken: Error {}
    let script = ProtocolScript { loader, client in
      client.urlProtocol(loader, didFailWithError: Broken())
    }
    let response = await Session.scripted().request(script.url).serializingData().response
    guard case .sessionTaskFailed(let error)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(error is Broken)
  }

  @Test("An error after a response and data fails the request, which has the data")
  func failureAfterData() async throws {
    struct Broken: Error {}
    let script = ProtocolScript { loader, client in
      loader.respond(client, 200, ["X-Stub": "yes"])
      loader.load(client, "pa")
      loader.load(client, "rt")
      client.urlProtocol(loader, didFailWithError: Broken())
      // Called after the failure, so it has no effect.
      loader.load(client, "late")
      loader.finish(client)
    }
    func isBroken(_ error: AFError?) -> Bool {
      guard case .sessionTaskFailed(let error)? = error else { return false }
      return error is Broken
    }
    let session = Session.scripted()
    let response = await session.request(script.url).validate().end()
    #expect(isBroken(response.error), "\(response)")
    #expect(response.data == Data("part".utf8))
    #expect(response.response?.value(forHTTPHeaderField: "X-Stub") == "yes")
    var text = ""
    for await event in session.streamRequest(script.url).streamTask().streamingStrings() {
      text += event.value ?? ""
      if let completion = event.completion { #expect(isBroken(completion.error), "\(completion)") }
    }
    #expect(text == "part")
    let download = await session.download(script.url).serializingDownloadedFileURL().response
    #expect(isBroken(download.error) && download.fileURL == nil, "\(download)")
    #expect(await script.stopped.wait(for: 3).count == 3)
  }

  @Test("A retry makes another protocol") func retry() async {
    let count = Recorder<Int>()
    let script = ProtocolScript { loader, client in
      count.add(1)
      loader.respond(client, count.count < 3 ? 503 : 200)
      loader.load(client, "\(count.count)")
      loader.finish(client)
    }
    let session = Session.scripted(interceptor: RetryPolicy(exponentialBackoffScale: 0))
    let request = session.request(script.url).validate()
    #expect(await request.serializingString().response.value == "3")
    #expect(request.retryCount == 2)
    await script.stopped.wait(for: 3)
    #expect(script.calls.count == 3)
  }

  @Test("A redirect status without a redirect call is the response") func redirectStatus() async {
    let fake = FakeTransport(.text("elsewhere"))
    let script = ProtocolScript { loader, client in
      loader.respond(client, 302, ["Location": "https://elsewhere.test/"])
      loader.load(client, "here")
      loader.finish(client)
    }
    let response = await Session.scripted(fake: fake).request(script.url).serializingString().response
    #expect(response.response?.statusCode == 302)
    #expect(response.value == "here")
    #expect(fake.urls.isEmpty)
  }

  @Test("A redirect is followed to the engine and to another protocol") func redirect() async {
    let fake = FakeTransport(.text("elsewhere"))
    let session = Session.scripted(fake: fake)
    func script(to target: String) -> ProtocolScript {
      ProtocolScript { loader, client in
        guard let from = loader.request.url, let url = URL(string: target),
          let response = HTTPURLResponse(url: from, statusCode: 302, httpVersion: nil, headerFields: nil)
        else { return }
        client.urlProtocol(loader, wasRedirectedTo: URLRequest(url: url), redirectResponse: response)
        // Called after the redirect, so it has no effect.
        loader.respond(client)
        loader.finish(client)
      }
    }
    let first = script(to: "https://elsewhere.test/a")
    let second = script(to: first.url)
    let response = await session.request(second.url).serializingString().response
    #expect(response.value == "elsewhere")
    #expect(response.response?.url?.absoluteString == "https://elsewhere.test/a")
    #expect(fake.urls == ["https://elsewhere.test/a"])
    #expect(first.calls.count == 1)
    #expect(second.calls.count == 1)
  }

  @Test("A redirect has the method that the protocol chose", arguments: ["POST", "GET"])
  func methodOfRedirect(method: String) async {
    let fake = FakeTransport()
    let script = ProtocolScript { loader, client in
      guard let from = loader.request.url, let url = URL(string: "https://elsewhere.test/"),
        let response = HTTPURLResponse(url: from, statusCode: 302, httpVersion: nil, headerFields: nil)
      else { return }
      var next = URLRequest(url: url)
      next.httpMethod = method
      client.urlProtocol(loader, wasRedirectedTo: next, redirectResponse: response)
    }
    let request = Session.scripted(fake: fake).request(script.url, method: .post, parameters: ["a": 1])
    #expect(await request.end().error == nil)
    #expect(fake.requests.map(\.method) == [method])
    #expect(fake.requests.first?.body.bytes == (method == "POST" ? Data("a=1".utf8) : nil))
  }

  @Test("A line break in a field adds no other field") func lineBreak() async {
    let script = ProtocolScript { loader, client in
      loader.respond(client, 200, ["X-Note": "a\r\nContent-Type: application/json"])
      loader.load(client, "{}")
      loader.finish(client)
    }
    let response = await Session.scripted().request(script.url).validate(contentType: ["application/json"])
      .end()
    #expect(response.error?.isResponseValidationError == true)
  }

  @Test("A redirect to a file is refused") func redirectToFile() async {
    let script = ProtocolScript { loader, client in
      guard let from = loader.request.url,
        let response = HTTPURLResponse(url: from, statusCode: 302, httpVersion: nil, headerFields: nil)
      else { return }
      let target = URLRequest(url: URL(fileURLWithPath: "/etc/hostname"))
      client.urlProtocol(loader, wasRedirectedTo: target, redirectResponse: response)
    }
    let response = await Session.scripted().request(script.url).serializingData().response
    #expect((response.error?.underlyingError as? URLError)?.code == .unsupportedURL)
    #expect(response.data == nil)
  }

  @Test("A cached response is delivered") func cachedResponse() async {
    let script = ProtocolScript { loader, client in
      guard let url = loader.request.url,
        let response = HTTPURLResponse(url: url, statusCode: 203, httpVersion: nil, headerFields: nil)
      else { return }
      let cached = CachedURLResponse(response: response, data: Data("cached".utf8))
      client.urlProtocol(loader, cachedResponseIsValid: cached)
      loader.finish(client)
    }
    let response = await Session.scripted().request(script.url).serializingString().response
    #expect(response.value == "cached")
    #expect(response.response?.statusCode == 203)
  }

  @Test(
    "The sender of a challenge receives the answer",
    arguments: [(true, 0, "ada"), (true, 1, "nobody"), (false, 0, "nobody")])
  func challenge(hasCredential: Bool, failureCount: Int, answer: String) async {
    let request = Session.scripted().request(challenging(failureCount).url)
    if hasCredential { request.authenticate(username: "ada", password: "x") }
    let response = await request.serializingString().response
    #expect(response.value == answer)
    #expect(response.response?.statusCode == (answer == "ada" ? 200 : 401))
  }

  @Test("A challenge after a redirect receives the credential from the first origin only")
  func challengeAfterRedirect() async {
    let script = challenging(redirectsFirst: true)
    let own = Session.scripted().request(script.url).authenticate(username: "ada", password: "x")
    #expect(await own.serializingString().response.value == "ada")
    for url in ["http://a.test/", "http://ada:x@a.test/"] {
      let other = challenging()
      let request = Session.scripted(fake: FakeTransport(.redirect(302, to: other.url))).request(url)
      if url == "http://a.test/" { request.authenticate(username: "ada", password: "x") }
      #expect(await request.serializingString().response.value == "nobody", "\(url)")
      #expect(other.started.count == 1)
    }
  }

  @Test("A class at another origin does not see the field that answered a challenge")
  func fieldOfOtherOrigin() async throws {
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.finish(client)
    }
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.url = URL(string: script.url)
        return request
      })
    let fake = FakeTransport(.challenge(), .redirect(302, to: "/there"))
    let request = Session.scripted(fake: fake).request("http://a.test/", headers: ["X-Mine": "1"])
      .authenticate(username: "ada", password: "x").redirect(using: handler)
    #expect(await request.end().error == nil)
    #expect(fake.requests.map { $0.value("Authorization") != nil } == [false, true])
    let seen = try #require(script.started.values.first)
    #expect(seen.value(forHTTPHeaderField: "X-Mine") == "1")
    #expect(seen.value(forHTTPHeaderField: "Authorization") == nil)
  }

  /// A class that serves the paths with its letter, and responds with it.
  private class LetterProtocol: URLProtocol {
    class var letter: String { "" }

    override class func canInit(with request: URLRequest) -> Bool {
      request.url?.host == "letters.test" && request.url?.path.contains(letter) == true
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
      guard let url = request.url else { return }
      let response = URLResponse(
        url: url, mimeType: "text/plain", expectedContentLength: 1, textEncodingName: nil)
      client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
      client?.urlProtocol(self, didLoad: Data(Self.letter.utf8))
      client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
  }

  private final class FirstProtocol: LetterProtocol {
    override class var letter: String { "a" }
  }

  private final class SecondProtocol: LetterProtocol {
    override class var letter: String { "b" }
  }

  @Test("The first class that accepts a request serves it", arguments: [false, true])
  func order(isReversed: Bool) async {
    let configuration = URLSessionConfiguration.uncached
    let classes: [AnyClass] = [FirstProtocol.self, SecondProtocol.self]
    configuration.protocolClasses = isReversed ? classes.reversed() : classes
    let session = Session.retained(fake: FakeTransport(.text("engine")), configuration: configuration)
    var letters: [String] = []
    for path in ["ab", "a", "b", "ba", "c"] {
      letters.append(
        await session.request("http://letters.test/\(path)").serializingString().response.value ?? "-")
    }
    let both = isReversed ? "b" : "a"
    #expect(letters == [both, "a", "b", both, "engine"])
  }

  /// A class that serves one path of its host.
  private final class AssetProtocol: URLProtocol {
    static let fields = Recorder<String?>()

    override class func canInit(with request: URLRequest) -> Bool {
      request.url?.absoluteString == "http://assets.test/asset"
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
      Self.fields.add(request.value(forHTTPHeaderField: "Authorization"))
      guard let url = request.url,
        let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
      else { return }
      client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
      client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
  }

  @Test("A class at the same origin sees the field that answered a challenge") func fieldOfSameOrigin() async
  {
    let configuration = URLSessionConfiguration.uncached
    configuration.protocolClasses = [AssetProtocol.self]
    let fake = FakeTransport(.challenge(), .redirect(302, to: "/asset"))
    let request = Session.retained(fake: fake, configuration: configuration).request("http://assets.test/")
      .authenticate(username: "ada", password: "x")
    #expect(await request.end().error == nil)
    #expect(AssetProtocol.fields.values == [HTTPHeader.authorization(username: "ada", password: "x").value])
  }

  /// Makes a script that asks for a password, and responds with the user of the answer.
  private func challenging(_ failureCount: Int = 0, redirectsFirst: Bool = false) -> ProtocolScript {
    let sender = ChallengeSender()
    return ProtocolScript { loader, client in
      guard let url = loader.request.url else { return }
      if redirectsFirst, url.path != "/there", let next = URL(string: "/there", relativeTo: url),
        let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil)
      {
        return client.urlProtocol(
          loader, wasRedirectedTo: URLRequest(url: next.absoluteURL), redirectResponse: response)
      }
      nonisolated(unsafe) let loader = loader
      sender.onAnswer = { user in
        loader.respond(client, user == nil ? 401 : 200)
        loader.load(client, user ?? "nobody")
        loader.finish(client)
      }
      let space = URLProtectionSpace(
        host: url.host ?? "", port: 443, protocol: "https", realm: "r",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
      client.urlProtocol(
        loader,
        didReceive: URLAuthenticationChallenge(
          protectionSpace: space, proposedCredential: nil, previousFailureCount: failureCount,
          failureResponse: nil, error: nil, sender: sender))
    }
  }
}

/// The sender of a challenge, which records the answer on the calling thread.
private final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, @unchecked Sendable {
  // Set before the challenge is handed over.
  var onAnswer: (@Sendable (String?) -> Void)?

  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
    onAnswer?(credential.user)
  }
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { onAnswer?(nil) }
  func cancel(_ challenge: URLAuthenticationChallenge) { onAnswer?("cancelled") }
  func performDefaultHandling(for challenge: URLAuthenticationChallenge) { onAnswer?("default") }
  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) { onAnswer?("rejected") }
}
