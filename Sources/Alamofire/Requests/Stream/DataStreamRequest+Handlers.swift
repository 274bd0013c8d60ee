public import Foundation
import HTTPWire

extension DataStreamRequest {
  /// Adds a handler that gets the bytes as they come.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler, which is called for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStream(
    on queue: DispatchQueue = .main, stream: @escaping Handler<Data, Never>
  ) -> Self {
    add(.data, on: queue, isCheap: true, stream)
  }

  /// Adds a handler that gets the values that `serializer` makes of the bytes.
  ///
  /// The serializer runs on the session's serialization queue if there is one, otherwise on a queue of the system.
  ///
  /// - Parameters:
  ///   - serializer: Makes values. Built-in serializers are called with whole characters or documents, custom ones
  ///     with each chunk as received.
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStream<Serializer: DataStreamSerializer>(
    using serializer: Serializer, on queue: DispatchQueue = .main,
    stream: @escaping Handler<Serializer.SerializedObject, AFError>
  ) -> Self {
    add(StreamDecoding(serializer), on: queue, isCheap: false, stream)
  }

  /// Adds a handler that gets UTF-8 text, in chunks that end between characters, at arbitrary boundaries. Invalid
  /// UTF-8 becomes U+FFFD.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStreamString(
    on queue: DispatchQueue = .main, stream: @escaping Handler<String, Never>
  ) -> Self {
    add(.text, on: queue, isCheap: true, stream)
  }

  /// Adds a handler that gets decoded values; see ``DecodableStreamSerializer`` for the format.
  ///
  /// - Parameters:
  ///   - type: The type of the values; inferred by default.
  ///   - queue: The queue of the handler, for one event at a time. Default: the main queue.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - preprocessor: The transformation of each chunk before it is decoded. Default: none.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStreamDecodable<T: Decodable & Sendable>(
    of type: T.Type = T.self, on queue: DispatchQueue = .main, using decoder: any DataDecoder = JSONDecoder(),
    preprocessor: any DataPreprocessor = PassthroughPreprocessor(), stream: @escaping Handler<T, AFError>
  ) -> Self {
    responseStream(
      using: DecodableStreamSerializer<T>(decoder: decoder, dataPreprocessor: preprocessor), on: queue,
      stream: stream)
  }

  /// Adds a handler.
  ///
  /// - Parameter isCheap: Whether values are made on the handler's queue.
  @discardableResult
  func add<Success: Sendable, Failure: Error>(
    _ decoding: StreamDecoding<Success, Failure>, on queue: DispatchQueue, isCheap: Bool,
    _ handler: @escaping Handler<Success, Failure>
  ) -> Self {
    let decodingQueue = isCheap ? nil : core.session.userSerializationQueue ?? .global()
    let mailbox = flow.add(.called, holdsBack: true, on: queue) { id in
      StreamMailbox(
        self, id: id, decoding: decoding, decodingQueue: decodingQueue, queue: queue, handler: handler)
    }
    core.add(mailbox, for: self)
    return self
  }
}
