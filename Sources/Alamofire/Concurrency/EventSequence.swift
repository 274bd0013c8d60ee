import Foundation
public import HTTPWire

/// The events of an ``EventSourceRequest`` in a loop. It ends when the server ends the stream with status 204, the
/// request is cancelled, or a stream without reconnection ends. Otherwise it throws the error of the request.
///
/// Read it once, in one loop. Events that arrive before the loop begins are held; while it runs, the server waits if
/// the loop is about a mebibyte behind.
public struct EventSequence<Element: Sendable>: AsyncSequence, Sendable {
  typealias Base = StreamOf<DataStreamRequest.Stream<Element, AFError>>

  private let base: Base

  init(_ base: Base) { self.base = base }

  /// Begins to read.
  public func makeAsyncIterator() -> Iterator { Iterator(base: base.makeAsyncIterator()) }

  /// Reads events. When it is released, the request is cancelled.
  public struct Iterator: AsyncIteratorProtocol {
    var base: Base.Iterator

    /// Returns the next event; `nil` at the end, and if the surrounding task is cancelled.
    public mutating func next() async throws(AFError) -> Element? {
      guard let stream = await base.next() else { return nil }
      switch stream.event {
      case .stream(let result): return try result.get()
      case .complete(let completion):
        guard let error = completion.error, !error.isExplicitlyCancelledError else { return nil }
        throw error
      }
    }
  }
}

extension EventSourceRequest {
  /// Returns the events as an asynchronous sequence. The request is cancelled when the loop is left.
  public func events() -> EventSequence<ServerSentEvent> {
    EventSequence(StreamOf(pulling: PulledStream(self, decoding: Self.eventDecoding, cancels: true)))
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
    EventSequence(StreamOf(pulling: PulledStream(self, decoding: Self.decoding(by: decoder), cancels: true)))
  }
}
