public import Foundation
public import FoundationNetworking

/// A way to put an `Encodable` value into a request.
///
/// ```swift
/// struct Search: Encodable {
///   var query: String
///   var page: Int
/// }
/// let search = Search(query: "a b", page: 1)
///
/// let query = AF.request(url, parameters: search)
/// let json = AF.request(url, method: .post, parameters: search, encoder: .json)
/// let form = AF.request(url, method: .post, parameters: search, encoder: .urlEncodedForm)
/// ```
@preconcurrency
public protocol ParameterEncoder: Sendable {
  /// Returns the request with the encoded value.
  ///
  /// - Parameters:
  ///   - parameters: The value; for `nil`, the built-in encoders return the request unchanged.
  ///   - request:    The request.
  /// - Throws: Any error; one that is no ``AFError`` is wrapped in ``AFError/parameterEncoderFailed(reason:)`` with
  ///   `.encoderFailed`.
  func encode<Parameters: Encodable & Sendable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest
}

/// Writes an `Encodable` value as JSON into the body.
///
/// ```swift
/// let encoder = JSONEncoder()
/// encoder.dateEncodingStrategy = .iso8601
/// let request = AF.request(
///   url, method: .post, parameters: event, encoder: JSONParameterEncoder(encoder: encoder))
/// ```
open class JSONParameterEncoder: @unchecked Sendable, ParameterEncoder {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.

  /// A new encoder that writes without spaces.
  public static var `default`: JSONParameterEncoder { JSONParameterEncoder() }

  /// A new encoder that writes with line breaks and indentation.
  public static var prettyPrinted: JSONParameterEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .prettyPrinted
    return JSONParameterEncoder(encoder: encoder)
  }

  /// A new encoder that writes keys in their order, so that equal values give equal bodies.
  public static var sortedKeys: JSONParameterEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return JSONParameterEncoder(encoder: encoder)
  }

  /// The encoder of the JSON text. Its settings must not change while requests are made.
  public let encoder: JSONEncoder

  /// Makes an encoder.
  ///
  /// - Parameter encoder: The encoder of the JSON; by default one with default settings.
  public init(encoder: JSONEncoder = JSONEncoder()) {
    self.encoder = encoder
  }

  /// Returns the request with the value as its body; the content type `application/json` is set unless
  /// there is one. `nil` leaves the request alone.
  ///
  /// - Throws: ``AFError/parameterEncoderFailed(reason:)`` with `.encoderFailed` when the value cannot be
  ///   written, with `.missingRequiredComponent` when the request has no URL.
  open func encode<Parameters: Encodable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest {
    guard let parameters else { return request }
    guard request.url != nil else {
      throw AFError.parameterEncoderFailed(reason: .missingRequiredComponent(.url))
    }
    var request = request
    do {
      request.httpBody = try encoder.encode(parameters)
    } catch {
      throw AFError.parameterEncoderFailed(reason: .encoderFailed(error: error))
    }
    request.setContentTypeIfAbsent("application/json")
    return request
  }
}

extension ParameterEncoder where Self == JSONParameterEncoder {
  /// A ``JSONParameterEncoder`` with the default settings.
  public static var json: JSONParameterEncoder { .default }

  /// Makes a ``JSONParameterEncoder`` that writes with the given encoder.
  public static func json(encoder: JSONEncoder = JSONEncoder()) -> JSONParameterEncoder {
    JSONParameterEncoder(encoder: encoder)
  }
}
