import Alamofire
public import Foundation
public import FoundationNetworking

/// Encodes ``Parameters`` as a property list in the body, for any method.
///
/// The values are the ones that `PropertyListSerialization` accepts: text, numbers, bools, dates, data, and arrays and
/// dictionaries of these.
public struct PropertyListEncoding: ParameterEncoding, Sendable {
  /// An encoding that writes XML.
  public static var `default`: PropertyListEncoding { PropertyListEncoding() }
  /// An encoding that writes XML; the same as ``default``.
  public static var xml: PropertyListEncoding { PropertyListEncoding(format: .xml) }
  /// An encoding that writes the binary format.
  public static var binary: PropertyListEncoding { PropertyListEncoding(format: .binary) }

  /// The format.
  public let format: PropertyListSerialization.PropertyListFormat
  /// The options; none are defined.
  public let options: PropertyListSerialization.WriteOptions

  /// Makes an encoding.
  ///
  /// - Parameters:
  ///   - format:  The format. Default: XML.
  ///   - options: The options of `PropertyListSerialization`. Default: 0.
  public init(
    format: PropertyListSerialization.PropertyListFormat = .xml,
    options: PropertyListSerialization.WriteOptions = 0
  ) {
    self.format = format
    self.options = options
  }

  /// Returns the request with the parameters as its body; for `nil`, unchanged. The content type
  /// `application/x-plist` is set unless the request has one.
  ///
  /// - Throws: The error of `urlRequest`; ``AFError/parameterEncodingFailed(reason:)`` with
  ///   `.propertyListEncodingFailed` if a property list cannot represent the parameters, with `.missingURL` if the
  ///   request has no URL.
  public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws
    -> URLRequest
  {
    var request = try urlRequest.asURLRequest()
    guard let parameters else { return request }
    guard request.url != nil else { throw AFError.parameterEncodingFailed(reason: .missingURL) }
    do {
      let data = try PropertyListSerialization.data(
        fromPropertyList: parameters, format: format, options: options)
      if request.value(forHTTPHeaderField: "Content-Type") == nil {
        request.setValue("application/x-plist", forHTTPHeaderField: "Content-Type")
      }
      request.httpBody = data
    } catch {
      throw AFError.parameterEncodingFailed(reason: .propertyListEncodingFailed(error: error))
    }
    return request
  }
}
