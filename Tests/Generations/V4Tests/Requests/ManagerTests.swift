import AlamofireV4
import Foundation
import HTTPTestServer
import Scenarios
import Testing

@Suite("Managers and requests", .timeLimit(.minutes(5))) struct ManagerTests {
  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  @Test("Releasing a manager cancels its requests") func release() async throws {
    server.enqueue(.stall)
    var manager: SessionManager? = SessionManager.isolated()
    let request = try #require(manager?.request(server.url("/")))
    _ = try await server.takeRequest()
    weak let released = manager
    manager = nil
    #expect(released == nil)
    let response = await request.ended()
    #expect((response.error as? URLError)?.code == .cancelled)
  }

  /// Returns a manager with a background configuration and without a cache.
  private func backgroundManager(_ identifier: String) -> SessionManager {
    let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
    configuration.urlCache = nil
    return SessionManager(configuration: configuration)
  }

  @Test("A background download that ended with its manager is not sent by the next manager")
  func releasedBackgroundManager() async throws {
    let identifier = UUID().uuidString
    server.enqueue(.stall)
    var manager: SessionManager? = backgroundManager(identifier)
    let download = try #require(manager?.download(server.url("/bytes/10")))
    _ = try await server.takeRequest()
    manager = nil
    #expect((await download.endedWithoutFile().error as? URLError)?.code == .cancelled)
    #expect(!hasJournal(identifier))
    let next = await backgroundManager(identifier).kept { await $0.request(server.url("/get")).ended() }
    #expect(next.response?.statusCode == 200)
    #expect(server.recordedRequests.map(\.path) == ["/bytes/10", "/get"])
  }

  @Test(
    "A manager writes no journal for a configuration of the current generation either",
    arguments: [false, true])
  func currentBackgroundConfiguration(hasSession: Bool) async throws {
    let (identifier, delegate) = (UUID().uuidString, SessionDelegate())
    let configuration = configurationWithJournal(identifier)
    configuration.urlCache = nil
    configuration.timeoutIntervalForRequest = 7
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    let manager =
      hasSession
      ? try #require(SessionManager(session: session, delegate: delegate))
      : SessionManager(configuration: configuration, delegate: delegate)
    let response = await manager.download(server.url("/bytes/10")).endedWithoutFile()
    #expect(response.response?.statusCode == 200 && response.error == nil)
    #expect(!hasJournal(identifier))
    #expect(manager.session.configuration.identifier == identifier)
    #expect(manager.session.configuration.timeoutIntervalForRequest == 7)
  }

  @Test("Two managers can have one background identifier, and upload streams")
  func twoBackgroundManagers() async {
    let identifier = UUID().uuidString
    let managers = [backgroundManager(identifier), backgroundManager(identifier)]
    for manager in managers {
      let download = await manager.download(server.url("/bytes/10")).endedWithoutFile()
      #expect(download.response?.statusCode == 200 && download.error == nil)
      let stream = InputStream(data: Data("body".utf8))
      let upload = await manager.upload(stream, to: server.url("/post")).ended()
      #expect(upload.response?.statusCode == 200 && upload.error == nil)
    }
    #expect(!hasJournal(identifier))
  }

  @Test("A background configuration has an identifier, and otherwise the values of the default one")
  func backgroundConfiguration() throws {
    let configuration = URLSessionConfiguration.background(withIdentifier: "a")
    #expect(configuration.identifier == "a" && configuration.httpAdditionalHeaders == nil)
    #expect(configuration.urlCache === URLSessionConfiguration.default.urlCache)
    configuration.httpAdditionalHeaders = ["X-A": "1"]
    configuration.timeoutIntervalForRequest = 7
    let copy = try #require(configuration.copy() as? URLSessionConfiguration)
    #expect(copy.identifier == "a" && copy.timeoutIntervalForRequest == 7)
    #expect(copy.httpAdditionalHeaders?["X-A"] as? String == "1")
  }

  @Test("A cancelled request fails as cancelled in any state") func cancel() async throws {
    server.enqueue(.stall)
    let running = manager.request(server.url("/"))
    _ = try await server.takeRequest()
    running.cancel()
    #expect((await running.ended().error as? URLError)?.code == .cancelled)
    manager.startRequestsImmediately = false
    let waiting = manager.request(server.url("/"))
    waiting.cancel()
    #expect((await waiting.ended().error as? URLError)?.code == .cancelled)
    #expect(server.requestCount == 1)
  }

  @Test("A suspended request continues after resume") func resume() async throws {
    let gate = Gate()
    server.enqueue(.bytes(500_000).held(by: gate))
    let request = manager.request(server.url("/"))
    await gate.waitUntilReached()
    request.suspend()
    #expect(request.task?.state == .suspended)
    gate.open()
    request.resume()
    #expect(await request.ended().data?.count == 500_000)
  }

  @Test("Credentials answer challenges") func credentials() async {
    let basic = await manager.request(server.url("/basic-auth/user/pw"))
      .authenticate(user: "user", password: "pw").ended()
    #expect(basic.response?.statusCode == 200)
    let credential = URLCredential(user: "user", password: "pw", persistence: .forSession)
    let other = await SessionManager.isolated().kept { manager in
      await manager.request(server.url("/basic-auth/user/pw")).authenticate(usingCredential: credential)
        .ended()
    }
    #expect(other.response?.statusCode == 200)
    let wrong = await manager.request(server.url("/basic-auth/user/other"))
      .authenticate(user: "user", password: "pw").ended()
    #expect(wrong.response?.statusCode == 401)
    let field = Request.authorizationHeader(user: "user", password: "password")
    #expect(field?.key == "Authorization" && field?.value == "Basic dXNlcjpwYXNzd29yZA==")
  }

  @Test("Credentials that are added after the challenge are used") func lateCredentials() async {
    let request = manager.request(server.url("/basic-auth/user/pw"))
    #expect(await request.ended().response?.statusCode == 401)
    let response = await request.authenticate(user: "user", password: "pw").ended()
    #expect(response.response?.statusCode == 200 && request.retryCount == 0)
    let refused = manager.request(server.url("/basic-auth/user/other"))
    #expect(await refused.ended().response?.statusCode == 401)
    #expect(await refused.authenticate(user: "user", password: "pw").ended().response?.statusCode == 401)
    #expect(refused.delegate.error == nil)
  }

  @Test(
    "Credentials that are added after a redirect do not repeat a request that may have been performed",
    arguments: [
      (HTTPMethod.post, 401, ["POST", "GET"]), (HTTPMethod.get, 200, ["GET", "GET", "GET", "GET", "GET"]),
    ])
  func lateCredentialsAfterARedirect(method: HTTPMethod, status: Int, sent: [String]) async {
    let redirect = Reply.redirect(to: "/basic-auth/user/pw", status: 303)
    server.enqueue(redirect)
    let request = manager.request(server.url("/form"), method: method)
    #expect(await request.ended().response?.statusCode == 401)
    server.enqueue(redirect)
    let response = await request.authenticate(user: "user", password: "pw").ended()
    #expect(response.response?.statusCode == status && response.error == nil)
    #expect(server.recordedRequests.map(\.method) == sent)
  }

  /// Downloads to a file that must not exist, and adds credentials after `step`. Returns the response.
  private func downloadWithLateCredentials(
    to file: URL, after step: () throws -> Void = {}
  ) async throws -> DefaultDownloadResponse {
    let download = manager.download(server.url("/basic-auth/user/pw")) { _, _ in (file, []) }
    let refused = await download.ended()
    #expect(refused.response?.statusCode == 401 && refused.destinationURL == file && refused.error == nil)
    try step()
    return await download.authenticate(user: "user", password: "pw").ended()
  }

  @Test("A download with credentials that are added after the challenge replaces its own file")
  func lateCredentialsOfADownload() async throws {
    let folder = try Folder()
    let file = folder.file("a")
    let response = try await downloadWithLateCredentials(to: file)
    #expect(response.response?.statusCode == 200 && response.error == nil)
    #expect(response.destinationURL == file)
    #expect(try String(contentsOf: file, encoding: .utf8).contains("authenticated"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["a"])
  }

  @Test("A download with later credentials that is retried replaces its own file, too")
  func lateCredentialsAndARetry() async throws {
    let folder = try Folder()
    let file = folder.file("a")
    let retrier = ScriptedRetrier { _, count in (count < 6, 0) }
    manager.retrier = retrier
    // The core repeats some of them itself, because the connection was used before.
    let response = try await downloadWithLateCredentials(to: file) {
      server.enqueue(.reset, .reset, .reset, .reset)
    }
    #expect(retrier.calls.count > 0)
    #expect(response.response?.statusCode == 200 && response.error == nil)
    #expect(try String(contentsOf: file, encoding: .utf8).contains("authenticated"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["a"])
  }

  @Test("A download with later credentials leaves a file of the user in place")
  func lateCredentialsAndAFileOfTheUser() async throws {
    let folder = try Folder()
    let file = folder.file("a")
    let response = try await downloadWithLateCredentials(to: file) {
      try Data("own".utf8).write(to: file, options: .atomic)
    }
    #expect((response.error as? CocoaError)?.code == .fileWriteFileExists)
    #expect(try String(contentsOf: file, encoding: .utf8) == "own")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["a"])
  }

  @Test("Credentials that are added after a failed validation are used") func credentialsAfterFailure() async
  {
    let request = manager.request(server.url("/basic-auth/user/pw")).validate()
    #expect((await request.ended().error as? AFError)?.responseCode == 401)
    let response = await request.authenticate(user: "user", password: "pw").ended()
    #expect(response.response?.statusCode == 200 && response.error == nil)
    #expect(request.delegate.error == nil && request.retryCount == 0)
    let refused = manager.request(server.url("/basic-auth/user/other")).validate()
    #expect((await refused.ended().error as? AFError)?.responseCode == 401)
    let again = await refused.authenticate(user: "user", password: "pw").ended()
    #expect((again.error as? AFError)?.responseCode == 401)
  }

  @Test("Credentials that are added after the end of the manager do not replace the validation")
  func credentialsAfterTheManager() async throws {
    var manager: SessionManager? = SessionManager.isolated()
    let request = try #require(manager?.request(server.url("/basic-auth/user/pw")))
    #expect(await request.ended().response?.statusCode == 401)
    manager = nil
    let response = await request.authenticate(user: "user", password: "pw").validate().ended()
    #expect(response.response?.statusCode == 401)
    #expect((response.error as? AFError)?.responseCode == 401)
    #expect(server.requestCount == 1)
  }

  /// Adds a closure for the body to a request that was refused, credentials, and a check. Returns the response.
  private func streamedWithLateCredentials(
    _ validated: (DataRequest) -> DataRequest
  ) async -> DefaultDataResponse {
    server.enqueue(
      .text("refused").with(status: 401).with(header: "WWW-Authenticate", value: #"Basic realm="a""#))
    let request = manager.request(server.url("/"))
    #expect(await request.ended().response?.statusCode == 401)
    // The response is not validated before the closure returns.
    let isValidated = DispatchSemaphore(value: 0)
    _ = validated(
      request.stream { _ in isValidated.wait() }.authenticate(user: "user", password: "pw"))
    isValidated.signal()
    return await request.ended()
  }

  @Test("Credentials that are added after a part of the body was delivered do not replace the validation")
  func credentialsAfterAChunk() async {
    struct Mishap: Error {}
    let refused = await streamedWithLateCredentials { $0.validate() }
    #expect((refused.error as? AFError)?.responseCode == 401)
    let own = await streamedWithLateCredentials { $0.validate { _, _, _ in .failure(Mishap()) } }
    #expect(own.error is Mishap)
    let accepted = await streamedWithLateCredentials { $0.validate(statusCode: [401]) }
    #expect(accepted.response?.statusCode == 401 && accepted.error == nil)
    #expect(server.requestCount == 3)
  }

  @Test("Notifications are posted with the task") func notifications() async throws {
    let notes = Notes<String>()
    let center = NotificationCenter.default
    server.enqueue(.stall)
    manager.startRequestsImmediately = false
    let request = manager.request(server.url("/"))
    let delegate = manager.delegate
    let names: [(Notification.Name, String, AnyObject)] = [
      (Notification.Name.Task.DidResume, "resume", request),
      (Notification.Name.Task.DidSuspend, "suspend", request),
      (Notification.Name.Task.DidCancel, "cancel", request),
      (Notification.Name.Task.DidComplete, "complete", delegate),
    ]
    let observers = names.map { name, text, object in
      center.addObserver(forName: name, object: object, queue: nil) { notification in
        notes.add("\(text) \(notification.userInfo?[Notification.Key.Task] is URLSessionTask)")
      }
    }
    defer { for observer in observers { center.removeObserver(observer) } }
    request.resume()
    _ = try await server.takeRequest()
    request.suspend()
    request.cancel()
    _ = await request.ended()
    #expect(notes.all == ["resume true", "suspend true", "cancel true", "complete true"])
  }

  @Test("An end is not posted before its beginning") func orderOfNotifications() async {
    let (began, notes) = (Notes<UncheckedBox<URLSessionTask>>(), Notes<Bool>())
    let (session, delegate) = (manager.session, manager.delegate)
    let center = NotificationCenter.default
    let observers = [
      center.addObserver(forName: Notification.Name.Task.DidResume, object: nil, queue: nil) { notification in
        guard (notification.object as? Request)?.session === session,
          let task = notification.userInfo?[Notification.Key.Task] as? URLSessionTask
        else {
          return
        }
        began.add(UncheckedBox(value: task))
      },
      center.addObserver(forName: Notification.Name.Task.DidComplete, object: delegate, queue: nil) {
        notification in
        let task = notification.userInfo?[Notification.Key.Task] as? URLSessionTask
        notes.add(began.all.contains { $0.value === task })
      },
    ]
    defer { for observer in observers { center.removeObserver(observer) } }
    // No server listens on that port, so the connection is refused at once.
    let manager = manager
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<200 { group.addTask { _ = await manager.request("http://127.0.0.1:1/").ended() } }
    }
    #expect(notes.all == Array(repeating: true, count: 200) && began.count == 200)
  }

  @Test("Operations on the queue of a request wait for its end") func operations() async {
    let request = manager.request(server.url("/get"))
    let status = await awaited { done in
      request.delegate.queue.addOperation { done(UncheckedBox(value: request.response?.statusCode)) }
    }
    #expect(status == 200 && request.delegate.error == nil && request.delegate.data?.isEmpty == false)
  }

  @Test("An error that is set is delivered to the handlers") func ownError() async {
    struct Own: Error {}
    manager.startRequestsImmediately = false
    let request = manager.request(server.url("/get"))
    request.delegate.error = Own()
    request.resume()
    #expect(await request.ended().error is Own)
  }

  @Test("A request that was not started is released with its handlers") func unstartedRequest() async {
    final class Witness: Sendable {}
    manager.startRequestsImmediately = false
    var request: DataRequest? = manager.request(server.url("/get"))
    var witness: Witness? = Witness()
    request?.response { [witness] _ in _ = witness }
    weak let (releasedRequest, releasedWitness) = (request, witness)
    (request, witness) = (nil, nil)
    #expect(releasedRequest == nil)
    #expect(await eventually { releasedWitness == nil })
  }

  /// Retains an object, and changes nothing.
  private struct HoldingInterceptor: RequestAdapter, RequestRetrier, Error {
    let probe: ReleaseProbe

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest { urlRequest }

    func should(
      _ manager: SessionManager, retry request: Request, with error: any Error,
      completion: @escaping RequestRetryCompletion
    ) {
      completion(false, 0)
    }
  }

  @Test("What is replaced may use the manager when it is released") func replaced() async {
    await #expect(processExitsWith: .success) {
      let manager = SessionManager.isolated()
      #expect(ReleaseProbe.isReleased { manager.adapter = $0.map { HoldingInterceptor(probe: $0) } })
      #expect(ReleaseProbe.isReleased { manager.retrier = $0.map { HoldingInterceptor(probe: $0) } })
      #expect(
        ReleaseProbe.isReleased { probe in
          manager.backgroundCompletionHandler = probe.map { probe in { probe.hold() } }
        })
      #expect(
        ReleaseProbe.isReleased { probe in
          manager.delegate.taskDidComplete = probe.map { probe in { _, _, _ in probe.hold() } }
        })
      manager.startRequestsImmediately = false
      let request = manager.request("http://a.test/")
      #expect(ReleaseProbe.isReleased { request.delegate.error = $0.map { HoldingInterceptor(probe: $0) } })
      let reachability = try #require(NetworkReachabilityManager(host: "127.0.0.1"))
      #expect(
        ReleaseProbe.isReleased { probe in
          reachability.listener = probe.map { probe in { _ in probe.hold() } }
        })
    }
  }

  @Test("A finished request is released") func finishedRequest() async {
    weak var released: DataRequest?
    do {
      let request = manager.request(server.url("/get"))
      released = request
      _ = await request.ended()
    }
    #expect(await eventually { released == nil })
  }
}

extension SessionManager {
  fileprivate func kept<Value>(_ body: (SessionManager) async -> Value) async -> Value { await body(self) }
}
