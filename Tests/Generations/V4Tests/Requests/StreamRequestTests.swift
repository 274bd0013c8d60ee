import AlamofireV4
import HTTPTestServer
import Testing

@Suite("Streams", .timeLimit(.minutes(5))) struct StreamRequestTests {
  private func manager() -> SessionManager {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.connectionProxyDictionary = [:]
    return SessionManager(configuration: configuration)
  }

  @Test("A stream task reads and writes") func readAndWrite() async throws {
    let server = try StreamTestServer()
    let manager = manager()
    let request = manager.stream(withHostName: "127.0.0.1", port: server.port)
    let task = try #require(request.task as? URLSessionStreamTask)
    let (data, isAtEnd, error) = await withCheckedContinuation { answer in
      task.write(Data("hello".utf8), timeout: 60) { #expect($0 == nil) }
      task.readData(ofMinLength: 5, maxLength: 100, timeout: 60) { data, isAtEnd, error in
        answer.resume(returning: (data, isAtEnd, error))
      }
    }
    #expect(data == Data("hello".utf8) && !isAtEnd && error == nil)
    #expect(request.request == nil && request.response == nil)
    #expect(request.description == "127.0.0.1:\(server.port)")
    await withCheckedContinuation { over in
      request.delegate.queue.addOperation { over.resume() }
      task.closeWrite()
      task.readData(ofMinLength: 1, maxLength: 1, timeout: 60) { data, isAtEnd, _ in
        #expect(data?.isEmpty == true && isAtEnd)
      }
    }
    #expect(request.delegate.error == nil)
    #expect(task.state == .completed)
  }

  @Test("A cancelled stream fails as cancelled") func cancel() async throws {
    let server = try StreamTestServer()
    let manager = manager()
    let ends = Mutex<[URLError.Code?]>([])
    manager.delegate.taskDidComplete = { _, _, error in
      ends.withLock { $0.append((error as? URLError)?.code) }
    }
    let request = manager.stream(withHostName: "127.0.0.1", port: server.port)
    let task = try #require(request.task as? URLSessionStreamTask)
    let error = await withCheckedContinuation { answer in
      task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { _, _, error in answer.resume(returning: error)
      }
      request.cancel()
    }
    #expect((error as? URLError)?.code == .cancelled)
    await withCheckedContinuation { over in request.delegate.queue.addOperation { over.resume() } }
    #expect((request.delegate.error as? URLError)?.code == .cancelled)
    #expect(ends.withLock { $0 } == [.cancelled])
  }

  @Test("A stream that is not started waits") func unstartedStream() async throws {
    let server = try StreamTestServer { connection in
      try connection.write("x")
      try connection.stall()
    }
    let manager = manager()
    manager.startRequestsImmediately = false
    let request = manager.stream(withHostName: "127.0.0.1", port: server.port)
    #expect(request.task?.state == .suspended)
    request.resume()
    let task = try #require(request.task as? URLSessionStreamTask)
    let data = await withCheckedContinuation { answer in
      task.readData(ofMinLength: 1, maxLength: 1, timeout: 60) { data, _, _ in answer.resume(returning: data)
      }
    }
    #expect(data == Data("x".utf8))
  }

  @Test("TLS starts in the middle of a stream") func startTLS() async throws {
    let server = try StreamTestServer { connection in
      guard try connection.line() == "STARTTLS" else { return }
      try connection.write("+")
      try connection.startTLS(.localhost)
      try connection.echo()
    }
    let manager = SessionManager(
      configuration: .ephemeral,
      serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": .disableEvaluation]))
    let request = manager.stream(withHostName: "localhost", port: server.port)
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
