import Foundation
import FoundationNetworking
import Testing

@testable import Alamofire

@Suite("Sequences of a request's events", .timeLimit(.minutes(5)))
struct RequestSequenceTests {
  private func all<Element: Sendable>(_ stream: StreamOf<Element>) async -> [Element] {
    var elements: [Element] = []
    for await element in stream { elements.append(element) }
    return elements
  }

  private let twice = Retrier { request, _, _, completion in
    completion(request.retryCount < 1 ? .retry : .doNotRetry)
  }

  @Test("Requests, tasks and commands of every attempt are delivered to each sequence and the closure")
  func attempts() async {
    let fake = FakeTransport(.failure(.timedOut))
    let request = Session.retained(fake: fake).request("http://a.test/").retry(using: twice)
    let heard = Recorder<URLRequest>()
    request.onURLRequestCreation(on: DispatchQueue(label: "requests")) { heard.add($0) }
    let (first, second) = (request.urlRequests(), request.urlRequests())
    let (tasks, commands) = (request.urlSessionTasks(), request.cURLDescriptions())
    _ = await request.end()
    #expect(await all(first).count == 2)
    #expect(await all(second).count == 2)
    #expect(await heard.wait(for: 2).count == 2)
    #expect(await all(tasks).map(\.taskIdentifier) == request.tasks.map(\.taskIdentifier))
    let lines = await all(commands)
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.hasPrefix("$ curl -v") })
  }

  private func urlRequest(_ path: String) throws -> URLRequest {
    try URLRequest(url: "http://a.test/\(path)", method: .get)
  }

  /// Adds a sequence, and lets `change` happen while its first element is made.
  private func sequence(
    of request: Request, whileAdding change: @escaping @Sendable () -> Void
  ) -> StreamOf<URLRequest> {
    let isFirst = Latch()
    return StreamOf { continuation in
      request.core.listen(
        continuation, \.requests, of: request, after: { $0.results.requestNumber },
        current: {
          defer {
            if !isFirst.isOpen {
              isFirst.open()
              change()
            }
          }
          return request.request
        })
    }
  }

  @Test("A sequence that is added while another attempt begins has its elements in order")
  func newerElement() async throws {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    request.core.created(try urlRequest("1"), of: request)
    let second = try urlRequest("2")
    let sequence = sequence(of: request) { request.core.created(second, of: request) }
    request.core.created(try urlRequest("3"), of: request)
    _ = request.core.nextSink(isOnLoop: false)
    let paths = await all(sequence).compactMap { $0.url?.lastPathComponent }
    #expect(paths == ["2", "3"] || paths == ["1", "2", "3"], "\(paths)")
  }

  @Test("A sequence that is added while its request ends has the last element") func lastElement()
    async throws
  {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    request.core.created(try urlRequest("1"), of: request)
    let sequence = sequence(of: request) { _ = request.core.nextSink(isOnLoop: false) }
    #expect(await all(sequence).compactMap { $0.url?.lastPathComponent } == ["1"])
    #expect(request.core.listenerCount == 0)
  }

  @Test("Progress is delivered to each sequence and the closure")
  func progress() async {
    var reply = FakeReply(chunks: [Data(count: 10), Data(count: 20)])
    reply.fields = [HTTPHeader(name: "Content-Length", value: "30")]
    let request = Session.retained(fake: FakeTransport(reply)).upload(Data(count: 5), to: "http://a.test/")
    let closure = Recorder<Double>()
    request.downloadProgress(queue: DispatchQueue(label: "progress")) { closure.add($0.fractionCompleted) }
    let (first, second, upload) = (
      request.downloadProgress(), request.downloadProgress(), request.uploadProgress()
    )
    _ = await request.end()
    #expect(await all(first).count == 2)
    #expect(await all(second).last?.fractionCompleted == 1)
    #expect(await all(upload).map(\.completedUnitCount) == [5])
    #expect(await closure.wait(for: 2).count == 2)
  }

  @Test("A buffering policy limits the elements of each sequence")
  func policies() async {
    let fake = FakeTransport { _, index in
      FakeReply(status: index == 0 ? 500 : 200, chunks: [Data(count: 10), Data(count: 20)])
    }
    let request = Session.retained(fake: fake).upload(Data(count: 5), to: "http://a.test/").validate()
      .retry(using: twice)
    let progress = (
      request.uploadProgress(bufferingPolicy: .bufferingNewest(1)),
      request.downloadProgress(bufferingPolicy: .bufferingNewest(1))
    )
    let requests = request.urlRequests(bufferingPolicy: .bufferingNewest(1))
    let tasks = request.urlSessionTasks(bufferingPolicy: .bufferingNewest(1))
    let commands = [
      request.cURLDescriptions(bufferingPolicy: .bufferingNewest(1)),
      request.cURLDescriptions(redacting: .standard, bufferingPolicy: .bufferingNewest(1)),
    ]
    let responses = request.httpResponses(bufferingPolicy: .bufferingNewest(1))
    #expect(await request.end().error == nil)
    #expect(await all(progress.0).map(\.completedUnitCount) == [5])
    #expect(await all(progress.1).map(\.completedUnitCount) == [30])
    #expect(await all(requests).count == 1)
    #expect(await all(tasks).map(\.taskIdentifier) == request.tasks.last.map { [$0.taskIdentifier] })
    for command in commands { #expect(await all(command).count == 1) }
    #expect(await all(responses).map(\.statusCode) == [200])
  }

  @Test("Each sequence ends with its request, or at once if it has ended", arguments: [false, true])
  func ends(isLate: Bool) async {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    if isLate { _ = await request.end() }
    let ends = Recorder<String>()
    func read<Element: Sendable>(_ stream: StreamOf<Element>, _ name: String) {
      Task {
        for await _ in stream {}
        ends.add(name)
      }
    }
    read(request.uploadProgress(), "uploads")
    read(request.downloadProgress(), "downloads")
    read(request.urlRequests(), "requests")
    read(request.urlSessionTasks(), "tasks")
    read(request.cURLDescriptions(), "commands")
    read(request.cURLDescriptions(redacting: .standard), "redacted commands")
    read(request.httpResponses(), "responses")
    if !isLate { _ = await request.end() }
    _ = await eventually { ends.count == 7 }
    let names = ["commands", "downloads", "redacted commands", "requests", "responses", "tasks", "uploads"]
    #expect(ends.values.sorted() == names)
  }

  @Test("The heads of responses are delivered, without redirects")
  func heads() async {
    let fake = FakeTransport(.redirect(302, to: "/next"), .status(500))
    let request = Session.retained(fake: fake).request("http://a.test/").validate().retry(using: twice)
    let responses = request.httpResponses()
    _ = await request.end()
    #expect(await all(responses).map(\.statusCode) == [500, 200])
  }

  @Test("An asynchronous handler of the head decides")
  func decision() async {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
      .onHTTPResponse { response async -> Request.ResponseDisposition in
        response.statusCode == 200 ? .cancel : .allow
      }
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
    let seen = Recorder<Int>()
    let second = Session.retained(fake: FakeTransport()).request("http://a.test/")
      .onHTTPResponse { response async -> Void in seen.add(response.statusCode) }
    #expect(await second.end().error == nil)
    #expect(seen.values == [200])
  }

  @Test("After the end sequences deliver the current values and end")
  func late() async {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    _ = await request.end()
    #expect(await all(request.urlRequests()).count == 1)
    #expect(await all(request.cURLDescriptions()).count == 1)
    #expect(await all(request.urlSessionTasks()).count == 1)
    #expect(await all(request.uploadProgress()).isEmpty)
    #expect(await all(request.httpResponses()).isEmpty)
  }

  @Test("A request keeps no sequence that was left early")
  func left() async {
    let gate = Latch()
    let request = Session.retained(fake: FakeTransport(FakeReply.text("ok").held(by: gate)))
      .request("http://a.test/").resume()
    func leave<Element: Sendable>(_ make: () -> StreamOf<Element>) async {
      for _ in 0..<100 {
        // The first is released, the second is left by its loop, and the third by the end of its task.
        _ = make()
        for await _ in make() { break }
        let sequence = make()
        let task = Task { for await _ in sequence {} }
        task.cancel()
        await task.value
      }
    }
    #expect(await eventually { request.task != nil })
    await leave { request.urlRequests() }
    await leave { request.urlSessionTasks() }
    await leave { request.cURLDescriptions() }
    for _ in 0..<100 {
      _ = (request.uploadProgress(), request.downloadProgress(), request.httpResponses())
    }
    #expect(request.core.listenerCount == 0)
    let kept = request.httpResponses()
    #expect(request.core.listenerCount == 1)
    gate.open()
    #expect(await all(kept).count == 1)
    #expect(await request.end().error == nil)
  }

  @Test("A sequence that is not read has no effect")
  func abandoned() async {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    let requests = request.urlRequests()
    request.resume()
    for await _ in requests { break }
    #expect(await request.end().error == nil)
  }
}
