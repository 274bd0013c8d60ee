public import Foundation
public import FoundationNetworking
import Synchronization

// Asynchronous sequences of events of a request. Several sequences of a kind can coexist, beside the closures; each
// receives all events from its creation on. The sequences end with the request, not with a retry. A sequence made after
// the end yields the current state, if there is one, and ends. A sequence does not start the request.
extension Request {
  /// Returns the upload progress, once for each change.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func uploadProgress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .unbounded
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.progress)
      core.listen(continuation, \.uploads, of: self, to: { _ in }, current: { nil })
    }
  }

  /// Returns the download progress, once for each change.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func downloadProgress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .unbounded
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.progress)
      core.listen(continuation, \.downloads, of: self, to: { _ in }, current: { nil })
    }
  }

  /// Returns the request of the current attempt, if there is one, and that of each later attempt.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func urlRequests(
    bufferingPolicy: StreamOf<URLRequest>.BufferingPolicy = .unbounded
  ) -> StreamOf<URLRequest> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.listen(continuation, \.requests, of: self, to: { $0.results.request }, current: { $0 })
    }
  }

  /// Returns the task of the current attempt, if there is one, and that of each later attempt.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func urlSessionTasks(
    bufferingPolicy: StreamOf<URLSessionTask>.BufferingPolicy = .unbounded
  ) -> StreamOf<URLSessionTask> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      watch { _ in }
      core.listen(
        continuation, \.tasks, of: self, to: { $0.observed.tasks.count > 0 }, current: { $0 ? task : nil })
    }
  }

  /// Returns the cURL command of the current attempt, if its request is made, and that of each later attempt.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func cURLDescriptions(
    bufferingPolicy: StreamOf<String>.BufferingPolicy = .unbounded
  ) -> StreamOf<String> {
    commands(nil, bufferingPolicy)
  }

  /// Returns the cURL commands as ``cURLDescriptions(bufferingPolicy:)`` does, with their secrets masked; see
  /// ``cURLDescription(redacting:)``.
  ///
  /// - Parameters:
  ///   - redaction: The rules for what is masked.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func cURLDescriptions(
    redacting redaction: Redaction, bufferingPolicy: StreamOf<String>.BufferingPolicy = .unbounded
  ) -> StreamOf<String> {
    commands(redaction, bufferingPolicy)
  }

  private func commands(
    _ redaction: Redaction?, _ bufferingPolicy: StreamOf<String>.BufferingPolicy
  ) -> StreamOf<String> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.listen(
        continuation, \.[commands: redaction], of: self, to: { $0.results.request != nil },
        current: { $0 ? command(redacting: redaction) : nil })
    }
  }

  /// Returns the heads of responses as they come, one for each attempt.
  func heads(_ bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy) -> StreamOf<HTTPURLResponse> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.head)
      core.listen(continuation, \.responses, of: self, to: { _ in }, current: { nil })
    }
  }
}

extension DataRequest {
  /// Returns the response heads, each before its body, one for each attempt, without those of followed redirects.
  /// Ends with the request.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func httpResponses(
    bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy = .unbounded
  ) -> StreamOf<HTTPURLResponse> {
    heads(bufferingPolicy)
  }

  /// Calls `handler` with the response before its body is read, and reads or cancels as it returns. It is called for
  /// each retry, but not for followed redirects. The last handler set is used.
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
  /// Returns the response heads, each before its body, one for each attempt, without those of followed redirects.
  /// Ends with the request.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are kept.
  public func httpResponses(
    bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy = .unbounded
  ) -> StreamOf<HTTPURLResponse> {
    heads(bufferingPolicy)
  }

  /// Calls `handler` with the response before its body is read, and reads or cancels as it returns. It is called for
  /// each retry, but not for followed redirects. The last handler set is used.
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
