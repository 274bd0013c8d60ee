/// What happens to a request, one thing after the other, to be read with `for await`.
///
/// Read it once, in one loop. A loop that is left early, by `break` or because its task is cancelled, ends the stream;
/// so does letting go of a stream that nobody has read.
///
/// ```swift
/// for await stream in AF.streamRequest(url).streamTask().streamingData() {
///   guard let data = stream.value else { continue }
///   print(data.count)
/// }
/// ```
public struct StreamOf<Element: Sendable>: AsyncSequence, Sendable {
  /// What becomes of elements that come faster than they are read.
  public typealias BufferingPolicy = AsyncStream<Element>.Continuation.BufferingPolicy

  private enum Source: Sendable {
    case pushed(AsyncStream<Element>, PushedEnd<Element>)
    case pulled(any StreamSource<Element>)
  }

  private let source: Source

  /// A stream into which `builder` puts elements, at once or later.
  ///
  /// - Parameter onTermination: Called once, when the stream has ended or nobody reads it any more.
  init(
    bufferingPolicy: BufferingPolicy = .unbounded, onTermination: (@Sendable () -> Void)? = nil,
    builder: (AsyncStream<Element>.Continuation) -> Void
  ) {
    let (stream, continuation) = AsyncStream<Element>.makeStream(bufferingPolicy: bufferingPolicy)
    if let onTermination { continuation.onTermination = { _ in onTermination() } }
    source = .pushed(stream, PushedEnd(continuation))
    builder(continuation)
  }

  /// A stream whose elements are made when somebody asks for them.
  init(pulling source: any StreamSource<Element>) {
    self.source = .pulled(source)
  }

  /// Begins to read.
  public func makeAsyncIterator() -> Iterator {
    switch source {
    case .pushed(let stream, let end): return Iterator(.pushed(stream.makeAsyncIterator(), end))
    case .pulled(let source):
      source.begin()
      return Iterator(.pulled(PulledEnd(source)))
    }
  }

  /// Reads a stream. When it is released, the stream ends.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate enum Reading {
      case pushed(AsyncStream<Element>.Iterator, PushedEnd<Element>)
      case pulled(PulledEnd<Element>)
    }

    private var reading: Reading

    fileprivate init(_ reading: Reading) {
      self.reading = reading
    }

    /// The next element; `nil` at the end, and when the surrounding task is cancelled.
    public mutating func next() async -> Element? {
      await next(isolation: nil)
    }

    /// The next element, without leaving the actor of the loop while there is something to read.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      switch reading {
      case .pulled(let end): return await end.source.next()
      case .pushed(var iterator, let end):
        let element = await iterator.next(isolation: actor)
        reading = .pushed(iterator, end)
        return element
      }
    }
  }
}

/// Gives the elements of a stream one by one, when it is asked.
protocol StreamSource<Element>: AnyObject, Sendable {
  associatedtype Element: Sendable
  /// Somebody begins to ask.
  func begin()
  /// The next element; `nil` at the end, and when the surrounding task is cancelled.
  nonisolated(nonsending) func next() async -> Element?
  /// Nobody will ask any more. Does nothing the second time.
  func finish()
}

/// Ends a stream when its iterator is released.
private final class PulledEnd<Element: Sendable>: Sendable {
  let source: any StreamSource<Element>

  init(_ source: any StreamSource<Element>) {
    self.source = source
  }

  deinit { source.finish() }
}

/// The same for a stream into which elements are put.
private final class PushedEnd<Element: Sendable>: Sendable {
  private let continuation: AsyncStream<Element>.Continuation

  init(_ continuation: AsyncStream<Element>.Continuation) {
    self.continuation = continuation
  }

  deinit { continuation.finish() }
}
