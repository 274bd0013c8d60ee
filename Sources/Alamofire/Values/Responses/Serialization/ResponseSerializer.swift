public import Foundation
public import FoundationNetworking
public import HTTPWire

/// Makes a value of the body of a data or upload request.
///
/// Called off the engine's thread, once for each handler and attempt; an implementation may block.
@preconcurrency
public protocol DataResponseSerializerProtocol<SerializedObject>: Sendable {
  /// The type of the value.
  associatedtype SerializedObject: Sendable

  /// Makes the value.
  ///
  /// - Parameters:
  ///   - request:  The request that was sent, if one was created.
  ///   - response: The response of the server, if there was one.
  ///   - data:     The body; `nil` if there was none or it was empty.
  ///   - error:    The error of sending, receiving or validating.
  /// - Returns: The value.
  /// - Throws: Any error; if it is not an ``AFError``, it is wrapped in `.customSerializationFailed`.
  func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> SerializedObject
}

/// Makes a value of a downloaded file.
///
/// Called off the engine's thread, once for each handler and attempt; an implementation may block.
@preconcurrency
public protocol DownloadResponseSerializerProtocol<SerializedObject>: Sendable {
  /// The type of the value.
  associatedtype SerializedObject: Sendable

  /// Makes the value.
  ///
  /// - Parameters:
  ///   - request:  The request that was sent, if one was created.
  ///   - response: The response of the server, if there was one.
  ///   - fileURL:  The downloaded file, if there is one.
  ///   - error:    The error of sending, receiving, validating or moving the file.
  /// - Returns: The value.
  /// - Throws: Any error; if it is not an ``AFError``, it is wrapped in `.customSerializationFailed`.
  func serializeDownload(
    request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
  ) throws -> SerializedObject
}

extension DownloadResponseSerializerProtocol where Self: DataResponseSerializerProtocol {
  /// Reads the file and serializes its bytes.
  ///
  /// - Throws: `error` unchanged, if there is one; ``AFError/responseSerializationFailed(reason:)`` with
  ///   `.inputFileNil` or `.inputFileReadFailed`; the error of the serializer, wrapped in `.customSerializationFailed`
  ///   if it is not an ``AFError``.
  public func serializeDownload(
    request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
  ) throws -> SerializedObject {
    if let error { throw error }
    let data = try DownloadedFile.read(fileURL)
    do {
      return try serialize(request: request, response: response, data: data, error: nil)
    } catch {
      throw error.asAFError(
        or: .responseSerializationFailed(reason: .customSerializationFailed(error: error)))
    }
  }
}

/// A serializer for bodies and for files, with rules for empty ones.
///
/// A conforming type implements one method; all others have defaults:
///
/// ```swift
/// struct LineSerializer: ResponseSerializer {
///   func serialize(
///     request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
///   ) throws -> [Substring] {
///     let text = try StringResponseSerializer()
///       .serialize(request: request, response: response, data: data, error: error)
///     return text.split(separator: "\n")
///   }
/// }
/// ```
@preconcurrency
public protocol ResponseSerializer<SerializedObject>: DataResponseSerializerProtocol,
  DownloadResponseSerializerProtocol
{
  /// The transformation of the bytes before serialization. Default: none.
  var dataPreprocessor: any DataPreprocessor { get }
  /// The methods for which an empty body is allowed. Default: `HEAD`.
  var emptyRequestMethods: Set<HTTPMethod> { get }
  /// The status codes for which an empty body is allowed. Default: 204 and 205.
  var emptyResponseCodes: Set<Int> { get }
}

extension ResponseSerializer {
  /// The preprocessor that changes nothing.
  public static var defaultDataPreprocessor: any DataPreprocessor { PassthroughPreprocessor() }
  /// `HEAD`: its responses have no body (RFC 9110 §9.3.2).
  public static var defaultEmptyRequestMethods: Set<HTTPMethod> { EmptyResponseDefaults.methods }
  /// 204 and 205: these have no body (RFC 9110 §15.3.5, §15.3.6).
  public static var defaultEmptyResponseCodes: Set<Int> { EmptyResponseDefaults.codes }

