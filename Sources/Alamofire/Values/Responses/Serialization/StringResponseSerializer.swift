public import Foundation
public import FoundationNetworking
public import HTTPWire

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
    method: String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> String {
    try serialize(method: method, status: status, data: data, emptyValue: { "" }) { data in
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
