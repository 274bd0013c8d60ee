import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// The tasks of each kind show their request, and control it.
@Suite("Tasks of each kind", .timeLimit(.minutes(1))) struct TaskFacadeTests {
  enum Kind: CaseIterable { case data, upload, download, webSocket }

  private let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)

  private func request(_ kind: Kind) -> Request {
    switch kind {
    case .data: session.request("http://a.test/")
    case .upload: session.upload(Data(), to: "http://a.test/")
    case .download: session.download("http://a.test/")
    case .webSocket: session.webSocketRequest(to: "ws://a.test/")
    }
  }

  private func isOf(_ kind: Kind, _ task: URLSessionTask) -> Bool {
    switch kind {
    case .data: task is URLSessionDataTask && !(task is URLSessionUploadTask)
    case .upload: task is URLSessionUploadTask
    case .download: task is URLSessionDownloadTask
    case .webSocket: task is URLSessionWebSocketTask
    }
  }

  @Test("A task shows its own values after its end", arguments: Kind.allCases)
  func values(kind: Kind) throws {
    let request = request(kind)
    let record = TaskRecord(of: request)
    let task = request.makeTask(record)
    #expect(isOf(kind, task))
    var view = TaskRecord.View()
    view.originalRequest = URLRequest(url: URL(fileURLWithPath: "/original"))
    view.currentRequest = URLRequest(url: URL(fileURLWithPath: "/current"))
    view.response = URLResponse(
      url: URL(fileURLWithPath: "/response"), mimeType: nil, expectedContentLength: 9, textEncodingName: nil)
    view.error = TestError(text: "end")
    (view.count.sent, view.count.expectedToSend) = (1, 2)
    (view.count.received, view.count.expectedToReceive) = (3, 4)
    record.end(view)
    #expect(task.taskIdentifier == record.identifier)
    #expect(task.originalRequest?.url?.path == "/original" && task.currentRequest?.url?.path == "/current")
    #expect(task.response?.url?.path == "/response")
    #expect(task.error as? TestError == TestError(text: "end"))
    #expect(task.state == .completed)
    #expect(task.countOfBytesSent == 1 && task.countOfBytesExpectedToSend == 2)
    #expect(task.countOfBytesReceived == 3 && task.countOfBytesExpectedToReceive == 4)
    #expect(task.progress === request.downloadProgress)
    // A task that is over controls nothing.
    task.resume()
    task.cancel()
    task.priority = 0.9
    #expect(request.isInitialized && request.priority == URLSessionTask.defaultPriority)
  }

  @Test("A running task controls its request", arguments: Kind.allCases)
  func control(kind: Kind) {
    let request = request(kind)
    let task = request.makeTask(TaskRecord(of: request))
    #expect(task.priority == URLSessionTask.defaultPriority && task.state == .suspended)
    task.priority = 0.75
    #expect(request.priority == 0.75 && task.priority == 0.75)
    task.suspend()
    #expect(request.isSuspended)
    task.resume()
    #expect(request.isResumed)
    task.cancel()
    #expect(request.isCancelled)
  }

  @Test("The task of a released request is complete", arguments: Kind.allCases)
  func released(kind: Kind) {
    let task = {
      let request = self.request(kind)
      return request.makeTask(TaskRecord(of: request))
    }()
    #expect(task.state == .completed && task.originalRequest == nil)
    #expect(task.priority == URLSessionTask.defaultPriority && task.progress.completedUnitCount == 0)
    task.cancel()
  }

  @Test("Only a running download gives resume data to its task") func resumeData() async {
    let download = session.download("http://a.test/")
    let record = TaskRecord(of: download)
    let task = DownloadTaskFacade(record)
    record.end(TaskRecord.View())
    let data = Recorder<Data?>()
    task.cancel { data.add($0) }
    #expect(data.count == 1 && download.isInitialized, "a task that is over has none, and cancels nothing")
  }
}
