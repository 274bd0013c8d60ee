import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// Every waiting request ends when its session is released.
@Suite("Requests of a released session", .timeLimit(.minutes(1)))
struct ReleasedSessionTests {
  /// A reason why a request is not sent.
  enum Start: CaseIterable { case never, suspended, suspendedEagerly }

  /// A caller that waits for the end of the request.
  enum Waiter: CaseIterable {
    case dataHandler, dataTask, uploadHandler, uploadTask, downloadHandler, downloadTask, resumeData
    case streamHandler, streamLoop, chunks, progressLoop, responseLoop, command
  }

  private let ends = Recorder<AFError?>()

  @Test("A request that was not started ends", arguments: Start.allCases, Waiter.allCases)
  func unstarted(start: Start, waiter: Waiter) async {
    let fake = FakeTransport()
    var session: Session? = Session(
      fake: fake, startRequestsImmediately: start != .never,
      requestSetup: start == .suspendedEagerly ? .eager : .lazy)
    guard let request = session.map({ make(waiter, by: $0) }) else { return }
    if start != .never { request.suspend() }
    attach(waiter, to: request)
    session = nil
    let error = await ends.wait(for: 1).first ?? nil
    #expect(error?.isSessionDeinitializedError == true)
    #expect(request.isFinished)
    #expect(fake.requests.isEmpty)
    #expect(ends.count == 1)
  }

  private func make(_ waiter: Waiter, by session: Session) -> Request {
    let url = "http://a.test/"
    return switch waiter {
    case .dataHandler, .dataTask, .chunks, .progressLoop, .responseLoop, .command: session.request(url)
    case .uploadHandler, .uploadTask: session.upload(Data("body".utf8), to: url)
    case .downloadHandler, .downloadTask, .resumeData: session.download(url)
    case .streamHandler, .streamLoop: session.streamRequest(url)
    }
  }

  private func attach(_ waiter: Waiter, to request: Request) {
    switch request {
    case let request as DownloadRequest: attach(waiter, to: request)
    case let request as DataStreamRequest: attach(waiter, to: request)
    case let request as DataRequest: attach(waiter, to: request)
    default: Issue.record("unknown kind of request")
    }
  }

  private func attach(_ waiter: Waiter, to request: DataRequest) {
    switch waiter {
    case .dataTask, .uploadTask:
      let task = request.serializingData()
      Task { ends.add(await task.response.error) }
    case .chunks:
      request.responseChunks(on: .global()) { _ in }
      request.response(queue: .global()) { [ends] in ends.add($0.error) }
    case .progressLoop: follow(request.downloadProgress(), of: request)
    case .responseLoop: follow(request.httpResponses(), of: request)
    case .command:
      request.cURLDescription(on: .global()) { [ends] text in
        #expect(text == "$ curl command could not be created" || text.contains("a.test"))
        if request.isSuspended {
          request.response(queue: .global()) { ends.add($0.error) }
        } else {
          ends.add(request.error)
        }
      }
    default: request.response(queue: .global()) { [ends] in ends.add($0.error) }
    }
  }

  private func attach(_ waiter: Waiter, to request: DownloadRequest) {
    switch waiter {
    case .downloadTask:
      let task = request.serializingDownloadedFileURL()
      Task { ends.add(await task.response.error) }
    default: request.response(queue: .global()) { [ends] in ends.add($0.error) }
    }
  }

  private func attach(_ waiter: Waiter, to request: DataStreamRequest) {
    guard waiter == .streamLoop else {
      request.responseStream(on: .global()) { [ends] in
        if let completion = $0.completion { ends.add(completion.error) }
      }
      return
    }
    let stream = request.streamTask().streamingData()
    Task {
      var completion: DataStreamRequest.Completion?
      for await event in stream { completion = event.completion ?? completion }
      ends.add(completion?.error)
    }
  }

  private func follow(_ stream: StreamOf<some Sendable>, of request: Request) {
    Task {
      for await _ in stream {}
      ends.add(request.error)
    }
  }

  @Test("A message that waits for the start of a WebSocket request fails", arguments: [false, true])
  func unsentMessage(isAwaited: Bool) async {
    var session: Session? = Session(fake: FakeTransport())
    let socket = session?.webSocketRequest(to: "ws://a.test/", shouldAutomaticallyResume: false)
    if isAwaited {
      let task = socket?.webSocketTask()
      Task { [ends] in
        do {
          try await task?.send(.string("a"))
          ends.add(nil)
        } catch {
          ends.add(error.asAFError)
        }
      }
    } else {
      socket?.send(.string("a"), queue: .global()) { [ends] result in
        if case .failure(let error) = result { ends.add(error.asAFError) } else { ends.add(nil) }
      }
    }
    session = nil
    let error = await ends.wait(for: 1).first ?? nil
    #expect(error?.isSessionDeinitializedError == true)
    #expect(socket?.isFinished == true)
  }

