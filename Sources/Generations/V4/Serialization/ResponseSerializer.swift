public import Foundation
public import FoundationNetworking

/// Turns the response of a data request into a value.
public protocol DataResponseSerializerProtocol<SerializedObject> {
  /// The type of its values.
  associatedtype SerializedObject

  /// Makes the value. Called away from the main queue, once for each handler, also when the request failed; the
  /// error is then the last argument.
  var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject> {
    get
  }
}

/// A ``DataResponseSerializerProtocol`` created from a closure.
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
  /// The type of its values.
  public typealias SerializedObject = Value

  /// Makes the value.
  public var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value>

  /// Makes a serializer of a closure.
  public init(
    serializeResponse: @escaping (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value>
  ) {
    self.serializeResponse = serializeResponse
  }
}

/// Turns the file of a download into a value.
public protocol DownloadResponseSerializerProtocol<SerializedObject> {
  /// The type of its values.
  associatedtype SerializedObject

  /// Makes the value. Called away from the main queue, once for each handler, also when the request failed; the
  /// error is then the last argument.
  var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject> {
    get
  }
}

/// A ``DownloadResponseSerializerProtocol`` created from a closure.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
  /// The type of its values.
  public typealias SerializedObject = Value

  /// Makes the value.
  public var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value>

  /// Makes a serializer of a closure.
  public init(
    serializeResponse: @escaping (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value>
  ) {
    self.serializeResponse = serializeResponse
  }
}
