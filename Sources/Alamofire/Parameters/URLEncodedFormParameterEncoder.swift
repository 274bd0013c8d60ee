public import FoundationNetworking
import HTTPWire

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
  public static var `default`: URLEncodedFormParameterEncoder { URLEncodedFormParameterEncoder() }

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
  /// An existing query is kept in front; without pairs the URL is not changed. With a body, the content type
  /// `application/x-www-form-urlencoded; charset=utf-8` is set unless the request has one. Characters of
  /// `allowedCharacters` that are invalid in a query are percent-encoded there.
  ///
  /// - Throws: ``AFError/parameterEncoderFailed(reason:)`` with `.missingRequiredComponent` if the request has no URL
  ///   or no method, and with `.encoderFailed` if the value cannot be encoded.
  open func encode<Parameters: Encodable>(
    _ parameters: Parameters?, into request: URLRequest
  ) throws -> URLRequest {
    guard let parameters else { return request }
    guard let url = request.url else {
      throw AFError.parameterEncoderFailed(reason: .missingRequiredComponent(.url))
    }
    guard let method = request.method else {
      throw AFError.parameterEncoderFailed(reason: .missingRequiredComponent(.httpMethod(rawValue: "nil")))
    }
    let form = try form(of: parameters)
    var request = request
    if destination.writesQuery(method: method) {
      guard let url = url.appending(toQuery: form) else {
        throw AFError.parameterEncoderFailed(reason: .missingRequiredComponent(.url))
      }
      request.url = url
    } else {
      request.setFormBody(form)
    }
    return request
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
