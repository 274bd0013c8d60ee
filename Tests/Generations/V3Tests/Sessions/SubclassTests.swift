import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct SubclassTests {
  /// Overrides the initializer of the generation.
  private class Client: Manager, @unchecked Sendable {
    let name: String

    override init(
      configuration: URLSessionConfiguration = .isolated, delegate: SessionDelegate = SessionDelegate(),
      serverTrustPolicyManager: ServerTrustPolicyManager? = nil
    ) {
      name = "client"
      super.init(
        configuration: configuration, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager)
    }
  }

  /// Overrides the initializer with a session.
  private class Guest: Manager, @unchecked Sendable {
    override init?(
      session: URLSession, delegate: SessionDelegate,
      serverTrustPolicyManager: ServerTrustPolicyManager? = nil
    ) {
      super.init(session: session, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager)
    }
  }

  /// Records its calls, and accepts every server.
  private class Accepting: Manager.SessionDelegate, @unchecked Sendable {
    let notes = Notes()

    override func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      notes.add(challenge.protectionSpace.authenticationMethod)
      guard let trust = challenge.protectionSpace.serverTrust else {
        return super.urlSession(session, didReceive: challenge, completionHandler: completionHandler)
      }
      completionHandler(.useCredential, URLCredential(trust: trust))
    }

    override func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
      notes.add("events")
      super.urlSessionDidFinishEvents(forBackgroundURLSession: session)
    }

    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
      notes.add("became")
      super.urlSession(session, dataTask: dataTask, didBecome: downloadTask)
    }
  }

  @Test("The initializer of the generation can be overridden") func initializer() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client()
    #expect(client.name == "client")
    #expect(await client.request(.GET, server.url("/get")).end().status == nil)
    let policies = ServerTrustPolicyManager(policies: ["localhost": .DisableEvaluation])
    let trusting = Client(serverTrustPolicyManager: policies)
    #expect(await trusting.request(.GET, server.url("/get")).end().status == 200)
    // A GET may have a body for every initializer of the manager.
    let body = await trusting.request(.GET, server.url("/echo"), parameters: ["a": 1], encoding: .JSON).end()
    #expect(body.text == #"{"a":1}"#)
  }

  @Test("The initializer with a session can be overridden") func sessionInitializer() async throws {
    let server = try HTTPTestServer()
    let delegate = Manager.SessionDelegate()
    let session = URLSession(configuration: .isolated, delegate: delegate, delegateQueue: nil)
    let guest = try #require(Guest(session: session, delegate: delegate))
    #expect(await guest.request(.GET, server.url("/get")).end().status == 200)
    #expect(Guest(session: session, delegate: Manager.SessionDelegate()) == nil)
    let other = Manager(session: session, delegate: delegate, transportOptions: TransportOptions())
    #expect(other?.session === session)
  }

  @Test("Labels select an initializer") func labels() {
    // These statements compile without ambiguity.
    let managers = [
      Manager(), Manager(configuration: .isolated), Manager(delegate: Manager.SessionDelegate()),
      Manager(serverTrustPolicyManager: nil), Manager(transportOptions: TransportOptions()),
      Manager(configuration: .isolated, transportOptions: TransportOptions()),
    ]
    for manager in managers { #expect(manager.startRequestsImmediately) }
  }

  @Test("A subclass of the delegate evaluates servers") func evaluation() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let delegate = Accepting()
    let manager = Manager.isolated(delegate: delegate)
    #expect(await manager.request(.GET, server.url("/get")).end().status == 200)
    #expect(delegate.notes.lines == [NSURLAuthenticationMethodServerTrust])
    // A Basic challenge is not passed to the session delegate.
    _ = await manager.request(.GET, server.url("/basic-auth/user/password")).end()
    #expect(Set(delegate.notes.lines) == [NSURLAuthenticationMethodServerTrust])
  }

  @Test("A challenge with default handling is evaluated by the policies") func policies() async throws {
    class Passing: Manager.SessionDelegate, @unchecked Sendable {
      override func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) {
        super.urlSession(session, didReceive: challenge, completionHandler: completionHandler)
      }
    }
    let server = try HTTPTestServer(.tls(.localhost))
    let policies = ServerTrustPolicyManager(policies: ["localhost": .DisableEvaluation])
    let accepted = await Manager.isolated(delegate: Passing(), policies: policies)
      .request(.GET, server.url("/get")).end()
    #expect(accepted.status == 200)
    #expect(await Manager.isolated(delegate: Passing()).request(.GET, server.url("/get")).end().status == nil)
    let closing = Passing()
    closing.sessionDidReceiveChallenge = { _, _ in (.cancelAuthenticationChallenge, nil) }
    let closed = await Manager.isolated(delegate: closing, policies: policies).request(
      .GET, server.url("/get")
    )
    .end()
    #expect(closed.fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
  }

  @Test("The closure of tasks evaluates servers if the session has no closure") func taskClosure()
    async throws
  {
    let server = try HTTPTestServer(.tls(.localhost))
    let delegate = Manager.SessionDelegate()
    delegate.taskDidReceiveChallenge = { _, _, challenge in
      challenge.protectionSpace.serverTrust.map { (.useCredential, URLCredential(trust: $0)) }
        ?? (.performDefaultHandling, nil)
    }
    let manager = Manager.isolated(delegate: delegate)
    #expect(await manager.request(.GET, server.url("/get")).end().status == 200)
  }

  @Test("Methods that the library does not call forward to their closures") func forwarding() throws {
    let delegate = Accepting()
    delegate.sessionDidFinishEventsForBackgroundURLSession = { [notes = delegate.notes] _ in
      notes.add("closure")
    }
    let manager = Manager.isolated(delegate: delegate)
    delegate.urlSessionDidFinishEvents(forBackgroundURLSession: manager.session)
    #expect(delegate.notes.lines == ["events", "closure"])
  }
}
