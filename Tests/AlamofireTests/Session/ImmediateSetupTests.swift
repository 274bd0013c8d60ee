import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

/// Requests that have their URL request and task when the factory method returns.
@Suite("Immediate requests", .timeLimit(.minutes(5))) struct ImmediateSetupTests {
  private struct Marker: RequestInterceptor {
    let calls = Recorder<String>()
    var fails = false
    var retries = false

    func adapt(
      _ urlRequest: URLRequest, for session: Session,
      completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
    ) {
      calls.add("adapt")
      if fails { return completion(.failure(CocoaError(.fileNoSuchFile))) }
      var request = urlRequest
      request.setValue("\(calls.count)", forHTTPHeaderField: "X-Adapted")
      completion(.success(request))
    }

    func retry(
      _ request: Request, for session: Session, dueTo error: any Error,
      completion: @escaping @Sendable (RetryResult) -> Void
    ) {
      calls.add("retry")
      completion(retries && request.retryCount == 0 ? .retry : .doNotRetry)
    }
  }

  private func session(_ interceptor: (any RequestInterceptor)? = nil) -> Session {
    var options = TransportOptions()
    options.makesRequestsAtOnce = true
    return Session.real(startRequestsImmediately: false, interceptor: interceptor, options: options)
  }

  @Test("URL request and task exist when the factory returns", arguments: [false, true])
  func requestAndTask(isAdapted: Bool) async throws {
    let server = try HTTPTestServer()
    let marker = Marker()
    let request = session(isAdapted ? marker : nil).request(server.url("/get"), parameters: ["a": "b"])
    #expect(request.request?.url?.query == "a=b")
    #expect(request.request?.value(forHTTPHeaderField: "X-Adapted") == (isAdapted ? "1" : nil))
    let task = try #require(request.task)
    #expect(task.originalRequest?.url == request.request?.url)
    #expect(request.cURLDescription().contains("/get?a=b"))
    #expect(request.isInitialized)
    #expect(server.requestCount == 0)
    request.resume()
    #expect(await request.end().error == nil)
    #expect(server.requestCount == 1)
    #expect(request.tasks == [task])
    #expect(task.state == .completed)
  }

  @Test("Downloads, uploads and streams have tasks, too") func kinds() throws {
    let session = session()
    #expect(session.download("http://a.test/").task is URLSessionDownloadTask)
    #expect(session.upload(Data("x".utf8), to: "http://a.test/").task is URLSessionUploadTask)
    #expect(session.streamRequest("http://a.test/").task != nil)
    session.cancelAllRequests()
  }

  @Test("A request that cannot be created has no task, and its handlers receive the error")
  func creationFailure() async {
    let request = session().request("")
    #expect(request.task == nil)
    #expect(request.request == nil)
    request.resume()
    #expect(await request.end().error?.isInvalidURLError == true)
  }

  @Test("A failed adapter is offered to retriers only after resume") func failedAdapter() async {
    let marker = Marker(fails: true, retries: true)
    let request = session(marker).request("http://a.test/")
    #expect(marker.calls.values == ["adapt"])
    request.resume()
    let error = await request.end().error
    #expect(error?.underlyingError is CocoaError)
    #expect(marker.calls.values == ["adapt", "retry", "adapt", "retry"])
  }

  @Test("Each attempt has its own task") func attempts() async throws {
    let server = try HTTPTestServer()
    let marker = Marker(retries: true)
    let request = session(marker).request(server.url("/status/500")).validate()
    let first = try #require(request.task)
    request.resume()
    _ = await request.end()
    #expect(request.tasks.count == 2)
    #expect(request.firstTask == first)
    #expect(first != request.task)
    #expect(request.requests.map { $0.value(forHTTPHeaderField: "X-Adapted") } == ["1", "3"])
  }

  @Test("A request that is cancelled before its resume is not sent") func cancelledRequest() async throws {
    let server = try HTTPTestServer()
    let request = session().request(server.url("/get"))
    request.cancel()
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
    #expect(server.requestCount == 0)
  }

  @Test("The factory calls the adapter") func adapter() throws {
    let threads = Recorder<pthread_t>()
    let adapter = Adapter { request, _, completion in
      threads.add(pthread_self())
      completion(.success(request))
    }
    let session = session(Interceptor(adapter: adapter, retrier: ConnectionLostRetryPolicy()))
    session.request("http://a.test/").cancel()
    #expect(threads.values == [pthread_self()])
  }
}
