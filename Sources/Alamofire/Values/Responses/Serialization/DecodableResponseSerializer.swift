public import Foundation
public import FoundationNetworking
public import HTTPWire

/// Decodes the body into a value.
///
/// An empty body that is allowed gives the empty value of a type that conforms to ``EmptyResponse``.
///
/// ```swift
/// let decoder = JSONDecoder()
/// decoder.keyDecodingStrategy = .convertFromSnakeCase
/// let serializer = DecodableResponseSerializer<User>(decoder: decoder)
/// ```
public final class DecodableResponseSerializer<T: Decodable>: ResponseSerializer {
  /// The type of the decoded value.
  public typealias SerializedObject = T

  /// The transformation of the bytes before they are decoded.
  public let dataPreprocessor: any DataPreprocessor
  /// The decoder.
  public let decoder: any DataDecoder
  /// The status codes for which an empty body is allowed.
  public let emptyResponseCodes: Set<Int>
  /// The methods for which an empty body is allowed.
  public let emptyRequestMethods: Set<HTTPMethod>

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - dataPreprocessor:    The transformation of the bytes before they are decoded. Default: none.
  ///   - decoder:             The decoder. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public init(
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer.defaultDataPreprocessor,
    decoder: any DataDecoder = JSONDecoder(),
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer.defaultEmptyRequestMethods
  ) {
    self.dataPreprocessor = dataPreprocessor
    self.decoder = decoder
    self.emptyResponseCodes = emptyResponseCodes
    self.emptyRequestMethods = emptyRequestMethods
  }

  /// Returns the decoded value, or the empty one if that is allowed.
  ///
  /// - Throws: `error` unchanged, if there is one. `.inputDataNilOrZeroLength` for an empty body that is not allowed.
  ///   `.invalidEmptyResponse` for an allowed one if the type has no empty value. Otherwise the error of the
  ///   preprocessor, or `.decodingFailed`.
  public func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> T {
    try serializeOnWire(request: request, response: response, data: data, error: error)
  }
}

extension DecodableResponseSerializer: WireSerializer {
  package func serialize(
    method: String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> T {
    try serialize(method: method, status: status, data: data, emptyValue: { try Self.emptyValue() }) { data in
      do {
        return try decoder.value(T.self, from: data)
      } catch {
        throw AFError.responseSerializationFailed(
          reason: .decodingFailed(error: (error as? DecodingError)?.showing(data) ?? error))
      }
    }
  }

  private static func emptyValue() throws -> T {
    guard let type = T.self as? any EmptyResponse.Type, let value = type.emptyValue() as? T else {
      throw AFError.responseSerializationFailed(reason: .invalidEmptyResponse(type: "\(T.self)"))
    }
    return value
  }
}

extension ResponseSerializer {
  /// Makes a serializer for values.
  ///
  /// - Parameters:
  ///   - type:                The type of the value; inferred by default.
  ///   - dataPreprocessor:    The transformation of the bytes before they are decoded. Default: none.
  ///   - decoder:             The decoder. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public static func decodable<T: Decodable>(
    of type: T.Type = T.self,
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer<T>.defaultDataPreprocessor,
    decoder: any DataDecoder = JSONDecoder(),
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer<T>.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer<T>.defaultEmptyRequestMethods
  ) -> DecodableResponseSerializer<T> where Self == DecodableResponseSerializer<T> {
    DecodableResponseSerializer<T>(
      dataPreprocessor: dataPreprocessor, decoder: decoder, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
  }
}

/// A decoder that creates values from bytes: `JSONDecoder`, `PropertyListDecoder`, or your own.
@preconcurrency
public protocol DataDecoder: Sendable {
  /// Makes a value.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - data: The bytes; never empty when a serializer calls.
  /// - Returns: The value.
  /// - Throws: Any error; a serializer wraps it in `.decodingFailed`.
  func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D
}

extension JSONDecoder: DataDecoder {}

extension PropertyListDecoder: DataDecoder {}

/// The decoder of handlers and tasks without their own. It is shared, because making one costs as much as decoding a
/// small document. No code can change it.
@usableFromInline
let defaultJSONDecoder = JSONDecoder()