  @Test("A download in segments without a request ends", arguments: [Start.never, .suspended])
  func segments(start: Start) async throws {
    let folder = try TemporaryFolder()
    let fake = FakeTransport()
    var session: Session? = Session(fake: fake, startRequestsImmediately: start != .never)
    let download = session?.segmentedDownload("http://a.test/file", to: folder["file"])
    if start == .suspended { download?.suspend() }
    download?.response(queue: .global()) { [ends] in ends.add($0.error) }
    session = nil
    let error = await ends.wait(for: 1).first ?? nil
    #expect(error?.isSessionDeinitializedError == true)
    download?.resume()
    #expect(await download?.response.error?.isSessionDeinitializedError == true)
    #expect(fake.requests.isEmpty)
  }

  @Test(
    "A download in segments that was not started ends with a session that finishes",
    arguments: [Start.never, .suspended])
  func refusedSegments(start: Start) async throws {
    let folder = try TemporaryFolder()
    let fake = FakeTransport()
    let session = Session.retained(fake: fake, startRequestsImmediately: start != .never)
    let download = session.segmentedDownload("http://a.test/file", to: folder["file"])
    if start == .suspended { download.suspend() }
    download.response(queue: .global()) { [ends] in ends.add($0.error) }
    session.session.finishTasksAndInvalidate()
    let error = await ends.wait(for: 1).first ?? nil
    #expect(error?.isSessionInvalidatedError == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("Cancelling all requests cancels a download in segments that was not started")
  func cancelledSegments() async throws {
    let folder = try TemporaryFolder()
    let fake = FakeTransport()
    let session = Session.retained(fake: fake, startRequestsImmediately: false)
    let download = session.segmentedDownload("http://a.test/file", to: folder["file"])
    session.cancelAllRequests()
    download.resume()
    #expect(await download.response.error?.isExplicitlyCancelledError == true)
    #expect(fake.requests.isEmpty)
  }

  // MARK: Running requests

  /// An event that a started request waits for.
  enum Obstacle: CaseIterable {
    case adapter, retrier, retryDelay, headDecision, redirectHandler, connectivity, server, suspension
  }

  @Test("A request that waits ends", arguments: Obstacle.allCases)
  func underway(obstacle: Obstacle) async {
    let reached = Latch()
    let kept = Recorder<any Sendable>()
    var session: Session? = session(with: obstacle, reached, kept)
    guard let request = session?.request("http://a.test/", interceptor: interceptor(obstacle, reached, kept))
    else { return }
    if obstacle == .headDecision {
      request.onHTTPResponse(on: .global()) { _, completion in
        kept.add(completion)
        reached.open()
      }
    }
    let task = request.serializingData()
    async let error = task.response.error
    request.response(queue: .global()) { [ends] in ends.add($0.error) }
    await reached.wait()
    if obstacle == .suspension { request.suspend() }
    session = nil
    #expect(await error?.isSessionDeinitializedError == true)
    #expect(await ends.wait(for: 1).first??.isSessionDeinitializedError == true)
    withExtendedLifetime(kept) {}
  }

  private func session(
    with obstacle: Obstacle, _ reached: Latch, _ kept: Recorder<any Sendable>
  ) -> Session {
    switch obstacle {
    case .connectivity:
      let network = ScriptedNetwork()
      network.become(ScriptedNetwork.offline)
      let configuration = URLSessionConfiguration.uncached
      configuration.waitsForConnectivity = true
      let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "monitor"))
      monitor.taskIsWaitingForConnectivity = { _, _ in reached.open() }
      let fake = FakeTransport(.failure(.notConnected))
      return Session(
        configuration: configuration, engine: Engine(transport: fake, network: network),
        observers: SessionObservers(eventMonitors: [monitor]))
    case .redirectHandler:
      let handler = StuckRedirectHandler(reached: reached, kept: kept)
      return Session(
        fake: FakeTransport(.redirect(302, to: "/there")),
        observers: SessionObservers(redirectHandler: handler)
      )
    case .retrier, .retryDelay: return Session(fake: FakeTransport(.failure(.connectionLost)))
    case .server, .suspension:
      return Session(fake: FakeTransport(.ok.held(by: Latch(), reached: reached)))
    case .adapter, .headDecision: return Session(fake: FakeTransport())
    }
  }

  private func interceptor(
    _ obstacle: Obstacle, _ reached: Latch, _ kept: Recorder<any Sendable>
  ) -> (any RequestInterceptor)? {
    switch obstacle {
    case .adapter:
      Adapter { _, _, completion in
        kept.add(completion)
        reached.open()
      }
    case .retrier:
      Retrier { _, _, _, completion in
        kept.add(completion)
        reached.open()
      }
    case .retryDelay:
      Retrier { _, _, _, completion in
        completion(.retryWithDelay(3600))
        reached.open()
      }
    case .headDecision, .redirectHandler, .connectivity, .server, .suspension: nil
    }
  }

  // MARK: After the end

  @Test("A handler that is added after the end of the session receives its error")
  func handlerAddedLate() async {
    let request = Session(fake: FakeTransport(), startRequestsImmediately: false).request("http://a.test/")
    request.response(queue: .global()) { [ends] in ends.add($0.error) }
    #expect(await ends.wait(for: 1).first??.isSessionDeinitializedError == true)
    let suspended = Session(fake: FakeTransport()).request("http://a.test/").suspend()
    #expect(await suspended.end().error?.isSessionDeinitializedError == true)
  }

  @Test("A handler that is added to a finished request receives its outcome although the session ended")
  func finishedRequest() async {
    var session: Session? = Session(fake: FakeTransport(.text("value")))
    let request = session?.request("http://a.test/")
    #expect(await request?.end().data == Data("value".utf8))
    session = nil
    let late = await request?.end()
    #expect(late?.data == Data("value".utf8))
    #expect(late?.error == nil)
    #expect(request?.error == nil)
  }

  @Test("Invalidation ends requests that were not started")
  func invalidation() async {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    let request = session.request("http://a.test/")
    request.response(queue: .global()) { [ends] in ends.add($0.error) }
    session.session.finishTasksAndInvalidate()
    guard case .sessionInvalidated?? = await ends.wait(for: 1).first else {
      Issue.record("\(String(describing: ends.values))")
      return
    }
  }

  @Test(
    "Monitors receive the end of a released session, however late its queue runs", arguments: [false, true])
  func endOfReleasedSession(isCalledLater: Bool) {
    for _ in 0..<20 {
      let (spy, queue) = (EventSpy(), DispatchQueue(label: "test.root"))
      queue.suspend()
      var session: Session? = Session(
        configuration: .uncached, delegate: SessionDelegate(), rootQueue: queue, eventMonitors: [spy])
      _ = session?.request("http://a.test/")
      session = nil
      if !isCalledLater { queue.resume() }
      #expect(session == nil)
      if isCalledLater { queue.resume() }
      // The root queue of the session targets this one.
      for _ in 0..<3 { queue.sync {} }
      #expect(spy.reported.filter { $0 == "didBecomeInvalid" }.count == 1)
    }
  }

  @Test("The end of an invalidated session is reported once, after all requests", arguments: [false, true])
  func endOfInvalidatedSession(cancels: Bool) async {
    let spy = EventSpy()
    let session = Session.retained(
      fake: FakeTransport(.text("value")), observers: SessionObservers(eventMonitors: [spy]))
    #expect(await session.request("http://a.test/").end().data == Data("value".utf8))
    if cancels { session.session.invalidateAndCancel() } else { session.session.finishTasksAndInvalidate() }
    _ = await eventually { spy.reported.contains("didBecomeInvalid") }
    session.session.finishTasksAndInvalidate()
    session.rootQueue.sync {}
    #expect(spy.reported.filter { $0 == "didBecomeInvalid" }.count == 1)
  }

  /// Lets the sessions show the same session of Foundation, too, which does not tell them apart.
  @Test("The end of a session is reported to its own monitors", arguments: [false, true])
  func endWithSharedDelegate(showsSame: Bool) async {
    let (delegate, queue) = (SessionDelegate(), DispatchQueue(label: "test.root"))
    let shown = URLSession(configuration: .uncached)
    func session(_ spy: EventSpy) -> Session {
      showsSame
        ? Session(session: shown, delegate: delegate, rootQueue: queue, eventMonitors: [spy])
        : Session(configuration: .uncached, delegate: delegate, rootQueue: queue, eventMonitors: [spy])
    }
    let spies = (0..<3).map { _ in EventSpy() }
    var sessions: [Session?] = spies.map { session($0) }
    func ends() -> [Int] {
      // The root queue of a session targets this one.
      for _ in 0..<3 { queue.sync {} }
      return spies.map { spy in spy.reported.count { $0 == "didBecomeInvalid" } }
    }
    sessions[0] = nil
    #expect(ends() == [1, 0, 0])
    // The end of the object itself belongs to the session that shows it last.
    if showsSame { delegate.urlSession(shown, didBecomeInvalidWithError: nil) }
    let ofObject = showsSame ? 1 : 0
    #expect(ends() == [1, 0, ofObject])
    sessions[2] = nil
    #expect(ends() == [1, 0, ofObject + 1])
    sessions[1] = nil
    #expect(ends() == [1, 1, ofObject + 1])
  }

  @Test("A session that was invalidated while a request ran ends with that request")
  func endAfterRunningRequest() async {
    let (spy, gate, reached) = (EventSpy(), Latch(), Latch())
    let session = Session.retained(
      fake: FakeTransport(FakeReply.text("value").held(by: gate, reached: reached)),
      observers: SessionObservers(eventMonitors: [spy]))
    func ends() -> Int {
      for _ in 0..<3 { session.rootQueue.sync {} }
      return spy.reported.count { $0 == "didBecomeInvalid" }
    }
    async let response = session.request("http://a.test/").end()
    await reached.wait()
    session.session.finishTasksAndInvalidate()
    #expect(ends() == 0, "a request is running")
    gate.open()
    #expect(await response.data == Data("value".utf8))
    #expect(ends() == 1)
  }

  @Test("A session that was invalidated ends with the last of its requests, not with the first")
  func endAfterRunningRequests() async {
    let spy = EventSpy()
    let gates = [Latch(), Latch()]
    let fake = FakeTransport { _, index in FakeReply.text("value").held(by: gates[index]) }
    let session = Session.retained(fake: fake, observers: SessionObservers(eventMonitors: [spy]))
    func ends() -> Int {
      for _ in 0..<3 { session.rootQueue.sync {} }
      return spy.reported.count { $0 == "didBecomeInvalid" }
    }
    async let first = session.request("http://a.test/1").end()
    #expect(await eventually { fake.requests.count == 1 })
    async let second = session.request("http://a.test/2").end()
    #expect(await eventually { fake.requests.count == 2 })
    session.session.finishTasksAndInvalidate()
    gates[0].open()
    #expect(await first.data == Data("value".utf8))
    #expect(ends() == 0, "the second request is running")
    gates[1].open()
    #expect(await second.data == Data("value".utf8))
    #expect(ends() == 1)
  }

  /// A call before the start that makes the session know a request.
  enum EarlyCall: CaseIterable { case command, progress, handler, suspension }

  @Test(
    "A session that was invalidated while a request ran does not end it, whatever came before its start",
    arguments: EarlyCall.allCases)
  func startedRequest(call: EarlyCall) async {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(
      FakeReply.failure(.connectionLost).held(by: gate, reached: reached), .text("value"))
    let session = Session.retained(fake: fake, startRequestsImmediately: false)
    let request = session.request("http://a.test/", interceptor: SpyInterceptor(retries: 1))
    switch call {
    case .command: request.cURLDescription(on: .global()) { _ in }
    case .progress: _ = request.downloadProgress()
    case .handler: request.response(queue: .global()) { _ in }
    case .suspension: request.suspend()
    }
    request.resume()
    await reached.wait()
    session.session.finishTasksAndInvalidate()
    gate.open()
    let response = await request.end()
    #expect(response.error == nil)
    #expect(response.data == Data("value".utf8))
    #expect(fake.requests.count == 2)
  }

  @Test("A request that was never started ends its sequences when it is released")
  func releasedRequest() async {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    let progress = session.request("http://a.test/").downloadProgress()
    for await _ in progress {}
    #expect(session.core.activeCount == 0)
  }

  @Test(
    "A stream request that was never started ends its loops when it is released, also with a limited buffer",
    arguments: [false, true])
  func releasedStream(isCancelling: Bool) async {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    let stream = session.streamRequest("http://a.test/").streamTask()
      .streamingData(automaticallyCancelling: isCancelling, bufferingPolicy: .bufferingNewest(1))
    for await _ in stream { Issue.record("a request that was never started has no events") }
    #expect(session.core.activeCount == 0)
  }

  @Test("Released requests that were never started are removed from the session")
  func forgottenRequests() {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    for _ in 0..<1000 { session.request("http://a.test/").response { _ in } }
    #expect(session.core.unstartedCount < 200)
    let requests = (0..<200).map { _ in session.request("http://a.test/").response { _ in } }
    #expect(session.core.unstartedCount >= 200)
    withExtendedLifetime(requests) {}
  }
}

/// A redirect handler that never calls its completion.
private struct StuckRedirectHandler: RedirectHandler {
  let reached: Latch
  let kept: Recorder<any Sendable>

  func task(
    _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
    completion: @escaping @Sendable (URLRequest?) -> Void
  ) {
    kept.add(completion)
    reached.open()
  }
}
