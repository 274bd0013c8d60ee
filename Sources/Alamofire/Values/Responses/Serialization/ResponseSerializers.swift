public import Foundation
public import FoundationNetworking
public import HTTPWire

/// A serializer that returns the body unchanged, after the preprocessor.
///
/// An empty body is an error unless the method or the status code allows it; then it is empty `Data`.
///
/// ```swift
/// AF.request(url).response(responseSerializer: .data(emptyResponseCodes: [200, 204])) { response in
///   print(response.result)
/// }
/// ```
public final class DataResponseSerializer: ResponseSerializer {
  /// The unchanged body.
  public typealias SerializedObject = Data

  /// The transformation of the bytes before serialization.
  public let dataPreprocessor: any DataPreprocessor
  /// The status codes for which an empty body is allowed.
  public let emptyResponseCodes: Set<Int>
  /// The methods for which an empty body is allowed.
  public let emptyRequestMethods: Set<HTTPMethod>

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - dataPreprocessor:    The transformation of the bytes. Default: none.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public init(
    dataPreprocessor: any DataPreprocessor = DataResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = DataResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DataResponseSerializer.defaultEmptyRequestMethods
  ) {
    self.dataPreprocessor = dataPreprocessor
    self.emptyResponseCodes = emptyResponseCodes
    self.emptyRequestMethods = emptyRequestMethods
  }

  /// Returns the body, or empty `Data` if that is allowed.
  ///
  /// - Throws: `error` unchanged, if there is one; `.inputDataNilOrZeroLength` for an empty body that is not allowed;
  ///   the error of the preprocessor.
  public func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> Data {
    try serializeOnWire(request: request, response: response, data: data, error: error)
  }
}

extension DataResponseSerializer: WireSerializer {
  package func serialize(
    method: @autoclosure () -> String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> Data {
    try serialize(method: method(), status: status, data: data, emptyValue: { Data() }, convert: { $0 })
  }
}

extension ResponseSerializer where Self == DataResponseSerializer {
  /// A serializer for the bare body, with the default rules.
  public static var data: DataResponseSerializer { DataResponseSerializer() }

  /// Makes a serializer for the bare body.
  ///
  /// - Parameters:
  ///   - dataPreprocessor:    The transformation of the bytes. Default: none.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public static func data(
    dataPreprocessor: any DataPreprocessor = DataResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = DataResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DataResponseSerializer.defaultEmptyRequestMethods
  ) -> DataResponseSerializer {
    DataResponseSerializer(
      dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
  }
}

/// Returns the URL of a downloaded file, without reading it.
///
/// ```swift
/// let place = try URLResponseSerializer()
///   .serializeDownload(request: nil, response: nil, fileURL: file, error: nil)
/// ```
public struct URLResponseSerializer: DownloadResponseSerializerProtocol {
  /// Makes the serializer.
  public init() {}

  /// Returns the URL of the file.
  ///
  /// - Throws: `error`, unchanged, when there is one; `.inputFileNil` without a file.
  public func serializeDownload(
    request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
  ) throws -> URL {
    if let error { throw error }
    return try serializeFile(method: nil, status: nil, textEncodingName: { nil }, fileURL: fileURL)
  }
}

extension URLResponseSerializer: WireDownloadSerializer {
  package func serializeFile(
    method: String?, status: Int?, textEncodingName: () -> String?, fileURL: URL?
  ) throws -> URL {
    guard let fileURL else { throw AFError.responseSerializationFailed(reason: .inputFileNil) }
    return fileURL
  }
}

extension DownloadResponseSerializerProtocol where Self == URLResponseSerializer {
  /// A serializer for the location of the file.
  public static var url: URLResponseSerializer { URLResponseSerializer() }
}

/// Decodes the body as text.
///
/// The encoding is the serializer's, else the `charset` of the response, else ISO Latin 1. Supported charsets are
/// UTF-8, ISO-8859-1, and the forms of UTF-16 and UTF-32; other names are ignored.
///
/// JSON (`application/json` and `application/…+json`) without a `charset` is UTF-8 (RFC 8259 §8.1), unlike in Alamofire
/// for Apple's systems. If its bytes are not valid UTF-8, it is read as ISO Latin 1.
///
/// ```swift
/// let text = try await AF.request(url).serializingString(encoding: .utf8).value
/// ```
public final class StringResponseSerializer: ResponseSerializer {
  /// The body as text.
  public typealias SerializedObject = String

