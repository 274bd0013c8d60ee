public import Foundation
public import FoundationNetworking

/// Turns the response of a data request into a value.
public protocol DataResponseSerializerProtocol<SerializedObject> {
  /// What comes out of it.
  associatedtype SerializedObject

  /// Makes the value. Called away from the main queue, once for each handler, also when the request failed; the
  /// error is then the last argument.
  var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject> {
    get
  }
}

/// A ``DataResponseSerializerProtocol`` made of a closure.
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
  /// What comes out of it.
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
  /// What comes out of it.
  associatedtype SerializedObject

  /// Makes the value. Called away from the main queue, once for each handler, also when the request failed; the
  /// error is then the last argument.
  var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject> {
    get
  }
}

/// A ``DownloadResponseSerializerProtocol`` made of a closure.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
  /// What comes out of it.
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
