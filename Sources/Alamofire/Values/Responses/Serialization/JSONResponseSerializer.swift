public import Foundation
public import FoundationNetworking
public import HTTPWire

/// Reads the body as JSON without a type, with `JSONSerialization`.
///
/// An empty body that is allowed gives `NSNull`.
@available(*, deprecated, message: "Use DecodableResponseSerializer, which gives values of your own types.")
public final class JSONResponseSerializer: ResponseSerializer {
  /// The transformation of the bytes before they are parsed.
  public var dataPreprocessor: any DataPreprocessor { untyped.dataPreprocessor }
  /// The status codes for which an empty body is allowed.
  public var emptyResponseCodes: Set<Int> { untyped.emptyResponseCodes }
  /// The methods for which an empty body is allowed.
  public var emptyRequestMethods: Set<HTTPMethod> { untyped.emptyRequestMethods }
  /// The options of `JSONSerialization`.
  public var options: JSONSerialization.ReadingOptions { untyped.options }

  /// The implementation, which is not deprecated.
  package let untyped: UntypedJSONSerializer

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - dataPreprocessor:    The transformation of the bytes before they are read. Default: none.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  ///   - options:             The options of `JSONSerialization`. Default: top-level values of any type are allowed.
  public init(
    dataPreprocessor: any DataPreprocessor = JSONResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = JSONResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = JSONResponseSerializer.defaultEmptyRequestMethods,
    options: JSONSerialization.ReadingOptions = .allowFragments
  ) {
    untyped = UntypedJSONSerializer(
      dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods, options: options)
  }

  /// Returns the JSON value, or `NSNull` for an empty body if that is allowed.
  ///
  /// - Throws: `error` unchanged, if there is one; `.inputDataNilOrZeroLength` for an empty body that is not allowed;
  ///   the error of the preprocessor; `.jsonSerializationFailed`.
  public func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> any Any & Sendable {
    try untyped.serialize(request: request, response: response, data: data, error: error).sendable
  }
}

/// JSON without a type, for the deprecated forms of the public API.
package struct UntypedJSONSerializer: ResponseSerializer, WireSerializer {
  package typealias SerializedObject = UntypedJSON

  package let dataPreprocessor: any DataPreprocessor
  package let emptyResponseCodes: Set<Int>
  package let emptyRequestMethods: Set<HTTPMethod>
  package let options: JSONSerialization.ReadingOptions

  package init(
    dataPreprocessor: any DataPreprocessor = UntypedJSONSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = UntypedJSONSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = UntypedJSONSerializer.defaultEmptyRequestMethods,
    options: JSONSerialization.ReadingOptions = .allowFragments
  ) {
    self.dataPreprocessor = dataPreprocessor
    self.emptyResponseCodes = emptyResponseCodes
    self.emptyRequestMethods = emptyRequestMethods
    self.options = options
  }

  package func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> UntypedJSON {
    try serializeOnWire(request: request, response: response, data: data, error: error)
  }

  package func serialize(
    method: String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> UntypedJSON {
    try serialize(
      method: method, status: status, data: data, emptyValue: { UntypedJSON(value: NSNull()) }
    ) { data in
      do {
        return UntypedJSON(value: try JSONSerialization.jsonObject(with: data, options: options))
      } catch {
        throw AFError.responseSerializationFailed(
          reason: .jsonSerializationFailed(error: (error as NSError).showing(data)))
      }
    }
  }
}

/// The result of `JSONSerialization`. Unchecked: the tree is not changed, and belongs to one handler.
package struct UntypedJSON: @unchecked Sendable {
  package let value: Any

  /// The value for the API that requires `Sendable`. `Sendable` has no witnesses, so both types have one layout.
  /// Without `as Any`, the call would be made with the type of the value inside.
  var sendable: any Any & Sendable { unsafeBitCast(value as Any, to: (any Sendable).self) }

  /// Returns the value as the type of a request, which is `Any`.
  func object<Object>() -> Object {
    guard let object = value as? Object else { preconditionFailure("the value of untyped JSON is Any") }
    return object
  }
}
