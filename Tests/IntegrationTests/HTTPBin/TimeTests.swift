import Alamofire
import Testing

@Suite(.needsHTTPBin, .timeLimit(.minutes(5))) struct TimeTests {
  @Test("A delay within the timeout succeeds") func delay() async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/delay/1")).validate().serializingDecodable(Echo.self)
      .response
    #expect(response.error == nil)
    #expect(response.metrics.map { $0.taskInterval.duration >= 1 } == true)
  }

  @Test("A delay beyond the timeout ends the request") func timeout() async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(server.url("/delay/10"), requestModifier: { $0.timeoutInterval = 0.5 })
      .serializingData().response
    #expect((response.error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(response.error?.isSessionTaskError == true)
  }

  @Test("Arriving bytes restart the idle timeout") func idleTimeout() async throws {
    let server = try await HTTPBinServer.shared
    let response = await AF.request(
      server.url("/drip?numbytes=8&duration=3&delay=0"), requestModifier: { $0.timeoutInterval = 2 }
    ).serializingData().response
    #expect(response.value?.count == 8)
  }

  @Test("Cancelling ends a running request") func cancel() async throws {
    let server = try await HTTPBinServer.shared
    let request = AF.request(server.url("/drip?numbytes=100&duration=9&delay=0"))
    let (heads, arrived) = AsyncStream.makeStream(of: Int.self)
    request.onHTTPResponse(on: DispatchQueue(label: "head")) { response in
      arrived.yield(response.statusCode)
      arrived.finish()
    }
    let task = request.serializingData()
    for await status in heads { #expect(status == 200) }
    task.cancel()
    let response = await task.response
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(request.isCancelled)
  }

  @Test("Cancelling the awaiting task ends the request") func cancelTask() async throws {
    let server = try await HTTPBinServer.shared
    let request = AF.request(server.url("/delay/10"))
    let (resumed, isResumed) = AsyncStream.makeStream(of: Void.self)
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "test.resumed"))
    monitor.requestDidResume = { _ in isResumed.finish() }
    request.eventMonitor(monitor)
    let waiting = Task { await request.serializingData().response }
    for await _ in resumed {}
    waiting.cancel()
    let response = await waiting.value
    #expect(response.error?.isExplicitlyCancelledError == true)
  }
}
