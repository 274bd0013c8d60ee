import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Delegates", .timeLimit(.minutes(5))) struct DelegateTests {
  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  @Test("A closure decides about redirects") func redirects() async {
    let seen = Notes<String>()
    manager.delegate.taskWillPerformHTTPRedirection = { _, task, response, request in
      seen.add("\(response.statusCode) \(task.originalRequest?.url?.path ?? "") \(request.url?.path ?? "")")
      return nil
    }
    let response = await manager.request(server.url("/redirect/1")).ended()
    #expect(response.response?.statusCode == 302 && server.requestCount == 1)
    #expect(seen.all == ["302 /redirect/1 /get"])
    manager.delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, request, completion in
      completion(request)
    }
    #expect(await manager.request(server.url("/redirect/1")).ended().response?.statusCode == 200)
    #expect(seen.count == 1)
  }

  private class LoggingSessionDelegate: SessionDelegate, @unchecked Sendable {
    let seen = Notes<String>()

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
      seen.add(request.url?.path ?? "")
      super.urlSession(
        session, task: task, willPerformHTTPRedirection: response, newRequest: request,
        completionHandler: completionHandler)
    }
  }

  @Test("A subclass is called and super performs the default") func subclass() async {
    let delegate = LoggingSessionDelegate()
    let manager = SessionManager.isolated(delegate: delegate)
    let response = await manager.request(server.url("/redirect/2")).ended()
    #expect(response.response?.statusCode == 200 && delegate.seen.count == 2)
  }

  @Test("The closures of a data request are called in order") func dataRequest() async {
    let seen = Notes<String>()
    let delegate = manager.delegate
    delegate.dataTaskDidReceiveResponse = { _, _, response in
      seen.add("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
      return .allow
    }
    delegate.dataTaskDidReceiveData = { _, _, data in seen.add("data \(data.count)") }
    delegate.taskDidComplete = { _, task, error in
      seen.add("complete \(task.response != nil) \(error == nil)")
    }
    server.enqueue(.bytes(10))
    let response = await manager.request(server.url("/")).ended()
    #expect(seen.all == ["response 200", "data 10", "complete true true"])
    #expect(response.data?.count == 10)
  }

  @Test("The completion is reported once, also after a retry") func completion() async {
    let seen = Notes<Int>()
    manager.delegate.taskDidComplete = { _, task, _ in
      seen.add((task.response as? HTTPURLResponse)?.statusCode ?? 0)
    }
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(503), .ok)
    _ = await manager.request(server.url("/")).validate().ended()
    #expect(seen.all == [200])
  }

  @Test("The completion receives the error of the handlers") func errorOfCompletion() async {
    let seen = Notes<String>()
    func note(_ error: (any Error)?) -> String {
      let code = (error as? URLError)?.code.rawValue
      return (error as? AFError)?.responseCode.map { "AFError \($0)" } ?? code.map { "URLError \($0)" }
        ?? "\(error as Any)"
    }
    manager.delegate.taskDidComplete = { _, _, error in seen.add(note(error)) }
    // So that validators are added before the response.
    manager.startRequestsImmediately = false
    func data(_ url: String) async -> String {
      let request = manager.request(url).validate()
      request.resume()
      return note(await request.ended().error)
    }
    var got = [await data(server.url("/status/404")), await data("http://127.0.0.1:1/")]
    let download = manager.download(server.url("/status/403")).validate()
    download.resume()
    got.append(note(await download.endedWithoutFile().error))
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(500), .status(503))
    got.append(await data(server.url("/")))
    #expect(got == ["AFError 404", "URLError -1004", "AFError 403", "AFError 503"])
    #expect(seen.all == got)
  }

  @Test("A task of a finished request has no request") func finishedTask() async {
    let found = Notes<Bool>()
    let delegate = manager.delegate
    delegate.taskDidComplete = { [weak delegate] _, task, _ in found.add(delegate?[task] != nil) }
    let (data, download) = (manager.request(server.url("/get")), manager.download(server.url("/get")))
    _ = await data.ended()
    _ = await download.endedWithoutFile()
    for request in [data, download] as [Request] {
      found.add(request.task != nil)
      if let task = request.task { found.add(delegate[task] != nil) }
    }
    #expect(found.all == [true, true, true, false, true, false])
  }

  @Test("A task returns its request") func runningTask() async {
    let found = Notes<Bool>()
    let (first, second) = (manager.request(server.url("/get?1")), manager.request(server.url("/get?2")))
    let delegate = manager.delegate
    if let task = second.task { found.add(delegate[task] === second) }
    if let task = first.task { found.add(delegate[task] === first) }
    _ = await (first.ended(), second.ended())
    #expect(found.all == [true, true])
    let other = SessionManager.isolated().request(server.url("/get?3"))
    #expect(other.task.map { delegate[$0] == nil } == true)
  }

  @Test("A closure answers challenges") func challenges() async {
    manager.delegate.taskDidReceiveChallenge = { _, _, challenge in
      #expect(challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
      return (.useCredential, URLCredential(user: "user", password: "pw", persistence: .none))
    }
    let response = await manager.request(server.url("/basic-auth/user/pw")).ended()
    #expect(response.response?.statusCode == 200)
  }

  @Test("A closure provides the stream of a retry") func streamOfRetry() async {
    manager.delegate.taskNeedNewBodyStream = { _, _ in InputStream(data: Data("again".utf8)) }
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(503), .ok)
    let stream = InputStream(data: Data("first".utf8))
    let response = await manager.upload(stream, to: server.url("/")).validate().ended()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map { String(decoding: $0.body, as: UTF8.self) } == ["again", "again"])
  }

  @Test("The closures of a download are called") func download() async throws {
    let folder = try Folder()
    let (written, places, events) = (Notes<Int64>(), Notes<URL>(), Notes<String>())
    manager.delegate.downloadTaskDidWriteData = { _, _, _, total, _ in written.add(total) }
    manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, file in
      places.add(file)
      events.add("file")
    }
    manager.delegate.taskDidComplete = { _, _, _ in events.add("end") }
    let target = folder.file("a")
    let response = await manager.download(server.url("/bytes/50")) { _, _ in (target, []) }.ended()
    #expect(response.error == nil && written.all.last == 50 && places.all == [response.temporaryURL])
    #expect(events.all == ["file", "end"])
  }

  @Test("Calls of the delegate are forwarded to the request") func forwarding() async throws {
    let (reported, reached) = (Notes<String>(), Notes<String>())
    manager.delegate.dataTaskDidReceiveData = { _, _, data in reported.add("data \(data.count)") }
    manager.delegate.downloadTaskDidWriteData = { _, _, _, total, _ in reported.add("written \(total)") }
    manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, _ in reported.add("file") }
    manager.startRequestsImmediately = false
    let stream = manager.request(server.url("/bytes/10")).stream { reached.add("data \($0.count)") }
    stream.resume()
    #expect(await stream.ended().data == nil)
    let (folder, queue) = (try Folder(), DispatchQueue(label: "progress"))
    let target = folder.file("a")
    let download = manager.download(server.url("/bytes/20")) { _, _ in (target, []) }
      .downloadProgress(queue: queue) { reached.add("written \($0.completedUnitCount)") }
    download.resume()
    #expect(await download.ended().destinationURL == target)
    queue.sync {}
    #expect(reported.all == ["data 10", "written 20", "file"] && reached.all == ["data 10", "written 20"])
    #expect(try Data(contentsOf: target).count == 20)
  }

  @Test("A manager uses a given session with its delegate") func givenSession() async throws {
    let delegate = SessionDelegate()
    let session = URLSession(configuration: .isolated, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    #expect(SessionManager(session: session, delegate: SessionDelegate()) == nil)
    let manager = try #require(SessionManager(session: session, delegate: delegate))
    #expect(manager.session === session && manager.delegate === delegate)
    #expect(await manager.request(server.url("/get")).ended().response?.statusCode == 200)
  }

  @Test("The closure of the session receives certificates, and a refusal cancels the request")
  func certificates() async throws {
    let secure = try HTTPTestServer(.tls(.localhost))
    let methods = Notes<String>()
    manager.delegate.sessionDidReceiveChallenge = { _, challenge in
      methods.add(challenge.protectionSpace.authenticationMethod)
      guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
      return (.useCredential, URLCredential(trust: trust))
    }
    #expect(await manager.request(secure.url("/get")).ended().response?.statusCode == 200)
    #expect(methods.all.contains(NSURLAuthenticationMethodServerTrust))
    let refusing = SessionManager(
      configuration: .isolated,
      serverTrustPolicyManager: ServerTrustPolicyManager(policies: [
        "localhost": .customEvaluation { _, host in host != "localhost" }
      ]))
    let refused = await refusing.request(secure.url("/get")).ended()
    #expect((refused.error as? URLError)?.code == .cancelled)
  }

  @Test("Requests do not wait for closures that are not set") func missingClosures() {
    func wanted(_ set: (SessionDelegate) -> Void) -> SessionDelegate.Events {
      let delegate = SessionDelegate()
      set(delegate)
      return delegate.wantedEvents
    }
    let few: SessionDelegate.Events = .authentication
    #expect(wanted { _ in } == few)
    #expect(
      wanted { $0.sessionDidReceiveChallenge = { _, _ in (.performDefaultHandling, nil) } }
        == few.union(.trust))
    #expect(
      wanted {
        $0.taskDidReceiveChallengeWithCompletion = { _, _, _, done in done(.performDefaultHandling, nil) }
      }
        == few.union([.trust, .authentication]))
    #expect(wanted { $0.taskWillPerformHTTPRedirection = { $3 } } == few.union(.redirects))
    #expect(wanted { $0.dataTaskWillCacheResponse = { $2 } } == few.union(.caching))
    let seeing: [(SessionDelegate) -> Void] = [
      { $0.taskNeedNewBodyStream = { _, _ in nil } }, { $0.taskDidSendBodyData = { _, _, _, _, _ in } },
      { $0.dataTaskDidReceiveResponse = { _, _, _ in .allow } },
      { $0.dataTaskDidReceiveData = { _, _, _ in } },
      { $0.downloadTaskDidFinishDownloadingToURL = { _, _, _ in } },
      { $0.downloadTaskDidWriteData = { _, _, _, _, _ in } },
      { $0.downloadTaskDidResumeAtOffset = { _, _, _, _ in } },
    ]
    for set in seeing { #expect(wanted(set) == few.union(.transfers)) }
    #expect(
      wanted {
        $0.dataTaskDidReceiveData = { _, _, _ in }
        $0.dataTaskDidReceiveData = nil
      } == few)
    // A subclass requests all events, whichever methods it overrides.
    #expect(LoggingSessionDelegate().wantedEvents == .all)
  }
}
