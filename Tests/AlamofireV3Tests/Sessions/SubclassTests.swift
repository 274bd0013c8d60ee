import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct SubclassTests {
  /// Overrides the initializer that the generation had.
  private class Client: Manager, @unchecked Sendable {
    let name: String

    override init(
      configuration: URLSessionConfiguration = .solitary, delegate: SessionDelegate = SessionDelegate(),
      serverTrustPolicyManager: ServerTrustPolicyManager? = nil
    ) {
      name = "client"
      super.init(
        configuration: configuration, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager)
    }
  }

  /// The one beside a session, too.
  private class Guest: Manager, @unchecked Sendable {
    override init?(
      session: URLSession, delegate: SessionDelegate,
      serverTrustPolicyManager: ServerTrustPolicyManager? = nil
    ) {
      super.init(session: session, delegate: delegate, serverTrustPolicyManager: serverTrustPolicyManager)
    }
  }

  /// Notes what it is asked, and accepts whatever a server shows.
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

  @Test func initializerOfTheGenerationCanBeOverridden() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client()
    #expect(client.name == "client")
    #expect(await client.request(.GET, server.url("/get")).end().status == nil)
    let policies = ServerTrustPolicyManager(policies: ["localhost": .DisableEvaluation])
    let trusting = Client(serverTrustPolicyManager: policies)
    #expect(await trusting.request(.GET, server.url("/get")).end().status == 200)
    // A GET may carry a body, whichever initializer made the manager.
    let body = await trusting.request(.GET, server.url("/echo"), parameters: ["a": 1], encoding: .JSON).end()
    #expect(body.text == #"{"a":1}"#)
  }

  @Test func initializerBesideASessionCanBeOverridden() async throws {
    let server = try HTTPTestServer()
    let delegate = Manager.SessionDelegate()
    let session = URLSession(configuration: .solitary, delegate: delegate, delegateQueue: nil)
    let guest = try #require(Guest(session: session, delegate: delegate))
    #expect(await guest.request(.GET, server.url("/get")).end().status == 200)
    #expect(Guest(session: session, delegate: Manager.SessionDelegate()) == nil)
    let other = Manager(session: session, delegate: delegate, transportOptions: TransportOptions())
    #expect(other?.session === session)
  }

  @Test func everyInitializerIsMeantByItsLabels() {
    // Compiled: none of them is ambiguous.
    let managers = [
      Manager(), Manager(configuration: .solitary), Manager(delegate: Manager.SessionDelegate()),
      Manager(serverTrustPolicyManager: nil), Manager(transportOptions: TransportOptions()),
      Manager(configuration: .solitary, transportOptions: TransportOptions()),
    ]
    for manager in managers { #expect(manager.startRequestsImmediately) }
  }

  @Test func subclassOfTheDelegateJudgesServers() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let delegate = Accepting()
    let manager = Manager.lone(delegate: delegate)
    #expect(await manager.request(.GET, server.url("/get")).end().status == 200)
    #expect(delegate.notes.lines == [NSURLAuthenticationMethodServerTrust])
    // A login is no matter of the session.
    _ = await manager.request(.GET, server.url("/basic-auth/user/password")).end()
    #expect(Set(delegate.notes.lines) == [NSURLAuthenticationMethodServerTrust])
  }

  @Test func challengeThatTheSubclassPassesOnIsLeftToThePolicies() async throws {
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
    let accepted = await Manager.lone(delegate: Passing(), policies: policies)
      .request(.GET, server.url("/get")).end()
    #expect(accepted.status == 200)
    #expect(await Manager.lone(delegate: Passing()).request(.GET, server.url("/get")).end().status == nil)
    let closing = Passing()
    closing.sessionDidReceiveChallenge = { _, _ in (.cancelAuthenticationChallenge, nil) }
    let closed = await Manager.lone(delegate: closing, policies: policies).request(.GET, server.url("/get"))
      .end()
    #expect(closed.fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
  }

  @Test func closureForTasksAnswersForServersWhereThereIsNoneForSessions() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let delegate = Manager.SessionDelegate()
    delegate.taskDidReceiveChallenge = { _, _, challenge in
      challenge.protectionSpace.serverTrust.map { (.useCredential, URLCredential(trust: $0)) }
        ?? (.performDefaultHandling, nil)
    }
    let manager = Manager.lone(delegate: delegate)
    #expect(await manager.request(.GET, server.url("/get")).end().status == 200)
  }

  @Test func methodsThatNobodyCallsReachTheirClosures() throws {
    let delegate = Accepting()
    delegate.sessionDidFinishEventsForBackgroundURLSession = { [notes = delegate.notes] _ in
      notes.add("closure")
    }
    let manager = Manager.lone(delegate: delegate)
    delegate.urlSessionDidFinishEvents(forBackgroundURLSession: manager.session)
    #expect(delegate.notes.lines == ["events", "closure"])
  }
}
