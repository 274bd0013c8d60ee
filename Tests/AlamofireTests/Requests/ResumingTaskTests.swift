import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Download tasks from resume data", .timeLimit(.minutes(5)))
struct ResumingTaskTests {
  private final class Collector: SessionDelegate, @unchecked Sendable {
    let files = Recorder<(task: Int, url: URL)>()
    let ends = Recorder<URLError.Code?>()
    let events = Recorder<String>()

    override func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
      events.add("file")
      files.add((downloadTask.taskIdentifier, location))
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      events.add("end")
      ends.add((error as? URLError)?.code)
    }
  }

  @Test("The rest is downloaded when the task is resumed") func rest() async throws {
    let file = VersionedFile(size: 200_000)
    let server = try HTTPTestServer(routes: file.routes)
    let collector = Collector()
    let session = Session(delegate: collector)
    file.breakAfter(70_000)
    let request = session.download(server.url("/file"))
    let data = await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0.resumeData) }
    }
    _ = await collector.ends.wait(for: 1)
    let task = request.task(forResumeData: try #require(data), using: session.session)
    #expect(task is URLSessionDownloadTask)
    #expect(task.state == .suspended)
    #expect(server.requestCount == 1)
    task.resume()
    let (identifier, location) = try #require(await collector.files.wait(for: 1).first)
    defer { try? FileManager.default.removeItem(at: location) }
    #expect(identifier == task.taskIdentifier)
    #expect(try Data(contentsOf: location) == file.bytes)
    #expect(await collector.ends.wait(for: 2).last == .some(nil))
    #expect(collector.events.values == ["end", "file", "end"])
    #expect(server.recordedRequests.last?.header("Range") == "bytes=70000-")
    #expect(request.tasks.count == 1, "the task is none of the request's")
  }

  @Test("Invalid resume data ends the task with an error") func invalidData() async {
    let session = Session(fake: FakeTransport())
    let request = session.download("http://a.test/")
    let task = request.task(forResumeData: Data("nonsense".utf8), using: session.session)
    task.resume()
    while task.state != .completed { await Task.yield() }
    #expect(task.error != nil)
  }

  @Test("A task ends by cancel, and with its session") func end() async {
    var session: Session? = Session(fake: FakeTransport(), startRequestsImmediately: false)
    let request = session?.download("http://a.test/")
    let facade = session?.session
    guard let request, let facade else { return }
    let tasks = (0..<2).map { _ in request.task(forResumeData: Data("nonsense".utf8), using: facade) }
    #expect(tasks[0].taskIdentifier != tasks[1].taskIdentifier)
    tasks[0].cancel()
    session = nil
    while tasks.contains(where: { $0.state != .completed }) { await Task.yield() }
  }

  @Test("Another session creates its own task") func otherSession() {
    let session = Session(fake: FakeTransport())
    let request = session.download("http://a.test/")
    let stock = URLSession(configuration: .ephemeral)
    let task = request.task(forResumeData: Data(), using: stock)
    #expect(session.core.activeCount == 0)
    task.cancel()
    stock.invalidateAndCancel()
  }
}
