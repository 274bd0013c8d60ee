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

  /// Makes a stream whose elements are made on demand.
  init(pulling source: any StreamSource<Element>) {
    self.source = .pulled(source)
  }

  /// Returns the iterator, which begins to read.
  public func makeAsyncIterator() -> Iterator {
    switch source {
    case .pushed(let stream, let end): return Iterator(stream.makeAsyncIterator(), end)
    case .pulled(let source):
      source.begin()
      return Iterator(PulledEnd(source))
    }
  }

  /// The iterator of a stream. Its release ends the stream.
  public struct Iterator: AsyncIteratorProtocol {
    /// The source of a stream whose elements are made on demand. Apart from the other form, because a copy of a value
    /// that may be either one looks up generic types at run time, for each element.
    private let pulled: PulledEnd<Element>?
    private var pushed: (iterator: AsyncStream<Element>.Iterator, end: PushedEnd<Element>)?

    fileprivate init(_ pulled: PulledEnd<Element>) {
      self.pulled = pulled
    }

    fileprivate init(_ iterator: AsyncStream<Element>.Iterator, _ end: PushedEnd<Element>) {
      pulled = nil
      pushed = (iterator, end)
    }

    /// Returns the next element; `nil` at the end, and when the surrounding task is cancelled.
    public mutating func next() async -> Element? {
      await next(isolation: nil)
    }

    /// Returns the next element; it stays on the actor of the loop while an element is buffered.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      if let pulled { return await pulled.source.next() }
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

/// Ends a pushed stream when it and its iterator are released.
private final class PushedEnd<Element: Sendable>: Sendable {
  private let continuation: AsyncStream<Element>.Continuation

  init(_ continuation: AsyncStream<Element>.Continuation) {
    self.continuation = continuation
  }

  deinit { continuation.finish() }
}
