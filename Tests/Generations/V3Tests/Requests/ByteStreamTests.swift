import AlamofireV3
import HTTPTestServer
import Testing

@Suite("Streams", .timeLimit(.minutes(5))) struct ByteStreamTests {
  private func manager(
    starting: Bool = true, delegate: Manager.SessionDelegate = Manager.SessionDelegate(),
    policies: ServerTrustPolicyManager? = nil
  ) -> Manager {
    var options = TransportOptions()
    options.proxy = .none
    return .isolated(starting: starting, delegate: delegate, policies: policies, options: options)
  }

  @Test("A stream task reads and writes") func readAndWrite() async throws {
    let server = try StreamTestServer()
    let request = manager().stream(hostName: "127.0.0.1", port: server.port)
    let task = try #require(request.task as? URLSessionStreamTask)
    let (data, isAtEnd, error) = await withCheckedContinuation { answer in
      task.write(Data("hello".utf8), timeout: 60) { #expect($0 == nil) }
      task.readData(ofMinLength: 5, maxLength: 100, timeout: 60) { data, isAtEnd, error in
        answer.resume(returning: (data, isAtEnd, error))
      }
    }
    #expect(data == Data("hello".utf8) && !isAtEnd && error == nil)
    #expect(request.request == nil && request.response == nil && request.resumeData == nil)
    #expect(request.description == "127.0.0.1:\(server.port)")
    #expect(request.debugDescription == request.description)
    task.closeWrite()
    task.readData(ofMinLength: 1, maxLength: 1, timeout: 60) { data, isAtEnd, _ in
      #expect(data?.isEmpty == true && isAtEnd)
    }
    let end = await request.validate().end()
    #expect(end.request == nil && end.response == nil && end.data == nil && end.error == nil)
    #expect(task.state == .completed)
  }

  @Test("A cancelled stream fails as cancelled") func cancel() async throws {
    let server = try StreamTestServer()
    let ends = Notes()
    let delegate = Manager.SessionDelegate()
    delegate.taskDidComplete = { _, _, error in ends.add("\(error?.domain ?? "") \(error?.code ?? 0)") }
    let request = manager(delegate: delegate).stream(hostName: "127.0.0.1", port: server.port)
    let task = try #require(request.task as? URLSessionStreamTask)
    let error = await withCheckedContinuation { answer in
      task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, error in
        answer.resume(returning: error)
      }
      request.cancel()
    }
    #expect((error as? URLError)?.code == .cancelled)
    let cancelled = "\(NSURLErrorDomain) \(NSURLErrorCancelled)"
    #expect(await request.end().fault == cancelled)
    #expect(await ends.wait(for: 1) == [cancelled])
  }

  @Test("An invalid host is an error of the handlers") func invalidHost() async {
    let request = manager().stream(hostName: "a b", port: 80)
    #expect(await request.end().fault == "\(NSURLErrorDomain) \(NSURLErrorBadURL)")
  }

  @Test("A stream that is not started waits") func unstartedStream() async throws {
    let server = try StreamTestServer { connection in
      try connection.write("x")
      try connection.stall()
    }
    let request = manager(starting: false).stream(hostName: "127.0.0.1", port: server.port)
    #expect(request.task?.state == .suspended)
    #expect(server.connectionCount == 0)
    request.resume()
    let task = try #require(request.task as? URLSessionStreamTask)
    let data = await withCheckedContinuation { answer in
      task.readData(ofMinLength: 1, maxLength: 1, timeout: 60) { data, _, _ in answer.resume(returning: data)
      }
    }
    #expect(data == Data("x".utf8))
  }

  @Test("A running stream needs no reference") func runningStream() async throws {
    let server = try StreamTestServer()
    let manager = manager()
    weak var unkept: Request?
    let ended = Notes()
    let task: URLSessionStreamTask
    do {
      let request = manager.stream(hostName: "127.0.0.1", port: server.port)
      request.response(queue: .global()) { _, _, _, error in ended.add(error == nil ? "fine" : "failed") }
      task = try #require(request.task as? URLSessionStreamTask)
      unkept = request
    }
    let data = await withCheckedContinuation { answer in
      task.write(Data("hello".utf8), timeout: 60) { _ in }
      task.readData(ofMinLength: 5, maxLength: 5, timeout: 60) { data, _, _ in answer.resume(returning: data)
      }
    }
    #expect(data == Data("hello".utf8))
    task.closeRead()
    task.closeWrite()
    #expect(await ended.wait(for: 1) == ["fine"])
    while unkept != nil { await Task.yield() }
  }

  @Test("A stream that was not started is released") func releasedStream() {
    weak var unkept: Request?
    do {
      let request = manager(starting: false).stream(hostName: "127.0.0.1", port: 9)
      #expect(request.task != nil)
      unkept = request
    }
    #expect(unkept == nil)
  }

  @Test("TLS starts in the middle of a stream") func startTLS() async throws {
    let server = try StreamTestServer { connection in
      guard try connection.line() == "STARTTLS" else { return }
      try connection.write("+")
      try connection.startTLS(.localhost)
      try connection.echo()
    }
    let policies = ServerTrustPolicyManager(policies: ["localhost": .DisableEvaluation])
    let request = manager(policies: policies).stream(hostName: "localhost", port: server.port)
    let task = try #require(request.task as? URLSessionStreamTask)
    let data = await withCheckedContinuation { answer in
      task.write(Data("STARTTLS\r\n".utf8), timeout: 60) { _ in }
      task.readData(ofMinLength: 1, maxLength: 1, timeout: 60) { _, _, _ in }
      task.startSecureConnection()
      task.write(Data("secret".utf8), timeout: 60) { _ in }
      task.readData(ofMinLength: 6, maxLength: 6, timeout: 60) { data, _, _ in answer.resume(returning: data)
      }
    }
    #expect(data == Data("secret".utf8))
  }
}
