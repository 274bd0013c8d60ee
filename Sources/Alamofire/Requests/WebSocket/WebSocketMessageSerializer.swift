public import Foundation
public import FoundationNetworking

/// Makes values of the messages of a WebSocket connection.
///
/// ```swift
/// struct LineCount: WebSocketMessageSerializer {
///   func decode(_ message: URLSessionWebSocketTask.Message) throws -> Int {
///     guard case .string(let text) = message else { return 0 }
///     return text.split(separator: "\n").count
///   }
/// }
/// ```
public protocol WebSocketMessageSerializer<Output, Failure>: Sendable {
  /// The type of the values.
  associatedtype Output: Sendable
  /// The type of the errors.
  associatedtype Failure: Error = any Error

  /// Returns the value of a message. Called on the queue of the handler, for one message at a time.
  func decode(_ message: URLSessionWebSocketTask.Message) throws -> Output
}

extension WebSocketMessageSerializer {
  /// Decodes JSON messages, of either kind.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - decoder: Default: a `JSONDecoder`.
  public static func json<Value: Decodable & Sendable>(
    decoding type: Value.Type, using decoder: JSONDecoder = JSONDecoder()
  ) -> DecodableWebSocketMessageDecoder<Value> where Self == DecodableWebSocketMessageDecoder<Value> {
    DecodableWebSocketMessageDecoder(decoder: decoder)
  }
}

/// Decodes the messages of a WebSocket connection, whether they are text or bytes.
public struct DecodableWebSocketMessageDecoder<Value: Decodable & Sendable>: WebSocketMessageSerializer {
  /// The reason why a message was not decoded.
  public enum Error: Swift.Error {
    /// The decoder has thrown this error.
    case decoding(any Swift.Error)
    /// The message is neither text nor bytes.
    case unknownMessage(description: String)
  }

  /// The decoder of the messages.
  public let decoder: any DataDecoder

  /// Makes a serializer.
  ///
  /// - Parameter decoder: The decoder of the messages.
  public init(decoder: any DataDecoder) { self.decoder = decoder }

  /// Returns the value of a message. Throws ``Error``.
  public func decode(_ message: URLSessionWebSocketTask.Message) throws -> Value {
    let data: Data
    switch message {
    case .data(let bytes): data = bytes
    case .string(let text): data = Data(text.utf8)
    @unknown default: throw Error.unknownMessage(description: String(describing: message))
    }
    do { return try decoder.decode(Value.self, from: data) } catch { throw Error.decoding(error) }
  }
}
