import Alamofire
public import Foundation
public import FoundationNetworking

/// Writes ``Parameters`` as JSON into the body, whatever the method.
///
/// The values are those that `JSONSerialization` takes: text, numbers, bools, `NSNull`, and arrays and
/// dictionaries of these.
public struct JSONEncoding: ParameterEncoding, Sendable {
  /// An encoding that writes without spaces and in no particular order.
  public static var `default`: JSONEncoding { JSONEncoding() }
  /// An encoding that writes with line breaks and indentation.
  public static var prettyPrinted: JSONEncoding { JSONEncoding(options: .prettyPrinted) }

  /// The options of `JSONSerialization`.
  public let options: JSONSerialization.WritingOptions

  /// Makes an encoding.
  ///
  /// - Parameter options: How `JSONSerialization` is to write; by default without spaces.
  public init(options: JSONSerialization.WritingOptions = []) {
    self.options = options
  }

  /// Returns the request with the parameters as its body; the content type `application/json` is set unless
  /// there is one.
  ///
  /// - Throws: What `urlRequest` throws; ``AFError/parameterEncodingFailed(reason:)`` with
  ///   `.jsonEncodingFailed` when the parameters cannot be written.
  public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws
    -> URLRequest
  {
    try encode(urlRequest, withJSONObject: parameters)
  }

  /// Returns the request with any JSON object as its body, an array for example; the content type
  /// `application/json` is set unless there is one.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - jsonObject: An array or a dictionary; `nil`, the default, leaves the request alone.
  /// - Throws: What `urlRequest` throws; ``AFError/parameterEncodingFailed(reason:)`` with
  ///   `.jsonEncodingFailed` when the object cannot be written, which ended the program in this generation.
  public func encode(_ urlRequest: any URLRequestConvertible, withJSONObject jsonObject: Any? = nil) throws
    -> URLRequest
  {
    let request = try urlRequest.asURLRequest()
    do {
      return try Alamofire::JSONEncoding(options: options).encode(request, withJSONObject: jsonObject)
    } catch {
      throw legacy(error)
    }
  }
}
