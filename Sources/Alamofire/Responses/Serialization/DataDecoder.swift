public import Foundation

/// Makes values of bytes: `JSONDecoder`, `PropertyListDecoder`, or one of your own.
@preconcurrency
public protocol DataDecoder: Sendable {
  /// Makes a value.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - data: The bytes; never empty when a serializer calls.
  /// - Returns: The value.
  /// - Throws: Any error; a serializer wraps it in `.decodingFailed`.
  func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D
}

extension JSONDecoder: DataDecoder {}

extension PropertyListDecoder: DataDecoder {}
