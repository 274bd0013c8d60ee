public import Foundation
public import FoundationNetworking

/// A type that makes a value from a response.
public protocol ResponseSerializerType {
  /// The type of its values.
  associatedtype SerializedObject
  /// The type of its errors.
  associatedtype ErrorObject: Error

  /// Makes the value of the request, the response, the body and the error so far. Called away from the main queue,
  /// once for each handler; a failure never sends the request again.
  var serializeResponse:
    (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<SerializedObject, ErrorObject>
  { get }
}

/// A serializer created from a closure.
public struct ResponseSerializer<Value, Error: Swift.Error>: ResponseSerializerType {
  /// The type of its values.
  public typealias SerializedObject = Value
  /// The type of its errors.
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
