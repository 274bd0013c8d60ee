import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("The delegate of a session", .timeLimit(.minutes(5)))
struct SessionDelegateTests {
  /// A delegate with given decisions that records its calls.
  private final class Spy: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<String>()
    let follows: Bool
    let disposition: URLSession.ResponseDisposition

    init(follows: Bool = true, disposition: URLSession.ResponseDisposition = .allow) {
      self.follows = follows
      self.disposition = disposition
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
      calls.add("redirect \(request.url?.path ?? "")")
      if follows {
        super.urlSession(
          session, task: task, willPerformHTTPRedirection: response, newRequest: request,
          completionHandler: completionHandler)
      } else {
        completionHandler(nil)
      }
    }

    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
      calls.add("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
      completionHandler(disposition)
    }

    override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      calls.add("data \(data.count)")
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: TaskMetrics
    ) {
      calls.add("metrics")
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      calls.add("complete \((error as? URLError)?.code.rawValue ?? 0)")
    }

    override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
      calls.add("invalid")
    }

    override func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
      calls.add("downloaded \(FileManager.default.fileExists(atPath: location.path))")
    }
  }

  private func session(_ fake: FakeTransport, _ delegate: SessionDelegate) -> Session {
    Session.retained(fake: fake, observers: SessionObservers(delegate: delegate))
  }

  @Test("Overridden methods are called in the order of events")
  func order() async {
    let spy = Spy()
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let response = await session(fake, spy).request("http://a.test/").end()
    #expect(response.error == nil)
    #expect(spy.calls.values == ["redirect /next", "response 200", "data 2", "metrics", "complete 0"])
  }

  @Test("The file of a download is shown before the end of its task, with and without a destination")
  func downloads() async throws {
    let folder = try TemporaryFolder()
    let targets = [nil, folder["file"], folder["missing"].appendingPathComponent("file")]
    for target in targets {
      let spy = Spy()
      let destination = target.map { target -> DownloadRequest.Destination in { _, _ in (target, []) } }
      let response = await session(FakeTransport(), spy).download("http://a.test/", to: destination).ended()
      response.removeFile()
      #expect(spy.calls.values == ["downloaded true", "metrics", "complete 0"])
      #expect(response.error?.isDownloadedFileMoveError ?? false == (target == targets.last))
    }
  }

  @Test("A redirect that the delegate refuses is the response, without its body")
  func refusal() async {
    let fake = FakeTransport(.status(302, "moved", headers: [("Location", "/next")]))
    let response = await session(fake, Spy(follows: false)).request("http://a.test/").end()
    #expect(response.error == nil)
    #expect(response.response?.statusCode == 302)
    #expect(response.data == nil)
    #expect(fake.requests.count == 1)
  }

  @Test("A response that the delegate cancels ends the request as cancelled")
  func disposition() async throws {
    let server = try HTTPTestServer()
    let session = Session(delegate: Spy(disposition: .cancel))
    let response = await session.request(server.url("/drip?numbytes=100000&duration=20&delay=0")).end()
    #expect(response.error?.isExplicitlyCancelledError == true)
  }

  /// A delegate that leaves the decisions about responses to the test.
  private final class Undecided: SessionDelegate, @unchecked Sendable {
    // Unchecked: used on the queue of the session only.
    private var decisions: [(URLSession.ResponseDisposition) -> Void] = []

    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) { decisions.append(completionHandler) }

    /// Cancels the response that came first. Returns the number of responses so far.
    func cancelFirst() -> Int {
      decisions.first?(.cancel)
      return decisions.count
    }
  }

  @Test("A delegate that cancels the response of an earlier attempt does not cancel the retry")
  func lateDisposition() async {
    let (reached, gate) = (Latch(), Latch())
    let broken = FakeReply(
      chunks: [Data("lost".utf8)], failure: TransportFailure(.connectionLost, "A failure of the script."))
    let undecided = Undecided()
    let session = Session.retained(
      fake: FakeTransport(broken, .text("ok").held(by: gate, reached: reached)),
      interceptor: SpyInterceptor(retries: 1), observers: SessionObservers(delegate: undecided))
    async let response = session.request("http://a.test/").end()
    await reached.wait()
    let count = session.rootQueue.sync { undecided.cancelFirst() }
    #expect(count == 1)
    gate.open()
    #expect(await response.error == nil)
    #expect(await response.data == Data("ok".utf8))
  }

  @Test(
    "The delegate is called for the stream of an upload and can return another",
    arguments: Streams.Kind.allCases)
  func bodyStream(kind: Streams.Kind) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let spy = EventSpy()
    let session = Session(delegate: Streams(kind), eventMonitors: [spy])
    let stream = InputStream(data: Data("mine".utf8))
    let request = session.upload(stream, to: server.url("/"))
    let error = await request.end().error
    guard kind != .none else {
      #expect((error?.underlyingError as? URLError)?.code == .requestBodyStreamExhausted)
      #expect(server.requestCount == 0)
      return
    }
    #expect(error == nil)
    #expect(Data(try await server.takeRequest().body) == Data((kind == .other ? "other" : "mine").utf8))
    let provided = spy.reported.filter { $0 == "taskNeedsNewBodyStream" || $0 == "didProvideInputStream" }
    #expect(provided == (kind == .base ? ["taskNeedsNewBodyStream", "didProvideInputStream"] : []))
  }

  final class Streams: SessionDelegate, @unchecked Sendable {
    enum Kind: CaseIterable { case base, other, none, forgotten }
    let kind: Kind

    init(_ kind: Kind) {
      self.kind = kind
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
      switch kind {
      case .base: super.urlSession(session, task: task, needNewBodyStream: completionHandler)
      case .other: completionHandler(InputStream(data: Data("other".utf8)))
      case .none: completionHandler(nil)
      case .forgotten: break
      }
    }
  }

  @Test("The delegate receives a download before it is moved")
  func download() async {
    let spy = Spy()
    let request = session(FakeTransport(), spy).download("http://a.test/")
    let response = await request.serializingDownloadedFileURL().response
    if let file = response.fileURL { try? FileManager.default.removeItem(at: file) }
    #expect(spy.calls.values.contains("downloaded true"))
  }

  @Test("Invalidating the session object of the delegate ends its requests")
  func invalidation() async {
    let (reached, gate) = (Latch(), Latch())
    let spy = Spy()
    let session = session(FakeTransport(.text("ok").held(by: gate, reached: reached)), spy)
    async let response = session.request("http://a.test/").end()
    await reached.wait()
    session.session.invalidateAndCancel()
    gate.open()
    guard case .sessionInvalidated = await response.error else {
      Issue.record("\(String(describing: await response.error))")
      return
    }
    guard case .sessionInvalidated = await session.request("http://a.test/").end().error else {
      Issue.record("a request of an invalid session was sent")
      return
    }
    #expect(await spy.calls.wait(for: 1).contains("invalid"))
  }

  @Test("The session object of the delegate lists the running tasks")
  func tasks() async throws {
    let (reached, gate) = (Latch(), Latch())
    let session = session(FakeTransport(.text("ok").held(by: gate, reached: reached)), SessionDelegate())
    let request = session.request("http://a.test/")
    async let response = request.end()
    await reached.wait()
    for attempt in 1...2 {
      let running = await withCheckedContinuation { continuation in
        session.session.getAllTasks { continuation.resume(returning: $0) }
      }
      #expect(running.count == 1 && running.first === request.task, "attempt \(attempt)")
    }
    #expect(session.session.delegate === session.delegate)
    session.session.finishTasksAndInvalidate()
    let refusal = await session.request("http://a.test/").end().error
    gate.open()
    #expect(await response.error == nil, "the running request ends as usual")
    guard case .sessionInvalidated = refusal else {
      Issue.record("a request of a session that takes no more was sent")
      return
    }
  }

  @Test("The session object of the delegate lists the running tasks by their kind")
  func tasksByKind() async throws {
    let gate = Latch()
    let (first, second, third) = (Latch(), Latch(), Latch())
    let session = session(
      FakeTransport(
        .text("ok").held(by: gate, reached: first), .text("ok").held(by: gate, reached: second),
        .text("ok").held(by: gate, reached: third)), SessionDelegate())
    let data = session.request("http://a.test/")
    async let dataEnd = data.end()
    await first.wait()
    let upload = session.upload(Data("body".utf8), to: "http://a.test/")
    async let uploadEnd = upload.end()
    await second.wait()
    let download = session.download("http://a.test/")
    async let downloadEnd = download.serializingDownloadedFileURL().response
    await third.wait()
    let counts = await withCheckedContinuation { continuation in
      session.session.getTasksWithCompletionHandler { datas, uploads, downloads in
        #expect(datas.first === data.task && uploads.first === upload.task)
        #expect(downloads.first === download.task)
        continuation.resume(returning: [datas.count, uploads.count, downloads.count])
      }
    }
    #expect(counts == [1, 1, 1])
    gate.open()
    _ = await (dataEnd, uploadEnd)
    if let file = await downloadEnd.value { try FileManager.default.removeItem(at: file) }
  }

  @Test("A session object of Foundation has the configuration")
  func lent() async throws {
    let server = try HTTPTestServer()
    let configuration = URLSessionConfiguration.default
    configuration.httpAdditionalHeaders = ["X-Lent": "yes"]
    let stock = URLSession(configuration: configuration)
    let session = Session(
      session: stock, delegate: SessionDelegate(), rootQueue: DispatchQueue(label: "root"))
    #expect(session.session === stock)
    _ = await session.request(server.url("/get")).end()
    #expect(try await server.takeRequest().headers.first { $0.name == "X-Lent" }?.value == "yes")
  }

  private final class Gatekeeper: SessionDelegate, @unchecked Sendable {
    let answers: [(URLSession.AuthChallengeDisposition, URLCredential?)]
    let calls = Recorder<String>()

    init(_ answers: (URLSession.AuthChallengeDisposition, URLCredential?)...) {
      self.answers = answers
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let space = challenge.protectionSpace
      calls.add("\(space.host) \(space.port) \(space.realm ?? "") \(challenge.previousFailureCount)")
      let answer = answers[min(challenge.previousFailureCount, answers.count - 1)]
      completionHandler(answer.0, answer.1)
    }
  }

  private static func credential(_ password: String) -> URLCredential {
    URLCredential(user: "u", password: password, persistence: .forSession)
  }

  @Test("The delegate is called again if its first credential is rejected")
  func challenge() async throws {
    let server = try HTTPTestServer()
    let delegate = Gatekeeper(
      (.useCredential, Self.credential("wrong")), (.useCredential, Self.credential("p")))
    let session = Session(delegate: delegate)
    let response = await session.request(server.url("/basic-auth/u/p")).end()
    #expect(response.response?.statusCode == 200)
    #expect(delegate.calls.count == 2)
    #expect(delegate.calls.values.last?.hasSuffix(" 1") == true)
    #expect(delegate.calls.values.first?.hasPrefix("127.0.0.1 ") == true)
  }

  @Test("A rejected challenge is the response, and a cancelled one fails the request")
  func rejection() async throws {
    let rejecting = session(FakeTransport(.challenge()), Gatekeeper((.rejectProtectionSpace, nil)))
    #expect(await rejecting.request("http://a.test/").end().response?.statusCode == 401)
    let cancelling = session(FakeTransport(.challenge()), Gatekeeper((.cancelAuthenticationChallenge, nil)))
    let error = await cancelling.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .cancelled)
  }

  /// A delegate that forwards challenges to the base class, and records its answers.
  private final class Forwarder: SessionDelegate, @unchecked Sendable {
    let answers = Recorder<URLSession.AuthChallengeDisposition>()

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      super.urlSession(session, task: task, didReceive: challenge) { [answers] disposition, credential in
        answers.add(disposition)
        completionHandler(disposition, credential)
      }
    }
  }

  @Test("The base class rejects a challenge after a credential was refused") func answersOfBaseClass() async {
    let delegate = Forwarder()
    let request = session(FakeTransport { _, _ in .challenge() }, delegate).request("http://a.test/")
    #expect(await request.authenticate(username: "u", password: "p").end().response?.statusCode == 401)
    #expect(delegate.answers.values == [.performDefaultHandling, .rejectProtectionSpace])
  }

  @Test("A credential of the request answers once, with and without observers")
  func ownCredential() async {
    let fake = FakeTransport { _, _ in .challenge() }
    let request = session(fake, SessionDelegate()).request("http://a.test/")
    let spy = EventSpy()
    request.transferMonitor(spy).authenticate(username: "u", password: "p")
    #expect(await request.end().response?.statusCode == 401)
    #expect(fake.requests.count == 2)
    #expect(spy.reported.filter { $0 == "didReceive challenge" }.count == 2)
  }
}
