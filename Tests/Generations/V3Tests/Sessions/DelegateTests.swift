import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct DelegateTests {
  @Test("Closures decide about redirects") func redirects() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated()
    let url = server.url("/redirect/1")
    #expect(await manager.request(.GET, url).end().status == 200)
    manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, _ in nil }
    #expect(await manager.request(.GET, url).end().status == 302)
    manager.delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, request, completion in
      var request = request
      request.setValue("1", forHTTPHeaderField: "X-Redirected")
      completion(request)
    }
    #expect(await manager.request(.GET, url).end().status == 200)
    #expect(server.recordedRequests.last?.header("X-Redirected") == "1")
    manager.delegate.taskWillPerformHTTPRedirection = nil
    manager.delegate.taskWillPerformHTTPRedirectionWithCompletion = nil
    #expect(manager.delegate.taskWillPerformHTTPRedirection == nil)
    #expect(await manager.request(.GET, url).end().status == 200)
  }

  @Test("Closures answer challenges") func challenges() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated()
    let url = server.url("/basic-auth/user/password")
    manager.delegate.taskDidReceiveChallenge = { _, _, challenge in
      challenge.previousFailureCount > 0
        ? (.rejectProtectionSpace, nil)
        : (.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
    }
    #expect(await manager.request(.GET, url).end().status == 200)
    manager.delegate.taskDidReceiveChallengeWithCompletion = { _, _, _, completion in
      completion(.rejectProtectionSpace, nil)
    }
    #expect(await manager.request(.GET, url).end().status == 401)
  }

  @Test("Closures receive data") func dataEvents() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated()
    let notes = Notes()
    manager.delegate.dataTaskDidReceiveResponse = { _, _, response in
      notes.add("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
      return .allow
    }
    manager.delegate.dataTaskDidReceiveData = { _, _, data in notes.add("data \(data.count)") }
    manager.delegate.taskDidComplete = { _, _, error in notes.add("complete \(error?.code ?? 0)") }
    let end = await manager.request(.GET, server.url("/bytes/100")).end()
    #expect(end.data?.count == 100)
    #expect(await notes.wait(for: 3) == ["response 200", "data 100", "complete 0"])
    manager.delegate.dataTaskDidReceiveResponseWithCompletion = { $3(.cancel) }
    let cancelled = await manager.request(.GET, server.url("/bytes/100")).end()
    #expect(cancelled.fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
  }

  @Test("Closures receive events of uploads and downloads") func transferEvents() async throws {
    let server = try HTTPTestServer()
    let file = try Folder().url
    let folder = try Folder()
    let target = try folder.file("it")
    #expect(file != target)
    let manager = Manager.isolated()
    let notes = Notes()
    manager.delegate.taskDidSendBodyData = { notes.add("sent \($3) of \($4) \($2 > 0)") }
    manager.delegate.downloadTaskDidWriteData = { notes.add("came \($3) of \($4) \($2 > 0)") }
    manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, url in
      notes.add("file \(FileManager.default.fileExists(atPath: url.path))")
    }
    manager.delegate.taskDidComplete = { _, _, _ in notes.add("end") }
    _ = await manager.upload(.POST, server.url("/upload-sink"), data: Data(count: 10)).end()
    #expect(await notes.wait(for: 2) == ["sent 10 of 10 true", "end"])
    _ = await manager.download(.GET, server.url("/bytes/20")) { _, _ in target }.end()
    #expect(await notes.wait(for: 5).suffix(3) == ["came 20 of 20 true", "file true", "end"])
  }

  @Test("A subclass is called before the closures") func subclass() async throws {
    final class Stricter: Manager.SessionDelegate, @unchecked Sendable {
      override func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
      ) {
        completionHandler(nil)
      }
    }
    let server = try HTTPTestServer()
    let manager = Manager.isolated(delegate: Stricter())
    manager.delegate.taskWillPerformHTTPRedirection = { $3 }
    #expect(await manager.request(.GET, server.url("/redirect/1")).end().status == 302)
  }

  @Test("A closure receives the end of the manager") func endOfManager() async throws {
    let notes = Notes()
    let delegate = Manager.SessionDelegate()
    delegate.sessionDidBecomeInvalidWithError = { _, error in notes.add("invalid \(error == nil)") }
    let server = try HTTPTestServer()
    do {
      let manager = Manager(configuration: .isolated, delegate: delegate)
      #expect(await manager.request(.GET, server.url("/get")).end().status == 200)
    }
    #expect(await notes.wait(for: 1) == ["invalid true"])
  }

  private final class Own: Manager.SessionDelegate, @unchecked Sendable {}

  @Test("Requests do not wait for closures that are not set") func missingClosures() {
    func wanted(_ set: (Manager.SessionDelegate) -> Void) -> Manager.SessionDelegate.Events {
      let delegate = Manager.SessionDelegate()
      set(delegate)
      return delegate.wantedEvents
    }
    let few: Manager.SessionDelegate.Events = []
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
    let seeing: [(Manager.SessionDelegate) -> Void] = [
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
    #expect(Own().wantedEvents == .all)
  }
}
