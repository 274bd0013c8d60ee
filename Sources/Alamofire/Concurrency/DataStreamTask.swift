public import Foundation

/// The events of a ``DataStreamRequest``, for `for await`: chunks, then the completion, then the end.
///
/// Several streams of one request may be read, at the same time or one after the other. The request starts when the
/// first stream is made.
///
/// By default (`.unbounded`) no event is lost: while a stream is read, the server waits if its reader is about a
/// mebibyte behind. Bytes received before the first read are held in memory. Another policy drops events that are not
/// read in time, which can include the completion.
///
/// Values are made on the thread of the reading task; with a policy other than `.unbounded`, on a queue of the
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
  ///   - bufferingPolicy: The limit of unread elements. Default: all are kept, and the server waits.
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
  ///   - bufferingPolicy: The limit of unread elements. Default: all are kept, and the server waits.
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
  ///   - bufferingPolicy: The limit of unread elements. Default: all are kept, and the server waits.
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
  ///   - bufferingPolicy: The limit of unread elements. Default: all are kept, and the server waits.
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
    // Weak, since the request holds the handler, and that the stream.
    return StreamOf(bufferingPolicy: policy) { [weak request] in
      if cancels { request?.cancel() }
    } builder: { continuation in
      request.add(decoding, on: .global(), isCheap: true) { stream in
        // The consumer has left, but the request continues: further bytes need not be decoded.
        if case .terminated = continuation.yield(stream) { stream.token.mute() }
        if case .complete = stream.event { continuation.finish() }
      }
    }
  }
}

extension DataStreamRequest {
  /// Makes the task that has the events of this request as `async` sequences.
  public func streamTask() -> DataStreamTask { DataStreamTask(self) }
}
