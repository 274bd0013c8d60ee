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

  @Test("An upload is not created again after an error that may be about another request of a protocol")
  func resumableUpload() async throws {
    let code = URLError.Code.cannotConnectToHost
    let errors: [any Error] = [AFError.sessionTaskFailed(error: URLError(code)), URLError(code)]
    for passed in errors {
      // As a class that has created the upload, and could not make another connection.
      let script = ProtocolScript { loader, client in
        client.urlProtocol(loader, didFailWithError: passed)
      }
      var upload = ResumableUpload(.tus)
      upload.initialDelay = 0.001
      let request = Session.scripted().upload(Data([1, 2, 3]), to: script.url).resumable(upload)
      let error = await request.end().error
      #expect((error?.underlyingError as? URLError)?.code == code)
      #expect(script.started.values.map(\.httpMethod) == ["POST"], "the server would have two uploads")
    }
  }
}
