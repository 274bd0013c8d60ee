import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import Alamofire

private let KiB = 1024

/// The progress, the suspension and the end of a download in segments, as its handlers see them.
@Suite("Notices of segments", .timeLimit(.minutes(5))) struct SegmentProgressTests {
  private let folder: SegmentedDownloadFolder
  private let queue = DispatchQueue(label: "notices")
  private let reports = Recorder<SegmentedDownload.Progress>()

  init() throws { folder = try SegmentedDownloadFolder() }

  private func download(
    _ server: HTTPTestServer, session: Session = .real(), to destination: URL? = nil
  ) -> SegmentedDownload {
    session.segmentedDownload(
      server.url("/file"), minimumSegmentSize: 64 * KiB, to: destination ?? folder.destination)
  }

  @Test("The remaining time is that of the missing bytes; before the first response there is none")
  func remainingTime() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    let gate = Gate()
    file.script { $1.held(after: 10_000, by: gate) }
    let server = try file.server()
    let download = download(server)
    #expect(download.currentProgress.remainingTime == nil)
    #expect(download.currentProgress.fractionCompleted == 0)
    download.resume()
    #expect(await eventually { download.currentProgress.completedBytes == 40_000 })
    let progress = download.currentProgress
    let rate = try #require(progress.bytesPerSecond)
    let time = SegmentedDownload.Progress.time(of: Int64(file.size - 40_000), at: rate)
    // A download that has stood still for seconds has no rate.
    #expect(progress.remainingTime == (rate > 0 ? time : nil))
    #expect(progress.fractionCompleted == 40_000 / Double(file.size))
    gate.open()
    #expect(await download.response.error == nil)
    // The end of a download is its progress from then on.
    let end = download.currentProgress
    #expect(end == download.currentProgress)
    #expect(end == (await download.response.progress))
    #expect(end.remainingTime ?? .zero == .zero)
  }

  @Test("Progress handlers learn that the download begins again") func restart() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 600 * KiB)
    let gate = Gate()
    file.script { question, reply in question.index < 4 ? reply.held(after: 1000, by: gate) : reply }
    let server = try file.server()
    let download = download(server).downloadProgress(queue: queue) { reports.add($0) }
    download.resume()
    await gate.waitUntilReached(count: 4)
    file.change()
    gate.open()
    #expect(await download.response.progress.restartCount == 1)
    queue.sync {}
    #expect(
      reports.values.contains { $0.restartCount == 1 && $0.completedBytes == 0 && $0.connectionCount == 0 })
  }

  @Test("The last notice shows that a cancelled download has no connections") func lastNotice() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    let gate = Gate()
    defer { gate.open() }
    file.script { $1.held(after: 10_000, by: gate) }
    let server = try file.server()
    let monitor = ClosureEventMonitor(queue: queue)
    let cancellations = Recorder<UUID>()
    monitor.requestDidCancel = { cancellations.add($0.id) }
    let download = download(server, session: .real(eventMonitors: [monitor]))
      .downloadProgress(queue: queue) { reports.add($0) }
    download.resume()
    #expect(await eventually { download.currentProgress.completedBytes == 40_000 })
    download.cancel()
    #expect(Set(await cancellations.wait(for: 4)).count == 4, "the requests go on")
    let response = await download.response
    queue.sync {}
    #expect(reports.values.last == response.progress)
    #expect(response.progress.connectionCount == 0 && response.progress.completedBytes == 40_000)
  }

  @Test("Notices of a fast download are a tenth of a second apart, except for the end")
  func noticeInterval() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 4000 * KiB)
    let server = try file.server()
    let beginning = ContinuousClock.now
    _ = await download(server).downloadProgress(queue: queue) { reports.add($0) }.response
    queue.sync {}
    let time = ContinuousClock.now - beginning
    // The first notice, the complete file, and the end of the download.
    #expect(reports.count <= Int(time / .milliseconds(100)) + 3)
  }

  @Test("Handlers are called on their queues") func queues() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    let server = try file.server()
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let isOnQueue = Recorder<Bool>()
    download(server).downloadProgress(queue: queue) { _ in
      isOnQueue.add(DispatchQueue.getSpecific(key: key) == true)
    }.response(queue: queue) { _ in isOnQueue.add(DispatchQueue.getSpecific(key: key) == true) }
    let values = await isOnQueue.wait(for: 4)
    #expect(values.allSatisfy { $0 })
  }

  @Test("The requests of a suspended download are suspended, and resumed with it") func requests()
    async throws
  {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    let gate = Gate()
    file.script { $1.held(after: 1000, by: gate) }
    let server = try file.server()
    let monitor = ClosureEventMonitor(queue: queue)
    let suspensions = Recorder<UUID>()
    monitor.requestDidSuspend = { suspensions.add($0.id) }
    let download = download(server, session: .real(eventMonitors: [monitor]))
    download.resume()
    await gate.waitUntilReached(count: 4)
    download.suspend()
    #expect(Set(await suspensions.wait(for: 4)).count == 4)
    gate.open()
    download.resume()
    #expect(await download.response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A delay that ends during a suspension counts when the download is resumed")
  func missedWakeUp() async throws {
    defer { folder.remove() }
    let (file, other) = (SegmentedFile(size: 100 * KiB), SegmentedFile(size: 100 * KiB))
    for file in [file, other] {
      file.script { question, reply in
        question.index == 0 ? Reply.status(429).with(header: "Retry-After", value: "1") : reply
      }
    }
    let (server, otherServer) = (try file.server(), try other.server())
    let ends = Recorder<SegmentedDownload.Response>()
    let download = download(server).downloadProgress(queue: queue) { reports.add($0) }
      .response(queue: queue) { ends.add($0) }
    let core = download.core
    download.resume()
    await reports.wait(for: 1)
    download.suspend()
    // The delay of this download begins later, and has ended when the download has.
    let clock = self.download(otherServer, to: folder.url.appendingPathComponent("clock"))
    #expect(await clock.response.error == nil)
    #expect(file.questions.count == 1)
    #expect(await eventually { core.state.withLock { $0.delays.isEmpty } })
    core.queue.sync {}
    // Without the note, the download would wait without end.
    try #require(core.state.withLock { $0.isWakeUpMissed }, "the end of the delay is forgotten")
    download.resume()
    #expect(try await ends.value(0).error == nil)
    let isWhole = try Data(contentsOf: folder.destination) == file.bytes
    #expect(isWhole)
  }

  @Test("A download that has ended can neither be suspended nor resumed, and has the same response")
  func afterTheEnd() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    let server = try file.server()
    let download = download(server)
    #expect(await download.response.error == nil)
    let count = file.questions.count
    for change in [{ download.suspend() }, { download.resume() }, { download.cancel() }] {
      _ = change()
      let response = await download.response
      #expect(response.fileURL == folder.destination)
      #expect(response.progress.completedBytes == Int64(file.size))
    }
    #expect(file.questions.count == count)
  }

  @Test("A download keeps no sequence of its progress that was left early") func leftSequences() async throws
  {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    let server = try file.server()
    let download = download(server, session: .real(startRequestsImmediately: false))
    for _ in 0..<100 { _ = download.progress() }
    func count() -> Int { download.core.state.withLock { $0.progressObservers.sequences.count } }
    #expect(count() == 0)
    let kept = download.progress()
    #expect(count() == 1)
    download.resume()
    var last: SegmentedDownload.Progress?
    for await progress in kept { last = progress }
    #expect(last == (await download.response.progress))
    for await _ in download.progress() { Issue.record("a download that has ended has no progress") }
    #expect(count() == 0)
  }

  /// Makes a download that nothing refers to, and returns its progress.
  private func progressOfReleased(by session: Session, isSuspended: Bool) -> StreamOf<
    SegmentedDownload.Progress
  > {
    let download = session.segmentedDownload("http://a.test/file", to: folder.destination)
    return (isSuspended ? download.suspend() : download).progress()
  }

  @Test("A download that was never started ends its sequences when it is released", arguments: [false, true])
  func releasedDownload(isSuspended: Bool) async {
    defer { folder.remove() }
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: isSuspended)
    let progress = progressOfReleased(by: session, isSuspended: isSuspended)
    for await _ in progress { Issue.record("a download that was never started has no progress") }
    #expect(session.core.activeStreams.isEmpty)
  }

  private struct WeakCore {
    weak let core: SegmentedDownloadCore?
  }

  /// Suspends a download during a delay, and returns its progress when the delay is over. Nothing refers to the
  /// download then.
  private func progressOfIdle(
    _ server: HTTPTestServer, by session: Session, _ ends: Recorder<SegmentedDownload.Response>
  ) async -> (progress: StreamOf<SegmentedDownload.Progress>, reference: WeakCore) {
    let download = download(server, session: session).response(queue: queue) { ends.add($0) }
    let core = download.core
    download.resume()
    #expect(await eventually { core.state.withLock { !$0.delays.isEmpty } })
    #expect(await eventually { session.core.activeCount == 0 })
    download.suspend()
    core.queue.sync {}
    // The end of the delay, a minute too early.
    let delays = core.state.withLock { state in
      defer { state.delays = [:] }
      return state.delays
    }
    for delay in delays.values {
      delay.cancel()
      await delay.value
    }
    core.wake()
    return (download.progress(), WeakCore(core: core))
  }

  @Test("A started download that is suspended and released ends with its session") func idleDownload()
    async throws
  {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    file.script { _, _ in Reply.status(429).with(header: "Retry-After", value: "60") }
    let server = try file.server()
    let session = Session.real(startRequestsImmediately: false)
    let ends = Recorder<SegmentedDownload.Response>()
    let (progress, reference) = await progressOfIdle(server, by: session, ends)
    try #require(session.core.activeStreams.count == 1, "the download is gone, with its handlers")
    session.core.invalidate(.sessionDeinitialized)
    for await _ in progress {}
    #expect(try await ends.value(0).error?.isSessionDeinitializedError == true)
    #expect(await eventually { reference.core == nil }, "the session retains a download that has ended")
  }

  private final class EndListener: SessionDelegate, @unchecked Sendable {
    let ends = Recorder<String>()
    override func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
      ends.add("session")
    }
  }

  @Test("The end of a session is reported after the end of a download that is just being reported")
  func endOfSession() async {
    defer { folder.remove() }
    let listener = EndListener()
    let session = Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false, observers: SessionObservers(delegate: listener))
    let download = session.segmentedDownload("http://a.test/file", to: folder.destination)
    // Called on the queue of the download, before the handlers of the response.
    download.core.addProgressHandler { _ in
      session.session.finishTasksAndInvalidate()
      for _ in 0..<2 { session.rootQueue.sync {} }
    }
    download.core.addHandler { _ in listener.ends.add("download") }
    download.cancel()
    #expect(await listener.ends.wait(for: 2) == ["download", "session"])
  }

  @Test("A session that does not start requests waits for resume()") func laterStart() async throws {
    defer { folder.remove() }
    let (file, other) = (SegmentedFile(size: 100 * KiB), SegmentedFile(size: 100 * KiB))
    let (server, otherServer) = (try file.server(), try other.server())
    let ends = Recorder<SegmentedDownload.Response>()
    let download = download(server, session: .real(startRequestsImmediately: false))
      .response(queue: queue) { ends.add($0) }
    // A download that begins later has ended.
    #expect(
      await self.download(otherServer, to: folder.url.appendingPathComponent("other")).response.error == nil)
    #expect(file.questions.isEmpty)
    download.resume()
    #expect(try await ends.value(0).error == nil)
  }
}
