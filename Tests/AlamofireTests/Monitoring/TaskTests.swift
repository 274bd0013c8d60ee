import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("The tasks of a request", .timeLimit(.minutes(5)))
struct TaskTests {
  @Test("A task has the state of its attempt")
  func view() async throws {
    let (reached, gate) = (Latch(), Latch())
    let fake = FakeTransport(.redirect(302, to: "/next"), .text("ok").held(by: gate, reached: reached))
    let request = Session.retained(fake: fake).request("http://a.test/")
    #expect(request.task == nil)
    async let response = request.end()
    await reached.wait()
    let task = try #require(request.task)
    #expect(task is URLSessionDataTask)
    #expect(task.state == .running)
    #expect(task.originalRequest?.url?.path == "/")
    #expect(task.currentRequest?.url?.path == "/next")
    #expect(task.response == nil)
    gate.open()
    _ = await response
    #expect(task.state == .completed)
    #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(task.error == nil)
    #expect(request.task === task)
    #expect(request.performedRequests.map(\.url?.path) == ["/next"])
  }

  @Test("A request that was suspended before it is sent has a task") func suspendedTask() async throws {
    let answers = Recorder<@Sendable () -> Void>()
    let adapter = Adapter { request, _, completion in answers.add { completion(.success(request)) } }
    let fake = FakeTransport()
    let request = Session.retained(fake: fake).request("http://a.test/", interceptor: adapter)
    request.resume()
    let answer = try await answers.value(0)
    request.suspend()
    answer()
    #expect(await eventually { request.task != nil })
    #expect(fake.requests.isEmpty)
    request.resume()
    #expect(await request.end().error == nil)
  }

  /// Adds them while a `URLProtocol` class is asked: the request was created, and its task was not.
  @Test("A handler and a sequence that are added just before the task receive it once")
  func observersBeforeTask() async throws {
    let requests = Recorder<DataRequest>()
    let tasks = Recorder<URLSessionTask>()
    let sequences = Recorder<StreamOf<URLSessionTask>>()
    let script = ProtocolScript {
      guard let request = requests.values.first else { return }
      request.onURLSessionTaskCreation(on: .global()) { tasks.add($0) }
      sequences.add(request.urlSessionTasks())
    } _: { loader, client in
      loader.respond(client)
      loader.finish(client)
    }
    let request = Session.scripted(startRequestsImmediately: false).request(script.url)
    requests.add(request)
    request.resume()
    #expect(await request.end().error == nil)
    let task = try #require(request.task)
    await tasks.wait(for: 1)
    #expect(tasks.values == [task])
    var seen: [URLSessionTask] = []
    for await task in try await sequences.value(0) { seen.append(task) }
    #expect(seen == [task])
  }

  @Test("Each attempt has its own task")
  func attempts() async throws {
    let fake = FakeTransport(.failure(.timedOut), .status(500))
    let policy = Retrier { request, _, _, completion in
      completion(request.retryCount < 1 ? .retry : .doNotRetry)
    }
    let request = Session.retained(fake: fake).request("http://a.test/").retry(using: policy)
    let created = Recorder<Int>()
    request.onURLSessionTaskCreation(on: DispatchQueue(label: "tasks")) { created.add($0.taskIdentifier) }
    _ = await request.end()
    let tasks = request.tasks
    #expect(tasks.count == 2)
    #expect((tasks.first?.error as? URLError)?.code == .timedOut)
    #expect((tasks.last?.response as? HTTPURLResponse)?.statusCode == 500)
    #expect(tasks.allSatisfy { $0.state == .completed })
    #expect(await created.wait(for: 2) == tasks.map(\.taskIdentifier))
    #expect(request.firstTask === tasks.first)
  }

  @Test("The task of a retry does not show the response of the attempt before")
  func responseOfEarlierAttempt() async throws {
    let (reached, gate) = (Latch(), Latch())
    let fake = FakeTransport(.status(500, "x"), .text("ok").held(by: gate, reached: reached))
    let session = Session.retained(
      fake: fake, interceptor: SpyInterceptor(retries: 1),
      observers: SessionObservers(eventMonitors: [EventSpy()]))
    let request = session.request("http://a.test/").validate()
    async let response = request.end()
    await reached.wait()
    let tasks = request.tasks
    #expect(tasks.map { ($0.response as? HTTPURLResponse)?.statusCode } == [500, nil])
    gate.open()
    #expect(await response.response?.statusCode == 200)
    #expect(tasks.map { ($0.response as? HTTPURLResponse)?.statusCode } == [500, 200])
  }

  @Test("Tasks that are first used after the end have the same values", arguments: [false, true])
  func late(lastFails: Bool) async throws {
    let fake = FakeTransport(.failure(.timedOut), lastFails ? .failure(.connectionLost) : .ok)
    let policy = Retrier { request, _, _, completion in
      completion(request.retryCount < 1 ? .retry : .doNotRetry)
    }
    // No other observer, not even the notifications of another test.
    let session = Session.retained(fake: fake, observers: SessionObservers(eventMonitors: []))
    let request = session.request("http://a.test/").retry(using: policy)
    _ = await request.end()
    #expect(request.tasks.count == 2)
    #expect(request.tasks.map(\.taskIdentifier) == request.tasks.map(\.taskIdentifier))
    #expect((request.tasks.first?.error as? URLError)?.code == .timedOut)
    #expect(request.tasks.first?.response == nil)
    #expect((request.tasks.last?.response as? HTTPURLResponse)?.statusCode == (lastFails ? nil : 200))
    #expect(
      (request.tasks.last?.error as? URLError)?.code
        == (lastFails ? URLError.Code.networkConnectionLost : nil))
    #expect(request.tasks.allSatisfy { $0.state == .completed })
  }

  @Test("Cancelling the task cancels the request, and has no effect after the end")
  func cancel() async throws {
    let (reached, gate) = (Latch(), Latch())
    let fake = FakeTransport(.text("ok").held(by: gate, reached: reached))
    let request = Session.retained(fake: fake).request("http://a.test/")
    async let response = request.end()
    await reached.wait()
    let task = try #require(request.task)
    task.suspend()
    #expect(request.isSuspended)
    task.resume()
    #expect(request.isResumed)
    task.cancel()
    #expect(request.isCancelled)
    gate.open()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    #expect((task.error as? URLError)?.code == .cancelled)

    let second = Session.retained(fake: FakeTransport()).request("http://a.test/")
    _ = await second.end()
    second.task?.cancel()
    #expect(second.isFinished)
  }

  @Test("Uploads and downloads have tasks of their kind")
  func kinds() async {
    let session = Session.retained(fake: FakeTransport())
    let upload = session.upload(Data("x".utf8), to: "http://a.test/")
    _ = await upload.end()
    #expect(upload.task is URLSessionUploadTask)
    let download = session.download("http://a.test/")
    let response = await download.serializingData().response
    defer { response.removeFile() }
    #expect(download.task is URLSessionDownloadTask)
  }
}
