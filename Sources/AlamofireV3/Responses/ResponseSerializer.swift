public import Foundation
public import FoundationNetworking

/// Something that makes a value of a response.
public protocol ResponseSerializerType {
  /// What it makes.
  associatedtype SerializedObject
  /// What it fails with.
  associatedtype ErrorObject: Error

  /// Makes the value of the request, the response, the body and the error so far. Called away from the main queue,
  /// once for each handler; a failure never sends the request again.
  var serializeResponse:
    (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<SerializedObject, ErrorObject>
  { get }
}

/// A serializer made of a closure.
public struct ResponseSerializer<Value, Error: Swift.Error>: ResponseSerializerType {
  /// What it makes.
  public typealias SerializedObject = Value
  /// What it fails with.
  public typealias ErrorObject = Error

  /// The closure.
  public var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<Value, Error>

  /// Makes a serializer of the closure.
  public init(
    serializeResponse: @escaping (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<Value, Error>
  ) {
    self.serializeResponse = serializeResponse
  }
}