  /// The transformation of the bytes before they are read.
  public let dataPreprocessor: any DataPreprocessor
  /// The encoding that is used for every response; `nil` for the one that the response names.
  public let encoding: String.Encoding?
  /// The status codes for which an empty body is allowed.
  public let emptyResponseCodes: Set<Int>
  /// The methods for which an empty body is allowed.
  public let emptyRequestMethods: Set<HTTPMethod>

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - dataPreprocessor:    The transformation of the bytes before they are read. Default: none.
  ///   - encoding:            The encoding; `nil`, the default, follows the response.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public init(
    dataPreprocessor: any DataPreprocessor = StringResponseSerializer.defaultDataPreprocessor,
    encoding: String.Encoding? = nil,
    emptyResponseCodes: Set<Int> = StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = StringResponseSerializer.defaultEmptyRequestMethods
  ) {
    self.dataPreprocessor = dataPreprocessor
    self.encoding = encoding
    self.emptyResponseCodes = emptyResponseCodes
    self.emptyRequestMethods = emptyRequestMethods
  }

  /// Returns the text, or an empty one if that is allowed.
  ///
  /// - Throws: `error` unchanged, if there is one; `.inputDataNilOrZeroLength` for an empty body that is not allowed;
  ///   the error of the preprocessor; `.stringSerializationFailed` with the encoding.
  public func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> String {
    try serializeOnWire(request: request, response: response, data: data, error: error)
  }
}

extension StringResponseSerializer: WireSerializer {
  package func serialize(
    method: @autoclosure () -> String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> String {
    try serialize(method: method(), status: status, data: data, emptyValue: { "" }) { data in
      let name = encoding == nil ? textEncodingName() : nil
      if name == Charset.impliedByJSON, let text = String(data: data, encoding: .utf8) { return text }
      let encoding = encoding ?? name.flatMap { Charset(name: $0) }?.encoding ?? .isoLatin1
      guard let text = String(data: data, encoding: encoding) else {
        throw AFError.responseSerializationFailed(reason: .stringSerializationFailed(encoding: encoding))
      }
      return text
    }
  }
}

extension HTTPURLResponse {
  /// The character set that the response names, or that its media type implies.
  var charset: String? {
    if let name = textEncodingName { return name }
    let isJSON = value(forHTTPHeaderField: "Content-Type").map { MediaType.isJSON(contentType: $0) } ?? false
    return isJSON ? Charset.impliedByJSON : nil
  }
}

extension Charset {
  /// The name that stands for the character set of JSON without a `charset`. No response can name it.
  static let impliedByJSON = "utf-8 of JSON"

  /// Foundation's value for the encoding.
  package var encoding: String.Encoding {
    switch self {
    case .utf8: .utf8
    case .isoLatin1: .isoLatin1
    case .utf16: .utf16
    case .utf16BigEndian: .utf16BigEndian
    case .utf16LittleEndian: .utf16LittleEndian
    case .utf32: .utf32
    case .utf32BigEndian: .utf32BigEndian
    case .utf32LittleEndian: .utf32LittleEndian
    }
  }
}

extension ResponseSerializer where Self == StringResponseSerializer {
  /// A serializer for text, with the default rules.
  public static var string: StringResponseSerializer { StringResponseSerializer() }

  /// Makes a serializer for text.
  ///
  /// - Parameters:
  ///   - dataPreprocessor:    The transformation of the bytes before they are read. Default: none.
  ///   - encoding:            The encoding; `nil`, the default, follows the response.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public static func string(
    dataPreprocessor: any DataPreprocessor = StringResponseSerializer.defaultDataPreprocessor,
    encoding: String.Encoding? = nil,
    emptyResponseCodes: Set<Int> = StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = StringResponseSerializer.defaultEmptyRequestMethods
  ) -> StringResponseSerializer {
    StringResponseSerializer(
      dataPreprocessor: dataPreprocessor, encoding: encoding, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
  }
}

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
    method: @autoclosure () -> String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> UntypedJSON {
    try serialize(
      method: method(), status: status, data: data, emptyValue: { UntypedJSON(value: NSNull()) }
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
