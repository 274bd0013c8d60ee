public import Foundation
public import HTTPWire

/// The events of a ``DataStreamRequest``, for `for await`: chunks, then the completion, then the end.
///
/// Several streams of one request may be read, at the same time or one after the other. The request starts when the
/// first stream is created.
///
/// By default (`.unbounded`) no event is lost: while a stream is read, the server waits if its reader is about a
/// mebibyte behind. Bytes received before the first read are held in memory. Another policy drops events that are not
/// read in time, which can include the completion.
///
/// Values are created on the thread of the reading task; with a policy other than `.unbounded`, on a queue of the
/// system.
///
/// ```swift
/// let task = AF.streamRequest("https://httpbin.org/stream/100").streamTask()
/// for await stream in task.streamingDecodables(Item.self) {
///   switch stream.event {
///   case .stream(let result): print(result)
///   case .complete(let completion): print(completion.error ?? "the end")
///   }
/// }
/// ```
public struct DataStreamTask: Sendable {
  /// A stream of a request's events.
  public typealias Stream<Success: Sendable, Failure: Error> = StreamOf<
    DataStreamRequest.Stream<Success, Failure>
  >

  private let request: DataStreamRequest

  init(_ request: DataStreamRequest) {
    self.request = request
  }

  /// Returns the bytes in chunks.
  ///
  /// - Parameters:
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingData(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    bufferingPolicy: Stream<Data, Never>.BufferingPolicy = .unbounded
  ) -> Stream<Data, Never> {
    stream(.data, shouldAutomaticallyCancel, bufferingPolicy)
  }

  /// Returns the text in chunks that end between characters; see
  /// ``DataStreamRequest/responseStreamString(on:stream:)``.
  ///
  /// - Parameters:
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingStrings(
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    bufferingPolicy: Stream<String, Never>.BufferingPolicy = .unbounded
  ) -> Stream<String, Never> {
    stream(.text, shouldAutomaticallyCancel, bufferingPolicy)
  }

  /// Returns decoded JSON documents; see ``DecodableStreamSerializer`` for the format.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingDecodables<T: Decodable & Sendable>(
    _ type: T.Type = T.self, automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    bufferingPolicy: Stream<T, AFError>.BufferingPolicy = .unbounded
  ) -> Stream<T, AFError> {
    streamingResponses(
      serializedUsing: DecodableStreamSerializer<T>(), automaticallyCancelling: shouldAutomaticallyCancel,
      bufferingPolicy: bufferingPolicy)
  }

  /// Returns the values that `serializer` makes of the bytes; see
  /// ``DataStreamRequest/responseStream(using:on:stream:)``.
  ///
  /// - Parameters:
  ///   - serializer: Makes values.
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  ///   - bufferingPolicy: The limit of unread elements. Default: all are buffered, and the server waits.
  public func streamingResponses<Serializer: DataStreamSerializer>(
    serializedUsing serializer: Serializer,
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true,
    bufferingPolicy: Stream<Serializer.SerializedObject, AFError>.BufferingPolicy = .unbounded
  ) -> Stream<Serializer.SerializedObject, AFError> {
    stream(StreamDecoding(serializer), shouldAutomaticallyCancel, bufferingPolicy)
  }

  /// Cancels the request.
  public func cancel() { request.cancel() }
  /// Resumes the request.
  public func resume() { request.resume() }
  /// Suspends the request.
  public func suspend() { request.suspend() }

  private func stream<Success: Sendable, Failure: Error>(
    _ decoding: StreamDecoding<Success, Failure>, _ cancels: Bool,
    _ policy: Stream<Success, Failure>.BufferingPolicy
  ) -> Stream<Success, Failure> {
    if case .unbounded = policy {
      return StreamOf(pulling: PulledStream(request, decoding: decoding, cancels: cancels))
    }
    return StreamOf(bufferingPolicy: policy) { continuation in
      // Held by the handler: a request that was never started is released with it, without a completion.
      let end = PushedEnd(continuation)
      let runEnd = request.addHandler(decoding, on: .global(), isCheap: true) { stream in
        // The consumer has left, but the request continues: further bytes need not be decoded.
        if case .terminated = continuation.yield(stream) { stream.token.mute() }
        if case .complete = stream.event { end.finish() }
      }
      guard cancels else { return }
      // Weak, since the request holds the handler, and that the stream.
      continuation.onTermination = { [weak request] _ in
        if !runEnd.isReached { request?.cancel() }
      }
    }
  }
}

extension DataStreamRequest {
  /// Makes the task that has the events of this request as `async` sequences.
  public func streamTask() -> DataStreamTask { DataStreamTask(self) }
}

/// The values of a stream request for `for try await`: the chunks without their events, and the error at the end.
///
/// ```swift
/// for try await data in AF.streamRequest(url).validate().chunks() {
///   try handle.write(contentsOf: data)
/// }
/// ```
///
/// The loop ends when the response is complete. Otherwise it throws the error of the request, of a validator, or of the
/// serializer of a value. Therefore a loop that ends without an error has received the whole body. Validators run at
/// the end of the response, after its chunks; `onHTTPResponse` can decide before them. A cancelled request or task
/// throws ``AFError/explicitlyCancelled``.
///
/// Read it once, in one loop. Values that arrive before the loop begins are held; while it runs, the server waits if
/// the loop is about a mebibyte behind.
public struct StreamValues<Element: Sendable>: AsyncSequence, Sendable {
  typealias Base = StreamOf<DataStreamRequest.Stream<Element, AFError>>

  private let base: Base
  private let isCancelledQuietly: Bool

