import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Events that a delegate requests", .timeLimit(.minutes(5)))
struct WantedEventsTests {
  /// A delegate that records its calls and forwards them to the base class.
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

  /// Causes every event of a delegate: once with a credential, once with a cache.
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

  @Test("Methods of events that are not requested are not called") func unwantedEvents() async {
    let spy = Spy(wanting: [])
    #expect(await exercise(spy) == [200, 200])
    #expect(spy.calls.values.isEmpty)
  }

  @Test("Each event can be requested alone") func singleEvents() async {
    let events: [(SessionDelegate.Events, String)] = [
      (.trust, "trust"), (.authentication, "authentication"), (.redirects, "redirects"),
    ]
    for (event, name) in events {
      let spy = Spy(wanting: event)
      #expect(await exercise(spy) == [200, 200])
      #expect(Set(spy.calls.values) == [name])
    }
  }

  @Test("A delegate can decide about storing and observe transfers") func storingAndTransfers() async {
    for (event, name) in [(SessionDelegate.Events.caching, "caching"), (.transfers, "transfers")] {
      let spy = Spy(wanting: event)
      #expect(await exercise(spy) == [200, 200])
      #expect(spy.calls.values.contains(name))
      #expect(!spy.calls.values.contains("trust"))
    }
  }

  @Test("A subclass requests all events by default") func defaultEvents() async {
    let spy = Spy()
    #expect(spy.wantedEvents == .all)
    #expect(await exercise(spy) == [200, 200])
    #expect(
      Set(spy.calls.values) == ["trust", "authentication", "redirects", "caching", "transfers"])
  }

  @Test("Monitors receive all events although the delegate requests none") func monitors() async {
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

  @Test("The requested events can change during the session") func changedEvents() async {
    let spy = Spy(wanting: [])
    let session = Session.retained(
      fake: FakeTransport(.redirect(302, to: "/b"), .ok, .redirect(302, to: "/d"), .ok),
      observers: SessionObservers(delegate: spy, eventMonitors: []))
    #expect(await session.request("http://a.test/a").end().error == nil)
    #expect(spy.calls.values.isEmpty)
    spy.wantedEvents.insert(.redirects)
    #expect(await session.request("http://a.test/c").end().error == nil)
    #expect(spy.calls.values == ["redirects"])
  }

  /// A delegate that accepts every server, which the trust store would refuse.
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

  @Test("Responses of a server that only a delegate accepted are not used by other sessions")
  func acceptedServer() async throws {
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
    // The connection is open and the server was accepted, so the delegate is no longer called.
    delegate.wantedEvents = []
    #expect(try await status("/kept?later", in: accepting) == 200)
    for path in ["/kept", "/kept?later"] {
      #expect(try await status(path, in: accepting, stored: true) == 200)
      #expect(try await status(path, in: strict, stored: true) == nil)
    }
    #expect(server.requestCount == 2)
  }
}
