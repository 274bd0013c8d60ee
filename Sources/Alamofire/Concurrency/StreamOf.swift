public import Foundation
public import FoundationNetworking
import Synchronization

/// The events of a request in their order, for `for await`.
///
/// Iterate over it once, in one loop. Leaving the loop early, by `break` or by cancelling its task, ends the stream.
/// Releasing a stream that was never iterated ends it as well.
///
/// ```swift
/// for await stream in AF.streamRequest(url).streamTask().streamingData() {
///   guard let data = stream.value else { continue }
///   print(data.count)
/// }
/// ```
public struct StreamOf<Element: Sendable>: AsyncSequence, Sendable {
  /// The limit of elements that are not read yet.
  public typealias BufferingPolicy = AsyncStream<Element>.Continuation.BufferingPolicy

  private enum Source: Sendable {
    case pushed(AsyncStream<Element>, PushedEnd<Element>)
    case pulled(any StreamSource<Element>)
  }

  private let source: Source

  /// Makes a stream into which `builder` puts elements, at once or later.
  ///
  /// - Parameter onTermination: Called once, when the stream has ended or its iterator was released.
  init(
    bufferingPolicy: BufferingPolicy = .unbounded, onTermination: (@Sendable () -> Void)? = nil,
    builder: (AsyncStream<Element>.Continuation) -> Void
  ) {
    let (stream, continuation) = AsyncStream<Element>.makeStream(bufferingPolicy: bufferingPolicy)
    if let onTermination { continuation.onTermination = { _ in onTermination() } }
    source = .pushed(stream, PushedEnd(continuation))
    builder(continuation)
  }

  /// Makes a stream with elements that are created on demand.
  init(pulling source: any StreamSource<Element>) {
    self.source = .pulled(source)
  }

  /// Returns the iterator, which begins to read.
  public func makeAsyncIterator() -> Iterator {
    switch source {
    case .pushed(let stream, let end): return Iterator(stream.makeAsyncIterator(), IterationEnd(end))
    case .pulled(let source):
      source.begin()
      return Iterator(PulledEnd(source))
    }
  }

  /// The iterator of a stream. Its release ends the stream.
  public struct Iterator: AsyncIteratorProtocol {
    /// The source of a stream whose elements are created on demand. Separate from the other form, because copying a
    /// value that may be either one looks up generic types at run time, for each element.
    private let pulled: PulledEnd<Element>?
    private var pushed: (iterator: AsyncStream<Element>.Iterator, end: IterationEnd<Element>)?

    fileprivate init(_ pulled: PulledEnd<Element>) {
      self.pulled = pulled
    }

    fileprivate init(_ iterator: AsyncStream<Element>.Iterator, _ end: IterationEnd<Element>) {
      pulled = nil
      pushed = (iterator, end)
    }

    /// Returns the next element; `nil` at the end, and when the surrounding task is cancelled.
    public mutating func next() async -> Element? {
      // Without the second asynchronous call, which costs an allocation of the task.
      if let element = pulled?.source.nextAtOnce() { return element }
      return await next(isolation: nil)
    }

    /// Returns the next element; it stays on the actor of the loop while an element is buffered.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      if let pulled {
        if let element = pulled.source.nextAtOnce() { return element }
        return await pulled.source.next()
      }
      return await pushed?.iterator.next(isolation: actor)
    }
  }
}

/// Ends a stream when its iterator is released.
private final class PulledEnd<Element: Sendable>: Sendable {
  let source: any StreamSource<Element>

  init(_ source: any StreamSource<Element>) {
    self.source = source
  }

  deinit { source.finish() }
}

/// Ends a pushed stream when its iterator is released, although the stream itself may be retained.
private final class IterationEnd<Element: Sendable>: Sendable {
  private let end: PushedEnd<Element>

  init(_ end: PushedEnd<Element>) {
    self.end = end
  }

  deinit { end.finish() }
}

/// Ends a pushed stream when it is released, also if nothing has iterated over it.
final class PushedEnd<Element: Sendable>: Sendable {
  private let continuation: AsyncStream<Element>.Continuation

  init(_ continuation: AsyncStream<Element>.Continuation) {
    self.continuation = continuation
  }

  deinit { finish() }

  func finish() { continuation.finish() }
}

// Asynchronous sequences of events of a request. Several sequences of a kind can coexist, beside the closures; each
// receives all events from its creation on. The sequences end with the request, not with a retry. A sequence created
// after the end yields the current state, if there is one, and ends. A sequence does not start the request.
extension Request {
  /// Returns the upload progress, once for each change.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are buffered.
  public func uploadProgress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .unbounded
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.progress)
      core.listen(continuation, \.uploads, of: self)
    }
  }

  /// Returns the download progress, once for each change.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are buffered.
  public func downloadProgress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .unbounded
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.progress)
      core.listen(continuation, \.downloads, of: self)
    }
  }

  /// Returns the request of the current attempt, if there is one, and the request of each later attempt.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are buffered.
  public func urlRequests(
    bufferingPolicy: StreamOf<URLRequest>.BufferingPolicy = .unbounded
  ) -> StreamOf<URLRequest> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.listen(
        continuation, \.requests, of: self, after: { $0.results.requestNumber }, current: { request })
    }
  }

  /// Returns the task of the current attempt, if there is one, and the task of each later attempt.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are buffered.
  public func urlSessionTasks(
    bufferingPolicy: StreamOf<URLSessionTask>.BufferingPolicy = .unbounded
  ) -> StreamOf<URLSessionTask> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      watch { _ in }
      core.listen(
        continuation, \.tasks, of: self, after: { $0.observed.tasks.number }, current: { task })
    }
  }

  /// Returns the cURL command of the current attempt, if its request has been created, and the command of each later
  /// attempt.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are buffered.
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
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered.
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
        continuation, \.[commands: redaction], of: self, after: { $0.results.requestNumber },
        current: { command(redacting: redaction) })
    }
  }

  /// Returns the heads of responses as they arrive, one for each attempt.
  func heads(_ bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy) -> StreamOf<HTTPURLResponse> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.add(.head)
      core.listen(continuation, \.responses, of: self)
    }
  }
}

extension DataRequest {
  /// Returns the response heads, each before its body, one for each attempt, without the heads of followed redirects.
  /// Ends with the request.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are buffered.
  public func httpResponses(
    bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy = .unbounded
  ) -> StreamOf<HTTPURLResponse> {
    heads(bufferingPolicy)
  }

  /// Calls `handler` with the response before its body is read, and then reads or cancels, as the handler decides. It
  /// is called for each retry, but not for followed redirects. The last handler set is used.
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
  /// Returns the response heads, each before its body, one for each attempt, without the heads of followed redirects.
  /// Ends with the request.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: all are buffered.
  public func httpResponses(
    bufferingPolicy: StreamOf<HTTPURLResponse>.BufferingPolicy = .unbounded
  ) -> StreamOf<HTTPURLResponse> {
    heads(bufferingPolicy)
  }

  /// Calls `handler` with the response before its body is read, and then reads or cancels, as the handler decides. It
  /// is called for each retry, but not for followed redirects. The last handler set is used.
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
