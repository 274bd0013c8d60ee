public import Foundation
public import FoundationNetworking
import Synchronization

// Asynchronous sequences that tell of a request. There may be several of a kind, beside the closures: each is
// told everything from its making on. They end with the request; a retry does not end them. One that is made
// after the end tells of the present, if there is something to tell, and ends.
extension Request {
  /// How much of the body of the request has been sent, each time that this changes.
  ///
  /// - Parameter bufferingPolicy: What becomes of elements that nobody has asked for yet. Default: all are kept.
  public func uploadProgress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .unbounded
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.progress)
      core.listen(continuation, \.uploads, of: self, to: { _ in }, current: { nil })
    }
  }

  /// How much of the body of the response has come, each time that this changes.
  ///
  /// - Parameter bufferingPolicy: What becomes of elements that nobody has asked for yet. Default: all are kept.
  public func downloadProgress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .unbounded
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.progress)
      core.listen(continuation, \.downloads, of: self, to: { _ in }, current: { nil })
    }
  }

  /// The request of the current attempt, if there is one, and that of each later attempt.
  ///
  /// - Parameter bufferingPolicy: What becomes of elements that nobody has asked for yet. Default: all are kept.
  public func urlRequests(
    bufferingPolicy: StreamOf<URLRequest>.BufferingPolicy = .unbounded
  ) -> StreamOf<URLRequest> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.listen(continuation, \.requests, of: self, to: { $0.request }, current: { $0 })
    }
  }

  /// The task of the current attempt, if there is one, and that of each later attempt.
  ///
  /// - Parameter bufferingPolicy: What becomes of elements that nobody has asked for yet. Default: all are kept.
  public func urlSessionTasks(
    bufferingPolicy: StreamOf<URLSessionTask>.BufferingPolicy = .unbounded
  ) -> StreamOf<URLSessionTask> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      watch { _ in }
      core.listen(
        continuation, \.tasks, of: self, to: { $0.attempts.count > 0 }, current: { $0 ? task : nil })
    }
  }

  /// The cURL command of the current attempt, if its request is made, and that of each later attempt.
  ///
  /// - Parameter bufferingPolicy: What becomes of elements that nobody has asked for yet. Default: all are kept.
  public func cURLDescriptions(
    bufferingPolicy: StreamOf<String>.BufferingPolicy = .unbounded
  ) -> StreamOf<String> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.listen(
        continuation, \.commands, of: self, to: { $0.request != nil },
        current: { $0 ? cURLDescription() : nil })
    }
  }

  /// The heads of responses as they come, one an attempt.
  func heads(_ bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy) -> StreamOf<HTTPURLResponse> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.head)
      core.listen(continuation, \.responses, of: self, to: { _ in }, current: { nil })
    }
  }
}

extension DataRequest {
  /// The heads of the responses, each before its body has come: one an attempt, redirects that are followed left
  /// out. Ends with the request.
  ///
  /// - Parameter bufferingPolicy: What becomes of elements that nobody has asked for yet. Default: all are kept.
  public func httpResponses(
    bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy = .unbounded
  ) -> StreamOf<HTTPURLResponse> {
    heads(bufferingPolicy)
  }

  /// Calls `handler` with the response before its body is read, and reads on as it decides. Called again for each
  /// retry; redirects that are followed are not shown. The last handler given takes the place of earlier ones.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    perform handler: @escaping @Sendable (_ response: HTTPURLResponse) async -> ResponseDisposition
  ) -> Self {
    onHTTPResponse(on: underlyingQueue) { response, completion in
      Task { completion(await handler(response)) }
    }
  }

  /// Calls `handler` with the response, and reads its body when the handler is done.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    perform handler: @escaping @Sendable (_ response: HTTPURLResponse) async -> Void
  ) -> Self {
    onHTTPResponse { response in
      await handler(response)
      return .allow
    }
  }
}

extension DataStreamRequest {
  /// The heads of the responses, each before its body has come: one an attempt, redirects that are followed left
  /// out. Ends with the request.
  ///
  /// - Parameter bufferingPolicy: What becomes of elements that nobody has asked for yet. Default: all are kept.
  public func httpResponses(
    bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy = .unbounded
  ) -> StreamOf<HTTPURLResponse> {
    heads(bufferingPolicy)
  }

  /// Calls `handler` with the response before its body is read, and reads on as it decides. Called again for each
  /// retry; redirects that are followed are not shown. The last handler given takes the place of earlier ones.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    perform handler: @escaping @Sendable (_ response: HTTPURLResponse) async -> ResponseDisposition
  ) -> Self {
    onHTTPResponse(on: underlyingQueue) { response, completion in
      Task { completion(await handler(response)) }
    }
  }

  /// Calls `handler` with the response, and reads its body when the handler is done.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    perform handler: @escaping @Sendable (_ response: HTTPURLResponse) async -> Void
  ) -> Self {
    onHTTPResponse { response in
      await handler(response)
      return .allow
    }
  }
}
