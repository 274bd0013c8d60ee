import Foundation
public import HTTPWire

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
