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
    method: String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> Data {
    try serialize(method: method, status: status, data: data, emptyValue: { Data() }, convert: { $0 })
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
