import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Scenarios
import Testing

@Suite(.timeLimit(.minutes(5))) struct ManagerTests {
  @Test("The default fields match the generation") func defaultFields() async throws {
    let fields = Manager.defaultHTTPHeaders
    #expect(fields["Accept-Encoding"] == "gzip;q=1.0, compress;q=0.5")
    #expect(fields["Accept-Language"]?.isEmpty == false)
    #expect(fields["User-Agent"]?.contains("Alamofire") == true)
    let server = try HTTPTestServer()
    let configuration = URLSessionConfiguration.isolated
    configuration.httpAdditionalHeaders = fields
    let manager = Manager(configuration: configuration)
    let text = await manager.request(.GET, server.url("/gzip")).outcome {
      $0.responseJSON(completionHandler: $1)
    }
    #expect(text.result.isSuccess)
    let sent = try await server.takeRequest()
    #expect(sent.header("Accept-Encoding") == "gzip;q=1.0, compress;q=0.5")
    #expect(sent.header("User-Agent") == fields["User-Agent"])
  }

  @Test("The shared manager has the default fields") func sharedManager() {
    let manager = Manager(configuration: Manager.sharedInstance.session.configuration)
    #expect(manager.startRequestsImmediately)
    let fields = Alamofire.Manager.sharedInstance.session.configuration.httpAdditionalHeaders
    #expect(fields?["User-Agent"] != nil)
  }

  @Test("Fields of the request have priority over the configuration's") func priority() async throws {
    let server = try HTTPTestServer()
    let configuration = URLSessionConfiguration.isolated
    configuration.httpAdditionalHeaders = ["X-A": "configuration", "X-B": "configuration"]
    let manager = Manager(configuration: configuration)
    #expect(await manager.request(.GET, server.url("/get"), headers: ["X-A": "request"]).end().status == 200)
    let sent = try await server.takeRequest()
    #expect(sent.header("X-A") == "request")
    #expect(sent.header("X-B") == "configuration")
  }

  @Test("A manager of a given session requires its delegate") func givenSession() async throws {
    let server = try HTTPTestServer()
    let delegate = Manager.SessionDelegate()
    let session = URLSession(configuration: .isolated, delegate: delegate, delegateQueue: nil)
    #expect(Manager(session: session, delegate: Manager.SessionDelegate()) == nil)
    let manager = try #require(Manager(session: session, delegate: delegate))
    #expect(manager.session === session)
    #expect(await manager.request(.GET, server.url("/get")).end().status == 200)
  }

  @Test("A request has its session and does not retain the manager") func session() async throws {
    let server = try HTTPTestServer()
    let (notes, ends) = (Notes(), Notes())
    let delegate = Manager.SessionDelegate()
    delegate.taskDidComplete = { session, _, _ in notes.add("\(ObjectIdentifier(session))") }
    delegate.sessionDidBecomeInvalidWithError = { _, _ in ends.add("invalid") }
    let manager = Mutex<Manager?>(Manager(configuration: .isolated, delegate: delegate))
    let (request, stream, session) = try manager.withLock {
      let manager = try #require($0)
      return (
        manager.request(.GET, server.url("/get")), manager.stream(hostName: "127.0.0.1", port: server.port),
        manager.session
      )
    }
    #expect(request.session === session)
    #expect(stream.session === session)
    #expect(await request.end().status == 200)
    #expect(await notes.wait(for: 1).first == "\(ObjectIdentifier(session))")
    manager.withLock { $0 = nil }
    #expect(await ends.wait(for: 1) == ["invalid"])
    #expect(request.session === session)
  }

  @Test("A subclass overrides the functions") func subclass() async throws {
    // Unchecked, as its superclass is: it has no properties of its own.
    class Signing: Manager, @unchecked Sendable {
      override func request(
        _ method: Method, _ URLString: any URLStringConvertible, parameters: [String: Any]?,
        encoding: ParameterEncoding, headers: [String: String]?
      ) -> Request {
        super.request(
          method, URLString, parameters: parameters, encoding: encoding, headers: ["X-Signed": "1"])
      }
    }
    let server = try HTTPTestServer()
    let manager: Manager = Signing(configuration: .isolated)
    #expect(await manager.request(.GET, server.url("/get")).end().status == 200)
    #expect(try await server.takeRequest().header("X-Signed") == "1")
  }

  @Test("The delegate is called on the queue of its manager") func rootQueue() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    let delegates = (0..<2).map { _ in Manager.SessionDelegate() }
    for delegate in delegates { delegate.taskDidComplete = { _, _, _ in notes.add(queueLabel()) } }
    let session = URLSession(configuration: .isolated, delegate: delegates[1], delegateQueue: nil)
    let managers = [
      Manager(configuration: .isolated, delegate: delegates[0]),
      try #require(Manager(session: session, delegate: delegates[1])),
    ]
    for manager in managers { #expect(await manager.request(.GET, server.url("/get")).end().status == 200) }
    #expect(await notes.wait(for: 2) == ["com.alamofire.manager", "com.alamofire.manager"])
  }

  @Test("A background download that ended with its manager is not sent by the next manager")
  func releasedBackgroundManager() async throws {
    let server = try HTTPTestServer()
    let identifier = UUID().uuidString
    let configuration = URLSessionConfiguration.backgroundSessionConfigurationWithIdentifier(identifier)
    configuration.urlCache = nil
    let file = try Folder().file("it")
    server.enqueue(.stall)
    var manager: Manager? = Manager(configuration: configuration)
    let download = try #require(manager?.download(.GET, server.url("/bytes/10")) { _, _ in file })
    _ = try await server.takeRequest()
    manager = nil
    #expect(await download.end().fault == "NSURLErrorDomain -999")
    #expect(!hasJournal(identifier))
    let next = Manager(configuration: configuration)
    #expect(await next.request(.GET, server.url("/get")).end().status == 200)
    #expect(server.recordedRequests.map(\.path) == ["/bytes/10", "/get"])
  }

  @Test("Two managers can have one background identifier, by both names, and upload streams")
  func twoBackgroundManagers() async throws {
    let server = try HTTPTestServer()
    let (folder, identifier) = (try Folder(), UUID().uuidString)
    let managers = [
      URLSessionConfiguration.backgroundSessionConfigurationWithIdentifier(identifier),
      URLSessionConfiguration.background(withIdentifier: identifier),
    ].map { configuration in
      configuration.urlCache = nil
      return Manager(configuration: configuration)
    }
    for (index, manager) in managers.enumerated() {
      let file = try folder.file("\(index)")
      let download = await manager.download(.GET, server.url("/bytes/10")) { _, _ in file }.end()
      #expect(download.status == 200 && download.error == nil, "manager \(index)")
      let stream = InputStream(data: Data("body".utf8))
      let upload = await manager.upload(.POST, server.url("/post"), stream: stream).end()
      #expect(upload.status == 200 && upload.error == nil, "manager \(index)")
    }
    #expect(!hasJournal(identifier))
  }

  @Test("The handler of background events is stored, and called unless the delegate has a closure")
  func backgroundHandler() async {
    let manager = Manager(configuration: .isolated)
    let notes = Notes()
    manager.backgroundCompletionHandler = { notes.add("called") }
    manager.backgroundCompletionHandler?()
    #expect(notes.lines == ["called"])
    manager.delegate.urlSessionDidFinishEvents(forBackgroundURLSession: manager.session)
    await withCheckedContinuation { continuation in DispatchQueue.main.async { continuation.resume() } }
    #expect(notes.lines == ["called", "called"])
    manager.delegate.sessionDidFinishEventsForBackgroundURLSession = { _ in notes.add("closure") }
    manager.delegate.urlSessionDidFinishEvents(forBackgroundURLSession: manager.session)
    #expect(notes.lines == ["called", "called", "closure"])
    manager.backgroundCompletionHandler = nil
    #expect(manager.backgroundCompletionHandler == nil)
  }

  @Test("What is replaced may use the manager when it is released") func replaced() async {
    await #expect(processExitsWith: .success) {
      let manager = Manager(configuration: .isolated)
      #expect(
        ReleaseProbe.isReleased { probe in
          manager.backgroundCompletionHandler = probe.map { probe in { probe.hold() } }
        })
      #expect(
        ReleaseProbe.isReleased { probe in
          manager.delegate.taskDidComplete = probe.map { probe in { _, _, _ in probe.hold() } }
        })
      let reachability = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
      #expect(
        ReleaseProbe.isReleased { probe in
          reachability.listener = probe.map { probe in { _ in probe.hold() } }
        })
    }
  }
}