  /// The preprocessor that changes nothing.
  public var dataPreprocessor: any DataPreprocessor { Self.defaultDataPreprocessor }
  /// `HEAD`.
  public var emptyRequestMethods: Set<HTTPMethod> { Self.defaultEmptyRequestMethods }
  /// 204 and 205.
  public var emptyResponseCodes: Set<Int> { Self.defaultEmptyResponseCodes }

  /// Whether the method of a request allows an empty body; `nil` without a request or a method.
  public func requestAllowsEmptyResponseData(_ request: URLRequest?) -> Bool? {
    request?.httpMethod.map { emptyRequestMethods.contains(HTTPMethod(rawValue: $0)) }
  }

  /// Whether the status code of a response allows an empty body; `nil` without a response.
  public func responseAllowsEmptyResponseData(_ response: HTTPURLResponse?) -> Bool? {
    response.map { emptyResponseCodes.contains($0.statusCode) }
  }

  /// Whether an empty body is allowed: when the method or the status code allows it.
  public func emptyResponseAllowed(forRequest request: URLRequest?, response: HTTPURLResponse?) -> Bool {
    requestAllowsEmptyResponseData(request) == true || responseAllowsEmptyResponseData(response) == true
  }
}

/// Created once; a computed default would create two sets for every request.
private enum EmptyResponseDefaults {
  static let methods: Set<HTTPMethod> = [.head]
  static let codes: Set<Int> = [204, 205]
}

/// The bytes of a finished download.
enum DownloadedFile {
  static func read(_ fileURL: URL?) throws -> Data {
    guard let fileURL else { throw AFError.responseSerializationFailed(reason: .inputFileNil) }
    do {
      return try Data(contentsOf: fileURL)
    } catch {
      throw AFError.responseSerializationFailed(reason: .inputFileReadFailed(at: fileURL))
    }
  }
}

/// A type that has a value for a response without a body.
///
/// ```swift
/// struct Basket: Decodable, EmptyResponse {
///   var items: [String]
///
///   static func emptyValue() -> Basket { Basket(items: []) }
/// }
/// ```
@preconcurrency
public protocol EmptyResponse: Sendable {
  /// Returns the value for a response without a body.
  static func emptyValue() -> Self
}

/// The type to ask for when a response has no body, or when the body does not matter.
///
/// It can be decoded from any JSON object too.
///
/// ```swift
/// _ = try await AF.request(url, method: .delete).serializingDecodable(Empty.self).value
/// ```
public struct Empty: Hashable, Codable, Sendable, EmptyResponse {
  /// The only value there is.
  public static let value = Empty()

  /// Returns ``value``.
  public static func emptyValue() -> Empty { value }
}

