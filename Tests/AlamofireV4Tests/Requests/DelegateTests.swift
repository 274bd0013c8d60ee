import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Delegates", .timeLimit(.minutes(5))) struct DelegateTests {
  private let server: HTTPTestServer
  private let manager = SessionManager.solitary()

  init() throws { server = try HTTPTestServer() }

  @Test func aClosureDecidesAboutRedirects() async {
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

  @Test func aSubclassIsCalledAndSuperDoesTheRest() async {
    let delegate = LoggingSessionDelegate()
    let manager = SessionManager.solitary(delegate: delegate)
    let response = await manager.request(server.url("/redirect/2")).ended()
    #expect(response.response?.statusCode == 200 && delegate.seen.count == 2)
  }

  @Test func theClosuresOfADataRequestAreCalledInOrder() async {
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

  @Test func completionIsToldOnceAlsoAfterARetry() async {
    let seen = Notes<Int>()
    manager.delegate.taskDidComplete = { _, task, _ in
      seen.add((task.response as? HTTPURLResponse)?.statusCode ?? 0)
    }
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(503), .ok)
    _ = await manager.request(server.url("/")).validate().ended()
    #expect(seen.all == [200])
  }

  @Test func completionIsToldTheErrorThatHandlersGet() async {
    let seen = Notes<String>()
    func note(_ error: (any Error)?) -> String {
      let code = (error as? URLError)?.code.rawValue
      return (error as? AFError)?.responseCode.map { "AFError \($0)" } ?? code.map { "URLError \($0)" }
        ?? "\(error as Any)"
    }
    manager.delegate.taskDidComplete = { _, _, error in seen.add(note(error)) }
    // So that checks are there in time.
    manager.startRequestsImmediately = false
    func data(_ url: String) async -> String {
      let request = manager.request(url).validate()
      request.resume()
      return note(await request.ended().error)
    }
    var got = [await data(server.url("/status/404")), await data("http://127.0.0.1:1/")]
    let download = manager.download(server.url("/status/403")).validate()
    download.resume()
    got.append(note(await download.ended().error))
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(500), .status(503))
    got.append(await data(server.url("/")))
    #expect(got == ["AFError 404", "URLError -1004", "AFError 403", "AFError 503"])
    #expect(seen.all == got)
  }

  @Test func aTaskLeadsToNothingWhenItsRequestIsOver() async {
    let found = Notes<Bool>()
    let delegate = manager.delegate
    delegate.taskDidComplete = { [weak delegate] _, task, _ in found.add(delegate?[task] != nil) }
    let (data, download) = (manager.request(server.url("/get")), manager.download(server.url("/get")))
    _ = await data.ended()
    _ = await download.ended()
    for request in [data, download] as [Request] {
      found.add(request.task != nil)
      if let task = request.task { found.add(delegate[task] != nil) }
    }
    #expect(found.all == [true, true, true, false, true, false])
  }

  @Test func aTaskLeadsToItsRequest() async {
    let found = Notes<Bool>()
    let (first, second) = (manager.request(server.url("/get?1")), manager.request(server.url("/get?2")))
    let delegate = manager.delegate
    if let task = second.task { found.add(delegate[task] === second) }
    if let task = first.task { found.add(delegate[task] === first) }
    _ = await (first.ended(), second.ended())
    #expect(found.all == [true, true])
    let other = SessionManager.solitary().request(server.url("/get?3"))
    #expect(other.task.map { delegate[$0] == nil } == true)
  }

  @Test func aClosureAnswersChallenges() async {
    manager.delegate.taskDidReceiveChallenge = { _, _, challenge in
      #expect(challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
      return (.useCredential, URLCredential(user: "user", password: "pw", persistence: .none))
    }
    let response = await manager.request(server.url("/basic-auth/user/pw")).ended()
    #expect(response.response?.statusCode == 200)
  }

  @Test func aClosureBringsTheStreamOfARetry() async {
    manager.delegate.taskNeedNewBodyStream = { _, _ in InputStream(data: Data("again".utf8)) }
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(503), .ok)
    let stream = InputStream(data: Data("first".utf8))
    let response = await manager.upload(stream, to: server.url("/")).validate().ended()
    #expect(response.error == nil)
    #expect(server.recordedRequests.map { String(decoding: $0.body, as: UTF8.self) } == ["again", "again"])
  }

  @Test func theClosuresOfADownloadAreCalled() async throws {
    let folder = try Folder()
    let (written, places) = (Notes<Int64>(), Notes<URL>())
    manager.delegate.downloadTaskDidWriteData = { _, _, _, total, _ in written.add(total) }
    manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, file in places.add(file) }
    let target = folder.file("a")
    let response = await manager.download(server.url("/bytes/50")) { _, _ in (target, []) }.ended()
    #expect(response.error == nil && written.all.last == 50 && places.all == [response.temporaryURL])
  }

  @Test func whatTheDelegateIsToldReachesTheRequestAsWell() async throws {
    let (told, reached) = (Notes<String>(), Notes<String>())
    manager.delegate.dataTaskDidReceiveData = { _, _, data in told.add("data \(data.count)") }
    manager.delegate.downloadTaskDidWriteData = { _, _, _, total, _ in told.add("written \(total)") }
    manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, _ in told.add("file") }
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
    #expect(told.all == ["data 10", "written 20", "file"] && reached.all == ["data 10", "written 20"])
    #expect(try Data(contentsOf: target).count == 20)
  }

  @Test func aManagerStandsBesideASessionWithItsDelegate() async throws {
    let delegate = SessionDelegate()
    let session = URLSession(configuration: .solitary, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    #expect(SessionManager(session: session, delegate: SessionDelegate()) == nil)
    let manager = try #require(SessionManager(session: session, delegate: delegate))
    #expect(manager.session === session && manager.delegate === delegate)
    #expect(await manager.request(server.url("/get")).ended().response?.statusCode == 200)
  }

  @Test func certificatesAreShownToTheClosureOfTheSessionAndRefusalIsACancellation() async throws {
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
      configuration: .solitary,
      serverTrustPolicyManager: ServerTrustPolicyManager(policies: [
        "localhost": .customEvaluation { _, host in host != "localhost" }
      ]))
    let refused = await refusing.request(secure.url("/get")).ended()
    #expect((refused.error as? URLError)?.code == .cancelled)
  }

  @Test func requestsAreHeldUpForNoClosureThatNobodyHasSet() {
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
    // Whatever it has overridden.
    #expect(LoggingSessionDelegate().wantedEvents == .all)
  }
}
