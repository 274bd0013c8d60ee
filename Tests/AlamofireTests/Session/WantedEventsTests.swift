import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("What a delegate wants to be called for", .timeLimit(.minutes(5)))
struct WantedEventsTests {
  /// Writes down for what it was called, and leaves everything to the base class.
  private final class Spy: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<String>()

    init(wanting events: Events? = nil) {
      super.init()
      if let events { wantedEvents = events }
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let isOfServer =
        challenge.protectionSpace.authenticationMethod == Alamofire::NSURLAuthenticationMethodServerTrust
      calls.add(isOfServer ? "trust" : "authentication")
      super.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
      calls.add("redirects")
      completionHandler(request)
    }

    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask,
      willCacheResponse proposedResponse: CachedURLResponse,
      completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
      calls.add("caching")
      completionHandler(proposedResponse)
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      calls.add("transfers")
    }
  }

  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer(
      .tls(.localhost),
      routes: .standard.adding("/kept") { _, _ in
        .json("{}").with(header: "Cache-Control", value: "max-age=60")
      })
  }

  /// Everything that a delegate can be called for happens: once with a password on the way, once with a cache.
  private func exercise(_ delegate: SessionDelegate, monitors: [any EventMonitor] = []) async -> [Int?] {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = HTTPCache(memoryCapacity: 1_000_000, diskCapacity: 0, directory: nil)
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let session = Session(
      configuration: configuration, delegate: delegate, eventMonitors: monitors, transportOptions: options)
    let led = session.request(server.url("/redirect-to?url=/basic-auth/ada/secret"))
      .authenticate(username: "ada", password: "secret")
    let first = await led.serializingData().response
    let second = await session.request(server.url("/kept")).serializingData().response
    return [first, second].map { $0.response?.statusCode }
  }

  @Test func nobodyIsCalledForWhatIsNotWanted() async {
    let spy = Spy(wanting: [])
    #expect(await exercise(spy) == [200, 200])
    #expect(spy.calls.values.isEmpty)
  }

  @Test func eachEventComesByItself() async {
    let events: [(SessionDelegate.Events, String)] = [
      (.trust, "trust"), (.authentication, "authentication"), (.redirects, "redirects"),
    ]
    for (event, name) in events {
      let spy = Spy(wanting: event)
      #expect(await exercise(spy) == [200, 200])
      #expect(Set(spy.calls.values) == [name])
    }
  }

  @Test func whoWantsToDecideAboutStoringOrToSeeTransfersDoes() async {
    for (event, name) in [(SessionDelegate.Events.caching, "caching"), (.transfers, "transfers")] {
      let spy = Spy(wanting: event)
      #expect(await exercise(spy) == [200, 200])
      #expect(spy.calls.values.contains(name))
      #expect(!spy.calls.values.contains("trust"))
    }
  }

  @Test func aSubclassThatSaysNothingWantsEverything() async {
    let spy = Spy()
    #expect(spy.wantedEvents == .all)
    #expect(await exercise(spy) == [200, 200])
    #expect(
      Set(spy.calls.values) == ["trust", "authentication", "redirects", "caching", "transfers"])
  }

  @Test func monitorsHearOfEverythingThroughADelegateThatWantsNothing() async {
    let monitor = ClosureEventMonitor(queue: .global())
    let heard = Recorder<String>()
    monitor.taskDidComplete = { _, _, _ in heard.add("end") }
    monitor.taskWillPerformHTTPRedirection = { _, _, _, _ in heard.add("redirect") }
    final class Quiet: SessionDelegate, @unchecked Sendable {}
    let quiet = Quiet()
    quiet.wantedEvents = []
    #expect(await exercise(quiet, monitors: [monitor]) == [200, 200])
    #expect(await heard.wait(for: 3).sorted() == ["end", "end", "redirect"])
  }

  @Test func whatIsWantedMayChangeWhileTheSessionLives() async {
    let spy = Spy(wanting: [])
    let session = Session.kept(
      fake: FakeTransport(.redirect(302, to: "/b"), .ok, .redirect(302, to: "/d"), .ok),
      watching: SessionWatching(delegate: spy, eventMonitors: []))
    #expect(await session.request("http://a.test/a").end().error == nil)
    #expect(spy.calls.values.isEmpty)
    spy.wantedEvents.insert(.redirects)
    #expect(await session.request("http://a.test/c").end().error == nil)
    #expect(spy.calls.values == ["redirects"])
  }

  /// Says yes to every server, which the trust store would not.
  private final class Accepting: SessionDelegate, @unchecked Sendable {
    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      guard let trust = challenge.protectionSpace.serverTrust else {
        return completionHandler(.performDefaultHandling, nil)
      }
      completionHandler(.useCredential, URLCredential(trust: trust))
    }
  }

  @Test func whatCameFromAServerThatADelegateHasAcceptedIsNeverForOtherSessions() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = HTTPCache(memoryCapacity: 1_000_000, diskCapacity: 0, directory: nil)
    let delegate = Accepting()
    let accepting = Session(configuration: configuration, delegate: delegate, eventMonitors: [])
    let strict = Session(configuration: configuration, eventMonitors: [])
    func status(_ path: String, in session: Session, stored: Bool = false) async throws -> Int? {
      var request = try URLRequest(url: server.url(path), method: .get)
      if stored { request.cachePolicy = .returnCacheDataDontLoad }
      return await session.request(request).serializingData().response.response?.statusCode
    }
    #expect(try await status("/kept", in: accepting) == 200)
    // The connection is open, and the server accepted; the delegate is not called any more.
    delegate.wantedEvents = []
    #expect(try await status("/kept?later", in: accepting) == 200)
    for path in ["/kept", "/kept?later"] {
      #expect(try await status(path, in: accepting, stored: true) == 200)
      #expect(try await status(path, in: strict, stored: true) == nil)
    }
    #expect(server.requestCount == 2)
  }
}
