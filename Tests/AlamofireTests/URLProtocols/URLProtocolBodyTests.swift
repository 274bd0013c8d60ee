import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Bodies, downloads, control and misbehaviour of `URLProtocol` classes.
@Suite(.timeLimit(.minutes(5))) struct URLProtocolBodyTests {
  /// Returns the body of a request, from memory or from its stream.
  private static func body(of request: URLRequest) -> Data {
    var body = request.httpBody ?? Data()
    if let stream = request.httpBodyStream {
      stream.open()
      var buffer = [UInt8](repeating: 0, count: 1000)
      while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 {
        body.append(contentsOf: buffer[..<count])
      }
      stream.close()
    }
    return body
  }

  private static let echo: ProtocolScript.Step = { loader, client in
    let body = body(of: loader.request)
    loader.respond(client)
    client.urlProtocol(loader, didLoad: body)
    loader.finish(client)
  }

  @Test("The class receives the body of the request") func bodies() async throws {
    let session = Session.scripted()
    let data = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    let script = ProtocolScript(Self.echo)
    #expect(await session.upload(data, to: script.url).serializingData().response.value == data)
    let folder = try TemporaryFolder()
    let file = try folder.file("body", data)
    #expect(await session.upload(file, to: script.url).serializingData().response.value == data)
    let stream = InputStream(data: data)
    #expect(await session.upload(stream, to: script.url).serializingData().response.value == data)
    let posted = session.request(script.url, method: .post, parameters: ["a": 1])
    #expect(await posted.serializingString().response.value == "a=1")
    let form = await session.upload(
      multipartFormData: { $0.append(Data("x".utf8), withName: "n") }, to: script.url
    ).serializingString().response.value
    #expect(form?.contains("name=\"n\"") == true)
  }

  @Test("A stream is not sent twice") func stream() async {
    let script = ProtocolScript { loader, client in
      loader.request.httpBodyStream?.open()
      loader.request.httpBodyStream?.close()
      loader.respond(client, 503)
      loader.finish(client)
    }
    let isRetried = Latch()
    let retrier = Retrier { request, _, _, completion in
      if request.retryCount > 2 { isRetried.open() }
      completion(.retry)
    }
    let request = Session.scripted(interceptor: retrier)
      .upload(InputStream(data: Data("x".utf8)), to: script.url)
      .validate()
    let ended = Recorder<AFError?>()
    request.response(queue: .global()) { ended.add($0.error) }
    // The retrier always retries. The second attempt fails with the reason.
    await isRetried.wait()
    request.cancel()
    await ended.wait(for: 1)
    #expect(script.started.count == 1)
  }

  @Test("A background upload by POST that a class has received is not sent again") func backgroundUpload()
    async throws
  {
    let folder = try TemporaryFolder()
    let configuration = URLSessionConfiguration.background(
      withIdentifier: "org.alamofire.tests", folder: folder["journal"])
    configuration.protocolClasses = [ScriptedProtocol.self]
    let bodies = Recorder<Data>()
    let script = ProtocolScript { loader, client in
      bodies.add(Self.body(of: loader.request))
      guard bodies.count > 1 else {
        return client.urlProtocol(loader, didFailWithError: URLError(.networkConnectionLost))
      }
      loader.respond(client)
      loader.finish(client)
    }
    let session = Session(configuration: configuration)
    let response = await session.upload(Data("body".utf8), to: script.url).ended()
    #expect(response.error?.transferCode == .networkConnectionLost)
    #expect(bodies.values == [Data("body".utf8)])
  }

  @Test("A resumable upload that a class has received is not sent again, if the server has lost it")
  func resumableUpload() async throws {
    let bodies = Recorder<String>()
    let script = ProtocolScript { loader, client in
      let method = loader.request.httpMethod ?? ""
      bodies.add("\(method) \(String(decoding: Self.body(of: loader.request), as: UTF8.self))")
      switch method {
      case "POST": loader.respond(client, 201, ["Location": "/files/1", "Tus-Resumable": "1.0.0"])
      case "PATCH": return client.urlProtocol(loader, didFailWithError: URLError(.networkConnectionLost))
      default: loader.respond(client, 404)
      }
      loader.finish(client)
    }
    let request = Session.scripted().upload(Data("body".utf8), to: script.url)
      .resumable(UploadFixture.options(.tus))
    #expect(await request.response().error?.uploadError == .uploadIsGone)
    #expect(bodies.values == ["POST ", "PATCH body", "HEAD "])
  }

  /// A class that refuses all requests, and records the sizes of their bodies in memory.
  private final class RefusingProtocol: URLProtocol {
    static let bodies = Recorder<Int?>()

    override class func canInit(with request: URLRequest) -> Bool {
      bodies.add(request.httpBody?.count)
      return false
    }
  }

  @Test("A part of a resumable upload is not read for a class that refuses it") func refusedPart()
    async throws
  {
    let configuration = URLSessionConfiguration.af.default
    configuration.protocolClasses = [RefusingProtocol.self]
    let fixture = try UploadFixture(.tus, session: Session(configuration: configuration))
    let folder = try TemporaryFolder()
    let file = try folder.file("body", Data(UploadFixture.content(100)))
    let request = fixture.session.upload(file, to: fixture.url).resumable(fixture.options())
    #expect(await request.response().error == nil)
    #expect(fixture.requests == ["POST", "PATCH 0"])
    #expect(RefusingProtocol.bodies.values.allSatisfy { $0 ?? 0 == 0 }, "\(RefusingProtocol.bodies.values)")
    #expect(RefusingProtocol.bodies.count == 2)
  }

  @Test("A download is moved to its destination") func download() async throws {
    let script = ProtocolScript { loader, client in
      loader.respond(client, 200, ["Content-Length": "6"])
      loader.load(client, "abc")
      loader.load(client, "def")
      loader.finish(client)
    }
    let folder = try TemporaryFolder()
    let target = folder["sub/file.txt"]
    let request = Session.scripted()
      .download(script.url, to: { _, _ in (target, [.createIntermediateDirectories]) })
      .downloadProgress(queue: .global()) { _ in }
    let response = await request.serializingDownloadedFileURL().response
    #expect(response.value == target)
    #expect(try String(contentsOf: target, encoding: .utf8) == "abcdef")
    #expect(request.downloadProgress.completedUnitCount == 6)
  }

  @Test("Progress that is asked for after the end counts all bytes") func lateProgress() async {
    let script = ProtocolScript { loader, client in
      loader.respond(client, 200, ["Content-Length": "10"])
      loader.load(client, "01234")
      loader.load(client, "56789")
      loader.finish(client)
    }
    let fake = FakeTransport(.redirect(302, to: script.url))
    let session = Session.scripted(fake: fake)
    let upload = session.upload(Data(count: 7), to: script.url)
    _ = await upload.serializingData().response
    #expect(upload.uploadProgress.completedUnitCount == 7)
    let download = session.download(script.url)
    await download.serializingDownloadedFileURL().response.removeFile()
    let stream = session.streamRequest(script.url)
    for await _ in stream.streamTask().streamingData() {}
    // The hop before it is the engine's.
    let redirected = session.download("http://a.test/")
    await redirected.serializingDownloadedFileURL().response.removeFile()
    for request in [upload, download, stream, redirected] as [Request] {
      #expect(request.downloadProgress.completedUnitCount == 10, "\(request.description)")
      #expect(request.downloadProgress.totalUnitCount == 10, "\(request.description)")
    }
  }

  @Test("The length of an encoded body is not the total of its progress") func encodedLength() async {
    let script = ProtocolScript { loader, client in
      loader.respond(client, 200, ["Content-Length": "3", "Content-Encoding": "gzip"])
      loader.load(client, "decoded")
      loader.finish(client)
    }
    let request = Session.scripted().request(script.url)
    let totals = Recorder<Int64>()
    request.downloadProgress(queue: .global()) { totals.add($0.totalUnitCount) }
    #expect(await request.end().data == Data("decoded".utf8))
    #expect(await totals.wait(for: 1).first == -1)
  }

  @Test("Cancelling stops the protocol") func cancel() async {
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.load(client, "some")
    }
    let request = Session.scripted().request(script.url)
    let ended = Recorder<AFError?>()
    request.response(queue: .global()) { ended.add($0.error) }
    await script.started.wait(for: 1)
    request.cancel()
    #expect(await ended.wait(for: 1).first??.isExplicitlyCancelledError == true)
    await script.stopped.wait(for: 1)
  }

  @Test("A protocol that blocks does not delay other requests") func blockingProtocol() async {
    let gate = DispatchSemaphore(value: 0)
    let script = ProtocolScript { _, _ in gate.wait() }
    let request = Session.scripted().request(script.url)
    let ended = Recorder<AFError?>()
    request.response(queue: .global()) { ended.add($0.error) }
    await script.started.wait(for: 1)
    request.cancel()
    await ended.wait(for: 1)
    #expect(script.stopped.count == 0)
    gate.signal()
    await script.stopped.wait(for: 1)
  }

  @Test("A suspended request receives its bytes after resume", arguments: ["two", ""])
  func suspendedRequest(rest: String) async {
    let loaders = Recorder<@Sendable () -> Void>()
    let script = ProtocolScript { loader, client in
      nonisolated(unsafe) let loader = loader
      loader.respond(client)
      loader.load(client, "one ")
      loaders.add {
        if !rest.isEmpty { loader.load(client, rest) }
        loader.finish(client)
      }
    }
    let request = Session.scripted().request(script.url)
    let moved = Recorder<Int64>()
    request.downloadProgress(queue: .global()) { moved.add($0.completedUnitCount) }
    let ended = Recorder<Data?>()
    request.response(queue: .global()) { ended.add($0.data) }
    await moved.wait(for: 1)
    request.suspend()
    for finish in loaders.values { finish() }
    #expect(moved.count == 1)
    #expect(ended.count == 0)
    request.resume()
    #expect(await ended.wait(for: 1) == [Data("one \(rest)".utf8)])
  }

  @Test("Bytes that a suspended request holds count for the limit") func heldBytes() async {
    var options = TransportOptions()
    options.bodySizeLimit = 10
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.load(client, "elevenbytes")
    }
    let request = Session.scripted(options: options).request(script.url)
    // The decision does not come.
    request.onHTTPResponse(on: .global()) { _, _ in }
    let error = await request.end().error
    #expect((error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)
  }

  @Test("Loading does not start before resume") func resume() async {
    let script = ProtocolScript(Self.echo)
    let request = Session.scripted(startRequestsImmediately: false).request(script.url)
    let ended = Recorder<Data?>()
    request.response(queue: .global()) { ended.add($0.data) }
    #expect(script.calls.count == 0)
    request.resume()
    await ended.wait(for: 1)
    #expect(script.started.count == 1)
  }

  @Test("An idle protocol times out") func idleTimeout() async {
    let script = ProtocolScript { _, _ in }
    let response = await Session.scripted(timeout: 0.05).request(script.url).serializingData().response
    #expect((response.error?.underlyingError as? URLError)?.code == .timedOut)
    await script.stopped.wait(for: 1)
  }

  /// Checks that the time of the decision about the head does not count as idle time.
  @Test("A request that waits for the decision about its head does not time out") func headDecision() async {
    let loaders = Recorder<@Sendable () -> Void>()
    let script = ProtocolScript { loader, client in
      nonisolated(unsafe) let loader = loader
      loader.respond(client)
      loaders.add {
        loader.load(client, "body")
        loader.finish(client)
      }
    }
    let decisions = Recorder<@Sendable (Request.ResponseDisposition) -> Void>()
    let session = Session.scripted(timeout: 2)
    let request = session.request(script.url).onHTTPResponse(on: .global()) {
      (_: HTTPURLResponse, completion: @escaping @Sendable (Request.ResponseDisposition) -> Void) in
      decisions.add(completion)
    }
    async let response = request.end()
    await decisions.wait(for: 1)
    let silent = ProtocolScript { _, _ in }
    #expect(await session.request(silent.url).end().error != nil, "so much time has passed")
    for finish in loaders.values { finish() }
    for decide in decisions.values { decide(.allow) }
    #expect(await response.data == Data("body".utf8))
  }

  /// Checks that the time in which the sink is full does not count as idle time.
  @Test("A stream whose reader is slow does not time out") func slowReader() async {
    let chunk = Data(count: 1 << 20)
    let loaders = Recorder<@Sendable () -> Void>()
    let script = ProtocolScript { loader, client in
      nonisolated(unsafe) let loader = loader
      loader.respond(client)
      for _ in 0..<4 { client.urlProtocol(loader, didLoad: chunk) }
      loaders.add { loader.finish(client) }
    }
    let session = Session.scripted(timeout: 8)
    let (reached, gate) = (Latch(), DispatchSemaphore(value: 0))
    let counts = Recorder<Int>()
    let request = session.streamRequest(script.url).responseStream(on: DispatchQueue(label: "test.slow")) {
      guard let data = $0.value else { return }
      if counts.count == 0 {
        reached.open()
        gate.wait()
      }
      counts.add(data.count)
    }
    await reached.wait()
    for _ in 0..<2 {
      let silent = ProtocolScript { _, _ in }
      #expect(await session.request(silent.url).end().error != nil, "so much time has passed")
    }
    for finish in loaders.values { finish() }
    gate.signal()
    await request.finished()
    #expect(request.error == nil)
    #expect(counts.values.reduce(0, +) == 4 << 20)
  }

  /// Returns options with a total time, which a test lets pass with ``passTime(_:)``.
  private static var limited: TransportOptions {
    var options = TransportOptions()
    options.timeLimits.total = .milliseconds(200)
    return options
  }

  /// Lets the total time of earlier requests pass, by a later request that uses up the same time.
  private func passTime(_ session: Session) async {
    let silent = ProtocolScript { _, _ in }
    let request = session.request(silent.url).resume()
    let error = await request.end().error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
  }

  @Test(
    "A suspended request whose class has ended times out with its total time", arguments: [false, true])
  func totalTimeOfSuspended(fails: Bool) async {
    let requests = Recorder<DataRequest>()
    let script = ProtocolScript { loader, client in
      requests.values.first?.suspend()
      loader.respond(client)
      loader.load(client, "body")
      if fails {
        client.urlProtocol(loader, didFailWithError: URLError(.networkConnectionLost))
      } else {
        loader.finish(client)
      }
    }
    let session = Session.scripted(startRequestsImmediately: false, options: Self.limited)
    let request = session.request(script.url)
    requests.add(request)
    request.resume()
    async let response = request.end()
    await passTime(session)
    request.resume()
    let error = await response.error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect((error?.underlyingError as? URLError)?.timedOutPhase == .total)
  }

  @Test("A stream whose reader has stopped times out after the end of its class") func stoppedReader() async {
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      for _ in 0..<4 { client.urlProtocol(loader, didLoad: Data(count: 1 << 20)) }
      loader.finish(client)
    }
    let session = Session.scripted(options: Self.limited)
    let gate = DispatchSemaphore(value: 0)
    let isFirst = Latch()
    let request = session.streamRequest(script.url).responseStream(on: DispatchQueue(label: "test.stopped")) {
      guard $0.value != nil, !isFirst.isOpen else { return }
      isFirst.open()
      gate.wait()
    }
    #expect(await eventually { script.stopped.count == 1 || request.isFinished })
    gate.signal()
    await request.finished()
    #expect((request.error?.underlyingError as? URLError)?.code == .timedOut)
  }

  @Test("A response that the engine has stored does not answer a request that a protocol serves")
  func storedResponse() async {
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.load(client, "protocol")
      loader.finish(client)
    }
    let cache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    let fake = FakeTransport(.cacheable("engine", "max-age=60"))
    for (classes, body) in [([], "engine"), ([], "engine"), ([ScriptedProtocol.self], "protocol")]
      as [([AnyClass], String)]
    {
      let configuration = URLSessionConfiguration.cached(by: cache)
      configuration.protocolClasses = classes
      let session = Session.retained(
        fake: fake, configuration: configuration, observers: SessionObservers(eventMonitors: []))
      #expect(await session.request(script.url).serializingString().response.value == body)
    }
    #expect(fake.requests.count == 1, "the response was stored")
  }

  @Test("A body above the limit is refused", arguments: [8, 9]) func bodySizeLimit(limit: Int64) async {
    var options = TransportOptions()
    options.bodySizeLimit = limit
    let script = ProtocolScript { loader, client in
      loader.respond(client)
      loader.load(client, "too large")
      loader.finish(client)
    }
    let response = await Session.scripted(options: options).request(script.url).serializingData().response
    let code = (response.error?.underlyingError as? URLError)?.code
    #expect(code == (limit < 9 ? .dataLengthExceedsMaximum : nil))
  }

  @Test("Misbehaviour of a class does not crash", arguments: Misbehaviour.allCases) func badMannersAreNoTrap(
    _ behaviour: Misbehaviour
  ) async {
    let script = ProtocolScript { behaviour.play($0, $1) }
    let response = await Session.scripted().request(script.url).serializingString().response
    if let text = behaviour.text {
      #expect(response.value == text)
    } else {
      #expect((response.error?.underlyingError as? URLError)?.code == .badServerResponse)
    }
    await script.stopped.wait(for: 1)
    #expect(script.stopped.count == 1)
  }

  enum Misbehaviour: CaseIterable, Sendable {
    case finishesTwice, failsAfterTheEnd, loadsAfterTheEnd, respondsTwice, manyThreads
    case loadsFirst, finishesFirst

    /// The text that is delivered; `nil` if the request fails.
    var text: String? {
      switch self {
      case .loadsFirst: "earlybody"
      case .finishesFirst: nil
      default: "body"
      }
    }

    func play(_ loader: ScriptedProtocol, _ client: any URLProtocolClient) {
      if self == .loadsFirst { loader.load(client, "early") }
      if self == .finishesFirst { loader.finish(client) }
      loader.respond(client)
      if self == .respondsTwice { loader.respond(client, 500) }
      loader.load(client, "body")
      loader.finish(client)
      if self == .finishesTwice { loader.finish(client) }
      if self == .failsAfterTheEnd { client.urlProtocol(loader, didFailWithError: URLError(.badURL)) }
      if self == .loadsAfterTheEnd { loader.load(client, "late") }
      guard self == .manyThreads else { return }
      nonisolated(unsafe) let loader = loader
      DispatchQueue.concurrentPerform(iterations: 20) { index in
        if index % 3 == 0 { loader.respond(client) }
        loader.load(client, "late")
        loader.finish(client)
      }
    }
  }

  @Test("A stopped protocol is released") func release() async {
    let script = ProtocolScript(Self.echo)
    _ = await Session.scripted().request(script.url).serializingData(emptyResponseCodes: [200]).response
    await script.stopped.wait(for: 1)
    await script.released.wait(for: 1)
  }
}
