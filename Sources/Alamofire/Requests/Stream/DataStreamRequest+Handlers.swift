public import Foundation
import HTTPWire

extension DataStreamRequest {
  /// Adds a handler that gets the bytes as they come.
  ///
  /// - Parameters:
  ///   - queue: Where the handler is called, for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStream(
    on queue: DispatchQueue = .main, stream: @escaping Handler<Data, Never>
  ) -> Self {
    add(.data, on: queue, isCheap: true, stream)
  }

  /// Adds a handler that gets what `serializer` makes of the bytes.
  ///
  /// The serializer runs on the session's serialization queue if one was given, else on a queue of the system.
  ///
  /// - Parameters:
  ///   - serializer: Makes values. The library's own are not called with what the network gives, but with whole
  ///     characters or documents; one of yours is called with each piece as it comes.
  ///   - queue: Where the handler is called, for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStream<Serializer: DataStreamSerializer>(
    using serializer: Serializer, on queue: DispatchQueue = .main,
    stream: @escaping Handler<Serializer.SerializedObject, AFError>
  ) -> Self {
    add(StreamDecoding(serializer), on: queue, isCheap: false, stream)
  }

  /// Adds a handler that gets text, read as UTF-8: cut between characters wherever the network cut it. What is no UTF-8
  /// becomes U+FFFD.
  ///
  /// - Parameters:
  ///   - queue: Where the handler is called, for one event at a time. Default: the main queue.
  ///   - stream: Called with each event.
  @preconcurrency
  @discardableResult
  public func responseStreamString(
    on queue: DispatchQueue = .main, stream: @escaping Handler<String, Never>
  ) -> Self {
    add(.text, on: queue, isCheap: true, stream)
  }

  /// Adds a handler that gets decoded values; see ``DecodableStreamSerializer`` for what may stand in the body.
  ///
  /// - Parameters:
  ///   - type: What is decoded; inferred from the handler if left out.
  ///   - queue: Where the handler is called, for one event at a time. Default: the main queue.
  ///   - decoder: Default: a `JSONDecoder`.
  ///   - preprocessor: Changes the bytes of each piece first. Default: leaves them as they are.
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