  /// Makes the values of a stream.
  ///
  /// - Parameter isCancelledQuietly: Whether a cancellation ends the loop without an error.
  init(_ base: Base, isCancelledQuietly: Bool = false) {
    self.base = base
    self.isCancelledQuietly = isCancelledQuietly
  }

  /// Begins to read.
  public func makeAsyncIterator() -> Iterator {
    Iterator(base.makeAsyncIterator(), isCancelledQuietly: isCancelledQuietly)
  }

  /// Reads values. When it is released, the request is cancelled, unless that was switched off.
  public struct Iterator: AsyncIteratorProtocol {
    private var base: Base.Iterator
    private let isCancelledQuietly: Bool
    private var isOver = false

    init(_ base: Base.Iterator, isCancelledQuietly: Bool) {
      self.base = base
      self.isCancelledQuietly = isCancelledQuietly
    }

    /// Returns the next value; `nil` at the end, and after an error.
    public mutating func next() async throws(AFError) -> Element? {
      try await next(isolation: nil)
    }

    /// Returns the next value; it stays on the actor of the loop while a value is at hand.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(AFError) -> Element? {
      guard !isOver else { return nil }
      switch await base.next(isolation: actor)?.event {
      case .stream(.success(let value))?: return value
      case .stream(.failure(let error))?: return try end(error)
      case .complete(let completion)?: return try end(completion.error)
      // The surrounding task was cancelled.
      case nil: return try end(.explicitlyCancelled)
      }
    }

    private mutating func end(_ error: AFError?) throws(AFError) -> Element? {
      isOver = true
      guard let error, !(isCancelledQuietly && error.isExplicitlyCancelledError) else { return nil }
      throw error
    }
  }
}

extension DataStreamRequest {
  /// Returns the bytes of the body as an asynchronous sequence; the boundaries of chunks are arbitrary.
  ///
  /// A retry after the first chunk is an error, because the bytes of two responses would be joined. Use
  /// ``streamTask()`` for a request that may be retried then.
  ///
  /// - Parameter shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  public func chunks(automaticallyCancelling shouldAutomaticallyCancel: Bool = true) -> StreamValues<Data> {
    values(using: PassthroughStreamSerializer(), automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the text of the body as an asynchronous sequence of strings, which end between characters. Invalid UTF-8
  /// becomes U+FFFD. See ``chunks(automaticallyCancelling:)`` for retries.
  ///
  /// - Parameter shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  public func strings(automaticallyCancelling shouldAutomaticallyCancel: Bool = true) -> StreamValues<String>
  {
    values(using: StringStreamSerializer(), automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the JSON documents of the body, decoded; see ``DecodableStreamSerializer`` for the format. A document that
  /// cannot be decoded is thrown and ends the sequence. See ``chunks(automaticallyCancelling:)`` for retries.
  ///
  /// ```swift
  /// for try await item in AF.streamRequest("https://httpbin.org/stream/100").decodables(of: Item.self) {
  ///   print(item)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  public func decodables<Value: Decodable & Sendable>(
    of type: Value.Type = Value.self, using decoder: any DataDecoder = JSONDecoder(),
    automaticallyCancelling shouldAutomaticallyCancel: Bool = true
  ) -> StreamValues<Value> {
    values(
      using: DecodableStreamSerializer<Value>(decoder: decoder),
      automaticallyCancelling: shouldAutomaticallyCancel)
  }

  /// Returns the values that `serializer` makes of the body as an asynchronous sequence. A failure of the serializer is
  /// thrown and ends the sequence. See ``chunks(automaticallyCancelling:)`` for retries.
  ///
  /// - Parameters:
  ///   - serializer: Makes values.
  ///   - shouldAutomaticallyCancel: Whether leaving the loop early cancels the request. Default: `true`.
  public func values<Serializer: DataStreamSerializer>(
    using serializer: Serializer, automaticallyCancelling shouldAutomaticallyCancel: Bool = true
  ) -> StreamValues<Serializer.SerializedObject> {
    let decoding = StreamDecoding(serializer).ofOneResponse {
      .sessionTaskFailed(
        error: URLError(
          .networkConnectionLost,
          "The response began again after a part of it was read. Use streamTask() for a request that is retried then.",
          url: nil))
    }
    return StreamValues(
      StreamOf(pulling: PulledStream(self, decoding: decoding, cancels: shouldAutomaticallyCancel)))
  }
}

/// The events of an ``EventSourceRequest`` for `for try await`.
///
/// It ends when the server ends the stream with status 204, the request or the task is cancelled, or a stream without
/// reconnection ends. Otherwise it throws the error of the request.
public typealias EventSequence<Element: Sendable> = StreamValues<Element>

extension EventSourceRequest {
  /// Returns the events as an asynchronous sequence. The request is cancelled when the loop is left.
  public func events() -> EventSequence<ServerSentEvent> {
    EventSequence(
      StreamOf(pulling: PulledStream(self, decoding: Self.eventDecoding, cancels: true)),
      isCancelledQuietly: true)
  }

  /// Returns the events with decoded data as an asynchronous sequence. The request is cancelled when the loop is left.
  /// A value that cannot be decoded is thrown and ends the sequence.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - decoder: Decodes the bytes of ``ServerSentEvent/data``. Default: a `JSONDecoder`.
  public func decodableEvents<Value: Decodable & Sendable>(
    of type: Value.Type = Value.self, using decoder: any DataDecoder = JSONDecoder()
  ) -> EventSequence<DecodedEvent<Value>> {
    EventSequence(
      StreamOf(pulling: PulledStream(self, decoding: Self.decoding(by: decoder), cancels: true)),
      isCancelledQuietly: true)
  }
}
