import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// The ends of background sessions, and what they leave for the next one.
@Suite("Ends of background sessions", .timeLimit(.minutes(5))) struct BackgroundEndTests {
  private let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  /// Downloads a file without a handler, so that its outcome waits for one.
  private func undelivered(
    _ server: HTTPTestServer, method: HTTPMethod = .get, in session: Session
  ) async -> DownloadRequest {
    let request = session.download(server.url("/file"), method: method, to: fixture.destination("file"))
      .resume()
    #expect(await eventually { request.isFinished })
    return request
  }

  @Test("A cancelled session leaves no outcome for the next one", arguments: [true, false])
  func invalidated(isRequestRetained: Bool) async throws {
    let server = try HTTPTestServer(routes: VersionedFile(size: 1000).routes)
    do {
      let session = fixture.session(startRequestsImmediately: false)
      var request: DownloadRequest? = await undelivered(server, in: session)
      #expect(fixture.record != nil)
      weak let gone = request
      if !isRequestRetained {
        request = nil
        #expect(await eventually { gone == nil })
      }
      session.session.invalidateAndCancel()
      #expect(await fixture.isEmptied())
      withExtendedLifetime(request) {}
    }
    #expect(await fixture.isReleased())
    #expect(fixture.session().restoredRequests.isEmpty)
    #expect(server.requestCount == 1)
  }

  @Test("A file that could not be moved is downloaded again by the next session") func failedMove()
    async throws
  {
    let file = VersionedFile(size: 1000)
    let server = try HTTPTestServer(routes: file.routes)
    let target = try fixture.folder.file("file", Data("old".utf8))
    do {
      let session = fixture.session(startRequestsImmediately: false)
      _ = await undelivered(server, in: session)
    }
    #expect(await fixture.isReleased())
    let session = fixture.session()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await restored.ended()
    #expect(response.fileURL == fixture.folder["restored-file"], "\(response)")
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    #expect(try Data(contentsOf: target) == Data("old".utf8))
    #expect(server.requestCount == 2)
    #expect(await fixture.isEmptied())
  }

  @Test("A POST whose file could not be moved is not sent again by the next session") func failedMoveOfPost()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("first"), .text("second"))
    let target = try fixture.folder.file("file", Data("old".utf8))
    do {
      let session = fixture.session(startRequestsImmediately: false)
      _ = await undelivered(server, method: .post, in: session)
    }
    #expect(await fixture.isReleased())
    let session = fixture.session()
    let restored = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await restored.ended()
    #expect(response.error?.transferCode == .backgroundSessionWasDisconnected, "\(response)")
    #expect(server.requestCount == 1)
    #expect(try Data(contentsOf: target) == Data("old".utf8))
    #expect(await fixture.isEmptied())
  }

  @Test("A POST whose file could not be moved is sent again if its caller wants that")
  func failedMoveSentAgain() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("first"), .text("second"))
    let target = try fixture.folder.file("file", Data("old".utf8))
    let session = fixture.session(startRequestsImmediately: false)
    let request = await undelivered(server, method: .post, in: session)
    try FileManager.default.removeItem(at: target)
    session.retryRequest(request, withDelay: nil)
    let response = await request.ended()
    #expect(response.error == nil, "\(response)")
    #expect(try Data(contentsOf: target) == Data("second".utf8))
    #expect(server.requestCount == 2)
    #expect(await fixture.isEmptied())
    withExtendedLifetime(session) {}
  }

  @Test("A POST without a response is sent again if its caller wants that") func demandedPost() throws {
    let transfers = BackgroundTransfers(
      identifier: "tests", folder: fixture.journal.path, isDiscretionary: false)
    let transfer = transfers.make()
    try transfer.describe(try URLRequest(url: "http://127.0.0.1:1/", method: .post), kind: .download)
    try transfer.noteSent()
    #expect(transfer.isLost)
    transfer.beginAgain()
    #expect(!transfer.isLost)
    try transfer.noteSent()
    #expect(transfer.isLost)
  }

  @Test(
    "A transfer whose session was cancelled before its first record is not recorded",
    arguments: [true, false])
  func cancelledBeforeRecord(isCancelled: Bool) throws {
    let transfers = BackgroundTransfers(
      identifier: "tests", folder: fixture.journal.path, isDiscretionary: false)
    let transfer = transfers.make()
    if isCancelled { transfers.removeAll() } else { transfers.close() }
    let request = try URLRequest(url: "http://127.0.0.1:1/", method: .get)
    #expect(throws: AFError.self) { try transfer.describe(request, kind: .download) }
    #expect(fixture.files.isEmpty)
    #expect(throws: Never.self) { _ = try TransferFolder(path: fixture.journal.path) }
  }

  /// A delegate that records the end of restored requests.
  private final class EndOnly: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<Bool>()

    override func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { calls.add(true) }
  }

  @Test("A released session does not say that its restored requests have ended") func restoredEvents()
    async throws
  {
    let gate = Gate()
    let server = try HTTPTestServer(routes: .none.adding("/file") { _, _ in .bytes(100).held(by: gate) })
    do {
      let session = fixture.session(startRequestsImmediately: false)
      session.download(server.url("/file"), to: fixture.destination("file")).resume()
      await gate.waitUntilReached()
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    let delegate = EndOnly()
    delegate.wantedEvents = []
    do {
      let session = fixture.session(delegate: delegate, startRequestsImmediately: false)
      #expect(session.restoredRequests.count == 1)
      await gate.waitUntilReached(count: 2)
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    #expect(fixture.session().restoredRequests.count == 1)
    #expect(delegate.calls.values.isEmpty)
    gate.open()
  }

  @Test("The end of restored requests is reported once, after the last of them") func lastRestored()
    async throws
  {
    let gates = (0..<3).map { _ in Gate() }
    let server = try HTTPTestServer(
      routes: gates.enumerated().reduce(Routes.none) { routes, gate in
        routes.adding("/\(gate.offset)") { _, _ in .bytes(100).held(by: gate.element) }
      }.adding("/own") { _, _ in .bytes(100) })
    do {
      let session = fixture.session(startRequestsImmediately: false)
      for index in gates.indices { session.download(server.url("/\(index)")).resume() }
      for gate in gates { await gate.waitUntilReached() }
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    let delegate = EndOnly()
    let session = fixture.session(delegate: delegate)
    let requests = session.restoredRequests.compactMap { $0 as? DownloadRequest }
    #expect(requests.count == gates.count)
    for gate in gates { await gate.waitUntilReached(count: 2) }
    #expect(await session.download(server.url("/own"), to: fixture.destination("own")).ended().error == nil)
    for (position, request) in requests.enumerated() {
      // A call would be on this queue.
      await withCheckedContinuation { passed in session.rootQueue.async { passed.resume() } }
      #expect(delegate.calls.count == 0, "\(position)")
      try gates[#require(request.originalRequest?.url.flatMap { Int($0.lastPathComponent) })].open()
      #expect(await request.ended().error == nil)
      let left = requests.count - 1 - position
      #expect(await eventually { fixture.files.filter { $0.hasSuffix(".journal") }.count == left })
    }
    await delegate.calls.wait(for: 1)
    #expect(await session.download(server.url("/own"), to: fixture.destination("other")).ended().error == nil)
    #expect(await fixture.isEmptied())
    await withCheckedContinuation { passed in session.rootQueue.async { passed.resume() } }
    #expect(delegate.calls.count == 1)
  }

  @Test("Restored requests that wait for their options do not hold back the end of the others")
  func waitingForOptions() async throws {
    let gates = (0..<2).map { _ in Gate() }
    let server = try HTTPTestServer(
      routes: gates.enumerated().reduce(Routes.none) { routes, gate in
        routes.adding("/\(gate.offset)") { _, _ in .bytes(100).held(by: gate.element) }
      })
    do {
      let session = fixture.session(startRequestsImmediately: false)
      session.download(server.url("/0")).resume()
      session.download(server.url("/1")).transportOptions { $0.redirectLimit = 3 }.resume()
      for gate in gates { await gate.waitUntilReached() }
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    let delegate = EndOnly()
    let session = fixture.session(delegate: delegate)
    let requests = session.restoredRequests.compactMap { $0 as? DownloadRequest }
    let running = try #require(requests.first(where: { !$0.isInitialized }))
    let waiting = try #require(requests.first(where: { $0.isInitialized }))
    await gates[0].waitUntilReached(count: 2)
    gates[0].open()
    #expect(await running.ended().error == nil)
    await delegate.calls.wait(for: 1)
    #expect(waiting.isInitialized && delegate.calls.count == 1)
    let ending = Task { await waiting.transportOptions { $0.redirectLimit = 3 }.ended() }
    await gates[1].waitUntilReached(count: 2)
    gates[1].open()
    #expect(await ending.value.error == nil)
    await delegate.calls.wait(for: 2)
    #expect(delegate.calls.count == 2, "its own end is reported as well")
  }

  @Test("Transfers that wait for their options are awaited once they are resumed, or if they are the last")
  func endsOfWaiting() throws {
    func transfers() -> BackgroundTransfers {
      BackgroundTransfers(identifier: "tests", folder: fixture.journal.path, isDiscretionary: false)
    }
    let first = transfers()
    for _ in 0..<3 {
      let transfer = first.make()
      transfer.noteOwnOptions()
      try transfer.describe(try URLRequest(url: "http://127.0.0.1:1/", method: .get), kind: .download)
    }
    first.close()
    let second = transfers()
    let restored = second.restore()
    try #require(restored.count == 3)
    let calls = Recorder<Bool>()
    second.whenRestoredEnded { calls.add(true) }
    #expect(restored.allSatisfy { $0.awaitsOptions })
    restored[0].remove()
    #expect(calls.count == 0, "the others may be resumed next")
    restored[1].noteResumed()
    #expect(!restored[1].awaitsOptions && restored[2].awaitsOptions)
    restored[1].remove()
    #expect(calls.count == 1, "no transfer runs any more")
    restored[2].remove()
    #expect(calls.count == 2, "all have ended")
  }

  @Test("A cancelled transfer is not in the journal any more when its handlers are called")
  func cancelledBeforeHandlers() async throws {
    let gate = Gate()
    let server = try HTTPTestServer(routes: .none.adding("/file") { _, _ in .bytes(100).held(by: gate) })
    do {
      let session = fixture.session(startRequestsImmediately: false)
      session.download(server.url("/file")).resume()
      await gate.waitUntilReached()
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    let delegate = EndOnly()
    let session = fixture.session(delegate: delegate)
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    let queue = DispatchQueue(label: "held")
    queue.suspend()
    let errors = Recorder<AFError?>()
    request.response(queue: queue) { errors.add($0.error) }
    await gate.waitUntilReached(count: 2)
    request.cancel()
    #expect(await fixture.isEmptied(), "\(fixture.files)")
    // A call would be on this queue.
    await withCheckedContinuation { passed in session.rootQueue.async { passed.resume() } }
    #expect(delegate.calls.count == 0, "the handler has not returned")
    queue.resume()
    #expect(await errors.wait(for: 1).first??.isExplicitlyCancelledError == true)
    await delegate.calls.wait(for: 1)
    gate.open()
  }

  @Test("A late handler of a request whose session was cancelled gets the outcome") func lateHandler()
    async throws
  {
    let server = try HTTPTestServer(routes: VersionedFile(size: 1000).routes)
    let session = fixture.session(startRequestsImmediately: false)
    let request = await undelivered(server, in: session)
    session.session.invalidateAndCancel()
    #expect(await fixture.isEmptied())
    #expect(await request.ended().error == nil)
    #expect(fixture.files.isEmpty)
  }

  @Test("A late handler of a delivered request gets the outcome after its session was released")
  func lateHandlerOfDelivered() async throws {
    let server = try HTTPTestServer(routes: VersionedFile(size: 1000).routes)
    var session: Session? = fixture.session()
    let request = try #require(session).download(server.url("/file"), to: fixture.destination("file"))
    #expect(await request.ended().error == nil)
    #expect(await fixture.isEmptied())
    session = nil
    #expect(await fixture.isReleased())
    #expect(await request.ended().error == nil)
  }

  @Test("A late handler whose outcome the next session delivers gets an error") func lateHandlerOfReleased()
    async throws
  {
    let server = try HTTPTestServer(routes: VersionedFile(size: 1000).routes)
    var session: Session? = fixture.session(startRequestsImmediately: false)
    let request = await undelivered(server, in: try #require(session))
    session = nil
    #expect(await fixture.isReleased())
    #expect(await request.ended().error?.isSessionDeinitializedError == true)
    let next = fixture.session()
    let restored = try #require(next.restoredRequests.first as? DownloadRequest)
    #expect(!restored.mayHaveBeenDelivered)
    #expect(await restored.ended().error == nil)
  }

  /// A serializer that waits until the test lets it return.
  private struct HeldSerializer: DownloadResponseSerializerProtocol {
    let hasBegun = DispatchSemaphore(value: 0)
    let mayReturn = DispatchSemaphore(value: 0)

    func serializeDownload(
      request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
    ) throws -> String {
      hasBegun.signal()
      mayReturn.wait()
      return "serialized"
    }
  }

  @Test("A response that is serialized when its session is released is delivered by the next one only")
  func serializing() async throws {
    let server = try HTTPTestServer(routes: VersionedFile(size: 1000).routes)
    let responses = Recorder<AFDownloadResponse<String>>()
    let serializer = HeldSerializer()
    do {
      let session = fixture.session()
      session.download(server.url("/file"), to: fixture.destination("file"))
        .response(queue: .global(), responseSerializer: serializer) { responses.add($0) }
      await onAThread(serializer) { $0.hasBegun.wait() }
      withExtendedLifetime(session) {}
    }
    #expect(await fixture.isReleased())
    serializer.mayReturn.signal()
    let response = try #require(await responses.wait(for: 1).first)
    #expect(response.error?.isSessionDeinitializedError == true, "\(response)")
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(!request.mayHaveBeenDelivered)
    #expect(await request.ended().error == nil)
    #expect(server.requestCount == 1)
    #expect(await fixture.isEmptied())
  }

  @Test("The end of a run leaves the journal of the next one") func nextRun() throws {
    let transfers = BackgroundTransfers(
      identifier: "tests", folder: fixture.journal.path, isDiscretionary: false)
    let transfer = transfers.make()
    try transfer.describe(try URLRequest(url: "http://127.0.0.1:1/", method: .get), kind: .download)
    transfer.beginAgain()
    #expect(transfer.run == 1)
    // The first run is delivered after the second one has begun.
    #expect(transfer.noteDelivering(after: 0))
    transfer.remove(after: 0)
    let records = Journal.standard.content(of: try Data(contentsOf: try #require(fixture.record))).records
    #expect(records.count == 1 && !records.contains(.delivering), "\(records)")
    #expect(transfer.noteDelivering(after: 1))
    transfer.remove(after: 1)
    #expect(fixture.files.isEmpty)
    transfer.suspend()
    #expect(transfer.noteDelivering(after: 1), "no later session delivers a transfer that was removed")
    let other = transfers.make()
    other.suspend()
    #expect(!other.noteDelivering(after: 0))
  }
}
