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

  /// Overrides the methods that take a `URLRequestConvertible`.
  private class Signing: Manager, @unchecked Sendable {
    let notes = Notes()

    private func signed(_ convertible: any URLRequestConvertible, _ name: String) -> NSMutableURLRequest {
      notes.add(name)
      let request = convertible.URLRequest
      request.setValue("signed", forHTTPHeaderField: "X-Signature")
      return request
    }

    override func request(_ URLRequest: any URLRequestConvertible) -> Request {
      super.request(signed(URLRequest, "request"))
    }

    override func download(
      _ URLRequest: any URLRequestConvertible, destination: @escaping Request.DownloadFileDestination
    ) -> Request {
      super.download(signed(URLRequest, "download"), destination: destination)
    }

    override func upload(_ URLRequest: any URLRequestConvertible, file: URL) -> Request {
      super.upload(signed(URLRequest, "file"), file: file)
    }

    override func upload(_ URLRequest: any URLRequestConvertible, data: Data) -> Request {
      super.upload(signed(URLRequest, "data"), data: data)
    }

    override func upload(_ URLRequest: any URLRequestConvertible, stream: InputStream) -> Request {
      super.upload(signed(URLRequest, "stream"), stream: stream)
    }

    override func upload(
      _ URLRequest: any URLRequestConvertible, multipartFormData: @escaping (MultipartFormData) -> Void,
      encodingMemoryThreshold: UInt64, encodingCompletion: ((MultipartFormDataEncodingResult) -> Void)?
    ) {
      super.upload(
        signed(URLRequest, "form"), multipartFormData: multipartFormData,
        encodingMemoryThreshold: encodingMemoryThreshold, encodingCompletion: encodingCompletion)
    }
  }

  @Test("A method that takes a URL calls the overridden method") func overriddenFactories() async throws {
    let server = try HTTPTestServer()
    let manager = Signing(configuration: .isolated)
    let (url, folder) = (server.url("/upload-sink"), try Folder())
    let target = try folder.file("target")
    let requests = [
      manager.request(.GET, server.url("/get"), parameters: ["a": 1]),
      manager.upload(.POST, url, file: try folder.file("body", "body")),
      manager.upload(.POST, url, data: Data("body".utf8)),
      manager.upload(.POST, url, stream: InputStream(data: Data("body".utf8))),
      manager.download(.GET, server.url("/bytes/20")) { _, _ in target },
    ]
    for request in requests {
      let result = await request.end()
      #expect(result.status == 200 && result.request?.value(forHTTPHeaderField: "X-Signature") == "signed")
    }
    #expect(manager.notes.lines == ["request", "file", "data", "stream", "download"])
    let upload: UncheckedBox<Request?> = await withCheckedContinuation { continuation in
      manager.upload(.POST, url, multipartFormData: { $0.appendBodyPart(data: Data("v".utf8), name: "k") }) {
        guard case .Success(let request, _, _) = $0 else {
          return continuation.resume(returning: UncheckedBox(value: nil))
        }
        continuation.resume(returning: UncheckedBox(value: request))
      }
    }
    let sent = await upload.value?.end().request
    #expect(sent?.value(forHTTPHeaderField: "X-Signature") == "signed")
    #expect(manager.notes.lines.suffix(2) == ["form", "data"])
    #expect(await manager.request(.GET, "").end().fault == "NSURLErrorDomain \(NSURLErrorBadURL)")
    #expect(manager.notes.lines.count == 7, "an invalid URL makes no request")
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
