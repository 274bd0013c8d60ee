import Alamofire
public import Foundation
public import FoundationNetworking

/// Turns the response of a data request into a value.
public protocol DataResponseSerializerProtocol<SerializedObject> {
  /// The type of its values.
  associatedtype SerializedObject

  /// Makes the value. Called away from the main queue, once for each handler, also when the request failed; the
  /// error is then the last argument.
  var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject> {
    get
  }
}

/// A ``DataResponseSerializerProtocol`` created from a closure.
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
  /// The type of its values.
  public typealias SerializedObject = Value

  /// Makes the value.
  public var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value>

  /// Makes a serializer of a closure.
  public init(
    serializeResponse: @escaping (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value>
  ) {
    self.serializeResponse = serializeResponse
  }
}

/// Turns the file of a download into a value.
public protocol DownloadResponseSerializerProtocol<SerializedObject> {
  /// The type of its values.
  associatedtype SerializedObject

  /// Makes the value. Called away from the main queue, once for each handler, also when the request failed; the
  /// error is then the last argument.
  var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject> {
    get
  }
}

/// A ``DownloadResponseSerializerProtocol`` created from a closure.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
  /// The type of its values.
  public typealias SerializedObject = Value

  /// Makes the value.
  public var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value>

  /// Makes a serializer of a closure.
  public init(
    serializeResponse: @escaping (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value>
  ) {
    self.serializeResponse = serializeResponse
  }
}

/// The built-in serializers. An error from before is passed on; 204 and 205 give the empty value,
/// whatever the body.
enum Serialization {
  /// Returns the body unchanged. An empty body is accepted.
  static func data(response: HTTPURLResponse?, data: Data?, error: (any Error)?) -> Result<Data> {
    if let error { return .failure(error) }
    if response.hasNoContent { return .success(Data()) }
    guard let data else { return .failure(.inputDataNil) }
    return .success(data)
  }

  /// Returns the body as text. The encoding is `encoding`, otherwise the response's, otherwise UTF-8 for JSON and ISO
  /// Latin 1 for other types. An empty body is accepted.
  static func string(
    encoding: String.Encoding?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<String> {
    if let error { return .failure(error) }
    if response.hasNoContent { return .success("") }
    guard let data else { return .failure(.inputDataNil) }
    guard !data.isEmpty else { return .success("") }
    let serializer = Alamofire::StringResponseSerializer(encoding: encoding)
    return attempt { try serializer.serialize(request: nil, response: response, data: data, error: nil) }
  }

  /// Parses the body as JSON.
  static func json(
    options: JSONSerialization.ReadingOptions, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<Any> {
    if let error { return .failure(error) }
    if response.hasNoContent { return .success(NSNull()) }
    guard let data, !data.isEmpty else { return .failure(.inputDataNilOrZeroLength) }
    return attempt(else: { .jsonSerializationFailed(error: $0) }) {
      try JSONSerialization.jsonObject(with: data, options: options)
    }
  }

  /// Parses the body as a property list.
  static func propertyList(
    options: PropertyListSerialization.ReadOptions, response: HTTPURLResponse?, data: Data?,
    error: (any Error)?
  ) -> Result<Any> {
    if let error { return .failure(error) }
    if response.hasNoContent { return .success(NSNull()) }
    guard let data, !data.isEmpty else { return .failure(.inputDataNilOrZeroLength) }
    return attempt(else: { .propertyListSerializationFailed(error: $0) }) {
      try PropertyListSerialization.untrusted(data, options: options)
    }
  }

  /// Reads the bytes of a downloaded file, for the functions above.
  static func contents(of file: URL?, error: (any Error)?) -> Result<Data> {
    if let error { return .failure(error) }
    guard let file else { return .failure(.inputFileNil) }
    return attempt(else: { _ in .inputFileReadFailed(at: file) }) { try Data(contentsOf: file) }
  }

  private static func attempt<Value>(
    else reason: ((any Error) -> AFError.ResponseSerializationFailureReason)? = nil,
    _ value: () throws -> Value
  ) -> Result<Value> {
    do {
      return .success(try value())
    } catch {
      return .failure(reason.map { AFError.responseSerializationFailed(reason: $0(error)) } ?? legacy(error))
    }
  }
}

extension Result {
  fileprivate static func failure(_ reason: AFError.ResponseSerializationFailureReason) -> Result {
    .failure(AFError.responseSerializationFailed(reason: reason))
  }
}

extension HTTPURLResponse? {
  fileprivate var hasNoContent: Bool { self?.statusCode == 204 || self?.statusCode == 205 }
}

// The functions of the built-in serializers, for custom ones.
extension Request {
  /// Returns the body unchanged; see ``DataRequest/dataResponseSerializer()``.
  public static func serializeResponseData(
    response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<Data> {
    Serialization.data(response: response, data: data, error: error)
  }

  /// Returns the body as text; see ``DataRequest/stringResponseSerializer(encoding:)``.
  public static func serializeResponseString(
    encoding: String.Encoding?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<String> {
    Serialization.string(encoding: encoding, response: response, data: data, error: error)
  }

  /// Parses the body as JSON; see ``DataRequest/jsonResponseSerializer(options:)``.
  public static func serializeResponseJSON(
    options: JSONSerialization.ReadingOptions, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) -> Result<Any> {
    Serialization.json(options: options, response: response, data: data, error: error)
  }

  /// Parses the body as a property list; see ``DataRequest/propertyListResponseSerializer(options:)``.
  public static func serializeResponsePropertyList(
    options: PropertyListSerialization.ReadOptions, response: HTTPURLResponse?, data: Data?,
    error: (any Error)?
  ) -> Result<Any> {
    Serialization.propertyList(options: options, response: response, data: data, error: error)
  }
}
