public import Foundation

/// Changes the bytes of a body before a serializer reads them.
@preconcurrency
public protocol DataPreprocessor: Sendable {
  /// Returns the bytes to serialize.
  ///
  /// Called only for a body that is not empty, off the engine's thread.
  ///
  /// - Parameter data: The bytes as received.
  /// - Returns: The bytes to serialize.
  /// - Throws: Any error; one that is no ``AFError`` is wrapped in `.customSerializationFailed`.
  func preprocess(_ data: Data) throws -> Data
}

/// Changes nothing, and copies nothing.
///
/// ```swift
/// let serializer = DataResponseSerializer(dataPreprocessor: .passthrough)
/// ```
public struct PassthroughPreprocessor: DataPreprocessor {
  /// Makes the preprocessor.
  public init() {}

  /// Returns the bytes unchanged.
  public func preprocess(_ data: Data) throws -> Data { data }
}

/// Drops the six bytes `)]}',` and line feed with which some servers protect JSON from being run as a
/// script (cross-site script inclusion).
///
/// ```swift
/// let serializer = DecodableResponseSerializer<User>(dataPreprocessor: .googleXSSI)
/// ```
public struct GoogleXSSIPreprocessor: DataPreprocessor {
  private static let prefix = Array(")]}',\n".utf8)

  /// Makes the preprocessor.
  public init() {}

  /// Returns the bytes without the prefix; the same bytes when they do not start with it.
  public func preprocess(_ data: Data) throws -> Data {
    data.starts(with: Self.prefix) ? data.dropFirst(Self.prefix.count) : data
  }
}

extension DataPreprocessor where Self == PassthroughPreprocessor {
  /// Changes nothing.
  public static var passthrough: PassthroughPreprocessor { PassthroughPreprocessor() }
}

extension DataPreprocessor where Self == GoogleXSSIPreprocessor {
  /// Drops the prefix `)]}',` and line feed.
  public static var googleXSSI: GoogleXSSIPreprocessor { GoogleXSSIPreprocessor() }
}

extension DataPreprocessor {
  /// Whether the body is used as it is, so that no code of the caller runs.
  var isPassthrough: Bool { self is PassthroughPreprocessor }
}
