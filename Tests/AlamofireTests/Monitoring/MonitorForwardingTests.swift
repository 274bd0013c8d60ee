import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// Each event reaches its own closure with its own values, through a monitor of several monitors.
@Suite("Forwarding of events", .timeLimit(.minutes(1))) struct MonitorForwardingTests {
  private let closures = ClosureEventMonitor(queue: DispatchQueue(label: "forwarding"))
  private let heard = Recorder<String>()
  private let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
  private let first = URLRequest(url: URL(fileURLWithPath: "/first"))
  private let second = URLRequest(url: URL(fileURLWithPath: "/second"))
  private let file = URL(fileURLWithPath: "/file")
  private let error = AFError.explicitlyCancelled

  private var all: CompositeEventMonitor { CompositeEventMonitor(monitors: [closures]) }
  private var response: HTTPURLResponse {
    get throws {
      try #require(HTTPURLResponse(url: file, statusCode: 299, httpVersion: nil, headerFields: nil))
    }
  }

  /// Sends events, and returns what the closures recorded.
  private func reported(_ send: (CompositeEventMonitor) throws -> Void) rethrows -> [String] {
    try send(all)
    closures.queue.sync {}
    return heard.values
  }

  private static func word(_ result: Result<some Sendable, some Error>) -> String {
    if case .success = result { return "success" }
    return "failure"
  }

  /// A monitor of the times that serializing has taken.
  private final class DurationSpy: EventMonitor {
    let queue = DispatchQueue(label: "duration spy")
    let durations = Recorder<TimeInterval>()

    func request<Value: Sendable>(
      _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
    ) {
      durations.add(response.serializationDuration)
    }

    func request<Value: Sendable>(
      _ request: DownloadRequest, didParseResponse response: DownloadResponse<Value, AFError>
    ) {
      durations.add(response.serializationDuration)
    }
  }

  @Test("Monitors see how long an awaited response was serialized", arguments: [false, true])
  func durations(isDownload: Bool) async {
    let spy = DurationSpy()
    let session = Session.retained(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: [spy]))
    let duration: TimeInterval
    if isDownload {
      let response = await session.download("http://a.test/").serializingString().response
      response.removeFile()
      duration = response.serializationDuration
    } else {
      duration = await session.request("http://a.test/").serializingString().response.serializationDuration
    }
    spy.queue.sync {}
    #expect(duration > 0 && spy.durations.values == [duration])
  }

  @Test("The monitor of a request has those of its session, then its own") func monitorOfRequest() throws {
    let (shared, own) = (EventSpy(), EventSpy())
    let session = Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false,
      observers: SessionObservers(eventMonitors: [shared]))
    let request = session.request("http://a.test/")
    #expect(request.eventMonitor as? CompositeEventMonitor === session.eventMonitor)
    let monitor = try #require(request.eventMonitor(own).eventMonitor as? CompositeEventMonitor)
    #expect(monitor.monitors.map { $0 as? EventSpy === shared } == [true, false])
    #expect(monitor.monitors.map { $0 as? EventSpy === own } == [false, true])
  }

  @Test("Without a queue the closures are called on the main queue") func queue() {
    #expect(ClosureEventMonitor().queue.label == DispatchQueue.main.label)
  }

  @Test("The events of a session and its tasks") func taskEvents() throws {
    let facade = session.session
    let request = session.request("http://a.test/")
    let download = session.download("http://a.test/")
    // The tasks of requests that have begun.
    let record = TaskRecord(of: request)
    let (task, downloading) = (DataTaskFacade(record), DownloadTaskFacade(TaskRecord(of: download)))
    let response = try response
    let space = URLProtectionSpace(
      host: "a.test", port: 1, protocol: nil, realm: nil, authenticationMethod: nil)
    let challenge = URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: nil, previousFailureCount: 7, failureResponse: nil,
      error: nil, sender: SilentSender())
    let heard = heard
    closures.sessionDidBecomeInvalidWithError = { heard.add("invalid \($0 === facade) \($1 != nil)") }
    closures.taskDidReceiveChallenge = { heard.add("challenge \($1 === task) \($2.previousFailureCount)") }
    closures.taskDidSendBodyData = { heard.add("sent \($1 === task) \($2) \($3) \($4)") }
    closures.taskNeedNewBodyStream = { heard.add("stream \($1 === task)") }
    closures.taskWillPerformHTTPRedirection = {
      heard.add("redirect \($1 === task) \($2.statusCode) \($3.url?.path ?? "")")
    }
    closures.taskDidFinishCollectingMetrics = { heard.add("metrics \($1 === task) \($2.redirectCount)") }
    closures.taskDidComplete = { heard.add("complete \($1 === task) \($2 != nil)") }
    closures.taskIsWaitingForConnectivity = { heard.add("waiting \($1 === task)") }
    closures.dataTaskDidReceiveResponse = {
      heard.add("response \($1 === task) \(($2 as? HTTPURLResponse)?.statusCode ?? 0)")
    }
    closures.dataTaskDidReceiveData = { heard.add("data \($1 === task) \($2.count)") }
    closures.dataTaskWillCacheResponse = { heard.add("cache \($1 === task) \($2.data.count)") }
    closures.downloadTaskDidResumeAtOffset = { heard.add("offset \($1 === downloading) \($2) \($3)") }
    closures.downloadTaskDidWriteData = { heard.add("wrote \($1 === downloading) \($2) \($3) \($4)") }
    closures.downloadTaskDidFinishDownloadingToURL = { heard.add("file \($1 === downloading) \($2.path)") }
    let metrics = TaskMetrics(from: Date())
    let words = reported { all in
      all.urlSession(facade, didBecomeInvalidWithError: error)
      all.urlSession(facade, task: task, didReceive: challenge)
      all.urlSession(
        facade, task: task, didSendBodyData: 1, totalBytesSent: 2, totalBytesExpectedToSend: 3)
      all.urlSession(facade, taskNeedsNewBodyStream: task)
      all.urlSession(facade, task: task, willPerformHTTPRedirection: response, newRequest: second)
      all.urlSession(facade, task: task, didFinishCollecting: metrics)
      all.urlSession(facade, task: task, didCompleteWithError: error)
      all.urlSession(facade, taskIsWaitingForConnectivity: task)
      all.urlSession(facade, dataTask: task, didReceive: response)
      all.urlSession(facade, dataTask: task, didReceive: Data(count: 4))
      all.urlSession(
        facade, dataTask: task,
        willCacheResponse: CachedURLResponse(response: response, data: Data(count: 5)))
      all.urlSession(facade, downloadTask: downloading, didResumeAtOffset: 6, expectedTotalBytes: 7)
      all.urlSession(
        facade, downloadTask: downloading, didWriteData: 8, totalBytesWritten: 9,
        totalBytesExpectedToWrite: 10)
      all.urlSession(facade, downloadTask: downloading, didFinishDownloadingTo: file)
    }
    #expect(
      words == [
        "invalid true true", "challenge true 7", "sent true 1 2 3", "stream true",
        "redirect true 299 /second",
        "metrics true 0", "complete true true", "waiting true", "response true 299", "data true 4",
        "cache true 5", "offset true 6 7", "wrote true 8 9 10", "file true /file",
      ])
  }

  @Test("The events of every request") func requestEvents() {
    let request: Request = session.request("http://a.test/")
    let task = DataTaskFacade(TaskRecord(of: request))
    let heard = heard
    closures.requestDidCreateInitialURLRequest = {
      heard.add("initial \($0 === request) \($1.url?.path ?? "")")
    }
    closures.requestDidFailToCreateURLRequestWithError = {
      heard.add("not created \($0 === request) \($1.isExplicitlyCancelledError)")
    }
    closures.requestDidAdaptInitialRequestToAdaptedRequest = {
      heard.add("adapted \($0 === request) \($1.url?.path ?? "") \($2.url?.path ?? "")")
    }
    closures.requestDidFailToAdaptURLRequestWithError = {
      heard.add("not adapted \($0 === request) \($1.url?.path ?? "") \($2.isExplicitlyCancelledError)")
    }
    closures.requestDidCreateURLRequest = { heard.add("created \($0 === request) \($1.url?.path ?? "")") }
    closures.requestDidCreateTask = { heard.add("task \($0 === request) \($1 === task)") }
    closures.requestDidGatherMetrics = { heard.add("metrics \($0 === request) \($1.redirectCount)") }
    closures.requestDidFailTaskEarlyWithError = {
      heard.add("early \($0 === request) \($1 === task) \($2.isExplicitlyCancelledError)")
    }
    closures.requestDidCompleteTaskWithError = {
      heard.add("complete \($0 === request) \($1 === task) \($2 != nil)")
    }
    closures.requestIsRetrying = { heard.add("retrying \($0 === request)") }
    closures.requestDidFinish = { heard.add("finish \($0 === request)") }
    closures.requestDidResume = { heard.add("resume \($0 === request)") }
    closures.requestDidResumeTask = { heard.add("resume task \($0 === request) \($1 === task)") }
    closures.requestDidSuspend = { heard.add("suspend \($0 === request)") }
    closures.requestDidSuspendTask = { heard.add("suspend task \($0 === request) \($1 === task)") }
    closures.requestDidCancel = { heard.add("cancel \($0 === request)") }
    closures.requestDidCancelTask = { heard.add("cancel task \($0 === request) \($1 === task)") }
    let words = reported { all in
      all.request(request, didCreateInitialURLRequest: first)
      all.request(request, didFailToCreateURLRequestWithError: error)
      all.request(request, didAdaptInitialRequest: first, to: second)
      all.request(request, didFailToAdaptURLRequest: first, withError: error)
      all.request(request, didCreateURLRequest: second)
      all.request(request, didCreateTask: task)
      all.request(request, didGatherMetrics: TaskMetrics(from: Date()))
      all.request(request, didFailTask: task, earlyWithError: error)
      all.request(request, didCompleteTask: task, with: error)
      all.requestIsRetrying(request)
      all.requestDidFinish(request)
      all.requestDidResume(request)
      all.request(request, didResumeTask: task)
      all.requestDidSuspend(request)
      all.request(request, didSuspendTask: task)
      all.requestDidCancel(request)
      all.request(request, didCancelTask: task)
    }
    #expect(
      words == [
        "initial true /first", "not created true true", "adapted true /first /second",
        "not adapted true /first true", "created true /second", "task true true", "metrics true 0",
        "early true true true", "complete true true true", "retrying true", "finish true", "resume true",
        "resume task true true", "suspend true", "suspend task true true", "cancel true",
        "cancel task true true",
      ])
  }

  @Test("The events of each kind of request") func kindEvents() throws {
    let data = session.request("http://a.test/")
    let upload = session.upload(Data(), to: "http://a.test/")
    let download = session.download("http://a.test/")
    let stream = session.streamRequest("http://a.test/")
    let task = DownloadTaskFacade(TaskRecord(of: download))
    let response = try response
    nonisolated(unsafe) let input = InputStream(data: Data())
    let heard = heard
    closures.requestDidValidateRequestResponseDataWithResult = {
      heard.add(
        "data \($0 === data) \($1?.url?.path ?? "") \($2.statusCode) \($3?.count ?? 0) \(Self.word($4))")
    }
    closures.requestDidParseResponse = { heard.add("parsed \($0 === data) \($1.data?.count ?? 0)") }
    closures.requestDidValidateRequestResponseWithResult = {
      heard.add("stream \($0 === stream) \($1?.url?.path ?? "") \($2.statusCode) \(Self.word($3))")
    }
    closures.requestDidCreateUploadable = { request, uploadable in
      guard case .data(let data) = uploadable else { return }
      heard.add("uploadable \(request === upload) \(data.count)")
    }
    closures.requestDidFailToCreateUploadableWithError = {
      heard.add("no uploadable \($0 === upload) \($1.isExplicitlyCancelledError)")
    }
    closures.requestDidProvideInputStream = { heard.add("input \($0 === upload) \($1 === input)") }
    closures.requestDidFinishDownloadingUsingTaskWithResult = {
      heard.add("downloaded \($0 === download) \($1 === task) \((try? $2.get())?.path ?? "")")
    }
    closures.requestDidCreateDestinationURL = { heard.add("destination \($0 === download) \($1.path)") }
    closures.requestDidValidateRequestResponseFileURLWithResult = {
      heard.add(
        "file \($0 === download) \($1?.url?.path ?? "") \($2.statusCode) \($3?.path ?? "") \(Self.word($4))")
    }
    closures.requestDidParseDownloadResponse = {
      heard.add("parsed file \($0 === download) \($1.fileURL?.path ?? "")")
    }
    let words = reported { all in
      all.request(
        data, didValidateRequest: first, response: response, data: Data(count: 3), withResult: .success(()))
      all.request(
        data,
        didParseResponse: DataResponse<Data?, AFError>(
          request: nil, response: nil, data: Data(count: 4), metrics: nil, serializationDuration: 0,
          result: .success(nil)))
      all.request(
        stream, didValidateRequest: second, response: response, withResult: .failure(error))
      all.request(upload, didCreateUploadable: .data(Data(count: 5)))
      all.request(upload, didFailToCreateUploadableWithError: error)
      all.request(upload, didProvideInputStream: input)
      all.request(download, didFinishDownloadingUsing: task, with: .success(file))
      all.request(download, didCreateDestinationURL: file)
      all.request(
        download, didValidateRequest: first, response: response, fileURL: file, withResult: .failure(error))
      all.request(
        download,
        didParseResponse: DownloadResponse<URL?, AFError>(
          request: nil, response: nil, fileURL: file, resumeData: nil, metrics: nil,
          serializationDuration: 0, result: .success(nil)))
    }
    #expect(
      words == [
        "data true /first 299 3 success", "parsed true 4", "stream true /second 299 failure",
        "uploadable true 5", "no uploadable true true", "input true true", "downloaded true true /file",
        "destination true /file", "file true /first 299 /file failure", "parsed file true /file",
      ])
  }

  @Test("Closures are called on the queue of their monitor") func queueOfClosures() async {
    let queue = DispatchQueue(label: "closures")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let monitor = ClosureEventMonitor(queue: queue)
    let calls = Recorder<Bool?>()
    monitor.requestDidResume = { _ in calls.add(DispatchQueue.getSpecific(key: key)) }
    let session = Session.retained(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: [monitor]))
    _ = await session.request("http://a.test/").serializingData().response
    #expect(await calls.wait(for: 1) == [true])
  }

  @Test("A monitor without closures has no effect, and each monitor uses its own queue") func queues() {
    let (left, right) = (EventSpy(), EventSpy())
    let both = CompositeEventMonitor(monitors: [left, closures, right])
    both.requestDidResume(session.request("http://a.test/"))
    closures.queue.sync {}
    #expect(left.reported == ["requestDidResume"] && right.reported == ["requestDidResume"])
  }
}
