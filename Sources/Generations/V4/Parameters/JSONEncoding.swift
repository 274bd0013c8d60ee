import Alamofire
public import Foundation
public import FoundationNetworking

/// Encodes ``Parameters`` as JSON in the body, for any method.
///
/// The values are the ones that `JSONSerialization` accepts: text, numbers, bools, `NSNull`, and arrays and
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
  /// - Parameter options: The options of `JSONSerialization`; by default without spaces.
  public init(options: JSONSerialization.WritingOptions = []) {
    self.options = options
  }

  /// Returns the request with the parameters as its body. The content type `application/json` is set unless the
  /// request has one.
  ///
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.jsonEncodingFailed` if
  ///   JSON cannot represent the parameters.
  public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws
    -> URLRequest
  {
    try encode(urlRequest, withJSONObject: parameters)
  }

  /// Returns the request with a JSON object, such as an array, as its body. The content type `application/json` is
  /// set unless the request has one.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - jsonObject: An array or a dictionary; with `nil`, the default, the request is returned unchanged.
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with `.jsonEncodingFailed` if
  ///   JSON cannot represent the object, which ended the program in Alamofire 4.
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
