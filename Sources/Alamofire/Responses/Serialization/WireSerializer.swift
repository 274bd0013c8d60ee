import FoundationNetworking
import HTTPWire

/// A built-in serializer, which needs no `HTTPURLResponse`, so that none is made.
///
/// The caller throws an earlier error instead of calling it.
package protocol WireSerializer<SerializedObject>: WireDownloadSerializer {
  /// Makes the value of a body.
  ///
  /// - Parameters:
  ///   - method:           The method of the request.
  ///   - status:           The status code of the response.
  ///   - textEncodingName: The `charset` of the response; called only if it is needed.
  ///   - data:             The body.
  func serialize(method: String?, status: Int?, textEncodingName: () -> String?, data: Data?) throws
    -> SerializedObject
}

/// A built-in serializer of downloads, which needs no `HTTPURLResponse`.
package protocol WireDownloadSerializer<SerializedObject>: Sendable {
  associatedtype SerializedObject

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
  /// The way that all built-in serializers go: the rules for an empty body, the preprocessor, the
  /// conversion.
  func serialize(
    method: String?, status: Int?, data: Data?, emptyValue: () throws -> SerializedObject,
    convert: (Data) throws -> SerializedObject
  ) throws -> SerializedObject {
    guard let data, !data.isEmpty else {
      guard allowsEmptyBody(method: method, status: status) else {
        throw AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength)
      }
      return try emptyValue()
    }
    return try convert(dataPreprocessor.preprocess(data))
  }

  /// The public form, by way of the one above.
  func serializeOnWire(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> SerializedObject {
    if let error { throw error }
    return try serialize(
      method: request?.httpMethod, status: response?.statusCode,
      textEncodingName: { response?.textEncodingName }, data: data)
  }

  private func allowsEmptyBody(method: String?, status: Int?) -> Bool {
    if let method, emptyRequestMethods.contains(HTTPMethod(rawValue: method)) { return true }
    guard let status else { return false }
    return emptyResponseCodes.contains(status)
  }
}
