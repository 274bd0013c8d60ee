import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// Errors of this library that a `URLProtocol` class passes on, as one does that sends its requests by another session.
@Suite("Errors of other sessions", .timeLimit(.minutes(5))) struct ProtocolErrorTests {
  @Test("An AFError of a protocol is not wrapped in another one")
  func unwrapped() async throws {
    for passed in [
      AFError.sessionTaskFailed(error: URLError(.timedOut)),
      .responseValidationFailed(reason: .unacceptableStatusCode(code: 503)),
    ] {
      let script = ProtocolScript { loader, client in
        client.urlProtocol(loader, didFailWithError: passed)
      }
      let error = await Session.scripted().request(script.url).end().error
      switch (passed, error) {
      case (.sessionTaskFailed, .sessionTaskFailed(let inner)?):
        #expect((inner as? URLError)?.code == .timedOut, "\(inner)")
      case (.responseValidationFailed, .responseValidationFailed?): #expect(error?.responseCode == 503)
      default: Issue.record("\(String(describing: error)) came instead of \(passed)")
      }
    }
  }

  @Test("A policy sees the code of an error that a protocol passes on")
  func retried() async throws {
    let script = ProtocolScript { loader, client in
      client.urlProtocol(loader, didFailWithError: AFError.sessionTaskFailed(error: URLError(.timedOut)))
    }
    let policy = RetryPolicy(retryLimit: 2, exponentialBackoffScale: 0.001)
    let request = Session.scripted(interceptor: policy).request(script.url)
    let error = await request.end().error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(request.retryCount == 2)
    #expect(script.started.count == 3)
  }
}
