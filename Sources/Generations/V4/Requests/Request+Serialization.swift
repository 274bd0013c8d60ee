import Alamofire
public import Foundation
public import FoundationNetworking

// The functions of the built-in serializers, for custom ones.
extension Request {
  /// Returns the body unchanged; see ``DataRequest/dataResponseSerializer()``.
  public static func serializeResponseData(
    response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<Data> {
    Serialization.data(response: response, data: data, error: error)
  }

  /// Returns the body as text; see ``DataRequest/stringResponseSerializer(encoding:)``.
  public static func serializeResponseString(
    encoding: String.Encoding?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<String> {
    Serialization.string(encoding: encoding, response: response, data: data, error: error)
  }

  /// Parses the body as JSON; see ``DataRequest/jsonResponseSerializer(options:)``.
  public static func serializeResponseJSON(
    options: JSONSerialization.ReadingOptions, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<Any> {
    Serialization.json(options: options, response: response, data: data, error: error)
  }

  /// Parses the body as a property list; see ``DataRequest/propertyListResponseSerializer(options:)``.
  public static func serializeResponsePropertyList(
    options: PropertyListSerialization.ReadOptions, response: HTTPURLResponse?, data: Data?,
    error: (any Error)?
  ) -> Result<Any> {
    Serialization.propertyList(options: options, response: response, data: data, error: error)
  }
}
