public import Foundation
public import FoundationNetworking
import HTTPWire

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
  /// - Throws: Any error; if it is not an ``AFError``, the request fails with
  ///   ``AFError/createURLRequestFailed(error:)``, which contains it.
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

  /// Returns the request with the value as its body; the content type `application/json` is set unless there is one.
  /// `nil` leaves the request unchanged.
  ///
  /// - Throws: ``AFError/parameterEncodingFailed(reason:)`` with `.jsonEncodingFailed` when the value cannot be
  ///   written; ``AFError/parameterEncoderFailed(reason:)`` with `.missingRequiredComponent` when the request has no
  ///   URL.
  open func encode<Parameters: Encodable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest {
    var request = request
    try write(parameters, to: &request)
    return request
  }

  fileprivate func write(_ parameters: (some Encodable)?, to request: inout URLRequest) throws(AFError) {
    guard let parameters else { return }
    guard request.url != nil else {
      throw .parameterEncoderFailed(reason: .missingRequiredComponent(.url))
    }
    do {
      request.httpBody = try encoder.encode(parameters)
    } catch {
      throw .parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
    }
    request.setContentTypeIfAbsent("application/json")
  }
}

extension ParameterEncoder {
  /// Encodes into a request that nothing else refers to. The built-in encoders change it in place, because a copy of a
  /// `URLRequest` takes about as long as encoding a small value.
  func encode(_ parameters: (some Encodable & Sendable)?, in request: inout URLRequest) throws {
    switch self {
    // A subclass may override `encode(_:into:)`.
    case let json as JSONParameterEncoder where type(of: json) == JSONParameterEncoder.self:
      try json.write(parameters, to: &request)
    case let form as URLEncodedFormParameterEncoder
    where type(of: form) == URLEncodedFormParameterEncoder.self:
      try form.write(parameters, to: &request)
    default: request = try encode(parameters, into: request)
    }
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

/// Writes an `Encodable` value as `name=value` pairs joined by `&`, into the query or the body.
///
/// ```swift
/// let encoder = URLEncodedFormParameterEncoder(
///   encoder: URLEncodedFormEncoder(arrayEncoding: .noBrackets), destination: .httpBody)
/// let request = AF.request(url, method: .post, parameters: search, encoder: encoder)
/// ```
open class URLEncodedFormParameterEncoder: @unchecked Sendable, ParameterEncoder {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.

  /// The part of the request that receives the pairs.
  public enum Destination: Sendable {
    /// Into the query for `GET`, `HEAD` and `DELETE`, else into the body.
    case methodDependent
    /// Into the query.
    case queryString
    /// Into the body.
    case httpBody

    func writesQuery(method: HTTPMethod) -> Bool {
      switch self {
      case .methodDependent: method.placesParametersInQuery
      case .queryString: true
      case .httpBody: false
      }
    }
  }

  /// A new encoder with all the defaults.
  public static var `default`: URLEncodedFormParameterEncoder {
    URLEncodedFormParameterEncoder(encoder: URLEncodedFormEncoder(byDefault: ()))
  }

  /// The encoder of the pairs.
  public let encoder: URLEncodedFormEncoder
  /// The destination of the pairs.
  public let destination: Destination

  /// Makes an encoder.
  ///
  /// - Parameters:
  ///   - encoder:     The encoder of the pairs; by default one with default options.
  ///   - destination: The destination of the pairs; by default it depends on the method.
  public init(
    encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(), destination: Destination = .methodDependent
  ) {
    self.encoder = encoder
    self.destination = destination
  }

  /// Returns the request with the value in its query or body; for `nil`, unchanged.
  ///
  /// An existing query stays, before the new pairs; without pairs the URL is not changed. With a body, the content type
  /// `application/x-www-form-urlencoded; charset=utf-8` is set unless the request has one. Characters of
  /// `allowedCharacters` that are invalid in a query are percent-encoded there.
  ///
  /// - Throws: ``AFError/parameterEncoderFailed(reason:)`` with `.missingRequiredComponent` if the request has no URL
  ///   or no method, and with `.encoderFailed` if the value cannot be encoded.
  open func encode<Parameters: Encodable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest {
    var request = request
    try write(parameters, to: &request)
    return request
  }

  fileprivate func write(_ parameters: (some Encodable)?, to request: inout URLRequest) throws(AFError) {
    guard let parameters else { return }
    guard let url = request.url else {
      throw .parameterEncoderFailed(reason: .missingRequiredComponent(.url))
    }
    guard let method = request.method else {
      throw .parameterEncoderFailed(reason: .missingRequiredComponent(.httpMethod(rawValue: "nil")))
    }
    let form = try form(of: parameters)
    guard destination.writesQuery(method: method) else { return request.setFormBody(form) }
    guard let url = url.appending(toQuery: form) else {
      throw .parameterEncoderFailed(reason: .missingRequiredComponent(.url))
    }
    request.url = url
  }

  private func form(of parameters: some Encodable) throws(AFError) -> String {
    do {
      return try encoder.encode(parameters)
    } catch {
      throw .parameterEncoderFailed(reason: .encoderFailed(error: error))
    }
  }
}

extension ParameterEncoder where Self == URLEncodedFormParameterEncoder {
  /// A ``URLEncodedFormParameterEncoder`` with the default settings.
  public static var urlEncodedForm: URLEncodedFormParameterEncoder { .default }

  /// Makes a ``URLEncodedFormParameterEncoder`` with the given encoder and destination.
  public static func urlEncodedForm(
    encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(),
    destination: URLEncodedFormParameterEncoder.Destination = .methodDependent
  ) -> URLEncodedFormParameterEncoder {
    URLEncodedFormParameterEncoder(encoder: encoder, destination: destination)
  }
}