/// A built-in serializer, which needs no `HTTPURLResponse`, so that none is created.
///
/// The caller throws an earlier error instead of calling it.
package protocol WireSerializer<SerializedObject>: WireDownloadSerializer {
  /// Makes the value of a body.
  ///
  /// - Parameters:
  ///   - method:           The method of the request; called only if it is needed.
  ///   - status:           The status code of the response.
  ///   - textEncodingName: The `charset` of the response; called only if it is needed.
  ///   - data:             The body.
  func serialize(
    method: @autoclosure () -> String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws
    -> SerializedObject
}

/// A built-in serializer of downloads, which needs no `HTTPURLResponse`.
package protocol WireDownloadSerializer<SerializedObject>: Sendable {
  associatedtype SerializedObject: Sendable

  /// Makes the value of a file.
  func serializeFile(method: String?, status: Int?, textEncodingName: () -> String?, fileURL: URL?) throws
    -> SerializedObject
}

extension WireSerializer {
  package func serializeFile(
    method: String?, status: Int?, textEncodingName: () -> String?, fileURL: URL?
  ) throws -> SerializedObject {
    let data = try DownloadedFile.read(fileURL)
    do {
      return try serialize(method: method, status: status, textEncodingName: textEncodingName, data: data)
    } catch {
      throw error.asAFError(
        or: .responseSerializationFailed(reason: .customSerializationFailed(error: error)))
    }
  }
}

extension WireSerializer where Self: ResponseSerializer {
  /// Serializes a body in the steps of all built-in serializers: the rules for an empty body, the preprocessor, the
  /// conversion.
  func serialize(
    method: @autoclosure () -> String?, status: Int?, data: Data?, emptyValue: () throws -> SerializedObject,
    convert: (Data) throws -> SerializedObject
  ) throws -> SerializedObject {
    guard let data, !data.isEmpty else {
      guard allowsEmptyBody(method: method(), status: status) else {
        throw AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength)
      }
      return try emptyValue()
    }
    return try convert(dataPreprocessor.preprocess(data))
  }

  /// Implements the public method with the method of ``WireSerializer``.
  func serializeOnWire(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> SerializedObject {
    if let error { throw error }
    return try serialize(
      method: request?.httpMethod, status: response?.statusCode,
      textEncodingName: { response?.charset }, data: data)
  }

  private func allowsEmptyBody(method: String?, status: Int?) -> Bool {
    if let method, emptyRequestMethods.contains(HTTPMethod(rawValue: method)) { return true }
    guard let status else { return false }
    return emptyResponseCodes.contains(status)
  }
}

/// Changes the bytes of a body before a serializer reads them.
@preconcurrency
public protocol DataPreprocessor: Sendable {
  /// Returns the bytes to serialize.
  ///
  /// Called only for a body that is not empty, off the engine's thread.
  ///
  /// - Parameter data: The bytes as received.
  /// - Returns: The bytes to serialize.
  /// - Throws: Any error; if it is not an ``AFError``, it is wrapped in `.customSerializationFailed`.
  func preprocess(_ data: Data) throws -> Data
}

/// Changes nothing, and copies nothing.
///
/// ```swift
/// let serializer = DataResponseSerializer(dataPreprocessor: .passthrough)
/// ```
public struct PassthroughPreprocessor: DataPreprocessor {
  /// Makes the preprocessor.
  public init() {}

  /// Returns the bytes unchanged.
  public func preprocess(_ data: Data) throws -> Data { data }
}

/// Drops the six bytes `)]}',` and line feed with which some servers protect JSON from being run as a
/// script (cross-site script inclusion).
///
/// ```swift
/// let serializer = DecodableResponseSerializer<User>(dataPreprocessor: .googleXSSI)
/// ```
public struct GoogleXSSIPreprocessor: DataPreprocessor {
  private static let prefix = Array(")]}',\n".utf8)

  /// Makes the preprocessor.
  public init() {}

  /// Returns the bytes without the prefix; the same bytes when they do not start with it.
  public func preprocess(_ data: Data) throws -> Data {
    // Copied, because the indices of a slice do not begin at 0.
    data.starts(with: Self.prefix) ? Data(data.dropFirst(Self.prefix.count)) : data
  }
}

extension DataPreprocessor where Self == PassthroughPreprocessor {
  /// Changes nothing.
  public static var passthrough: PassthroughPreprocessor { PassthroughPreprocessor() }
}

extension DataPreprocessor where Self == GoogleXSSIPreprocessor {
  /// Drops the prefix `)]}',` and line feed.
  public static var googleXSSI: GoogleXSSIPreprocessor { GoogleXSSIPreprocessor() }
}

extension DataPreprocessor {
  /// Whether the body is used unchanged, so that the caller's code does not run.
  var isPassthrough: Bool { self is PassthroughPreprocessor }
}
