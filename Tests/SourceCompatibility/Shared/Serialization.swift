import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Serializers, their options, and serializers of users.

private struct User: Codable, Sendable {
  var name: String
}

private func made() {
  _ = DataResponseSerializer()
  _ = DataResponseSerializer(
    dataPreprocessor: DataResponseSerializer.defaultDataPreprocessor, emptyResponseCodes: [204],
    emptyRequestMethods: [.head])
  _ = StringResponseSerializer(
    dataPreprocessor: .passthrough, encoding: .utf8, emptyResponseCodes: [], emptyRequestMethods: [])
  _ = DecodableResponseSerializer<User>()
  _ = DecodableResponseSerializer<User>(
    dataPreprocessor: .googleXSSI, decoder: JSONDecoder(), emptyResponseCodes: [],
    emptyRequestMethods: [])
  _ = URLResponseSerializer()
  let string = StringResponseSerializer(encoding: .ascii)
  print(string.encoding as Any, string.dataPreprocessor, string.emptyRequestMethods)
  print(string.emptyResponseCodes, DecodableResponseSerializer<User>().decoder)
}

@available(*, deprecated) private func untyped() throws {
  let serializer = JSONResponseSerializer(
    dataPreprocessor: .passthrough, emptyResponseCodes: [204], emptyRequestMethods: [.head],
    options: .allowFragments)
  let object: Any = try serializer.serialize(request: nil, response: nil, data: Data(), error: nil)
  print(object, serializer.options)
}

private func shorthands(_ request: DataRequest, _ download: DownloadRequest) {
  request.response(responseSerializer: .data) { _ in }
  request.response(responseSerializer: .data(emptyResponseCodes: [200])) { _ in }
  request.response(
    responseSerializer: .data(
      dataPreprocessor: .passthrough, emptyResponseCodes: [200], emptyRequestMethods: [.get])
  ) { _ in }
  request.response(responseSerializer: .string(encoding: .utf8)) { _ in }
  request.response(
    responseSerializer: .string(
      dataPreprocessor: .passthrough, encoding: .utf8, emptyResponseCodes: [], emptyRequestMethods: [])
  ) { _ in }
  request.response(
    responseSerializer: .decodable(
      of: User.self, dataPreprocessor: .passthrough, decoder: JSONDecoder(), emptyResponseCodes: [],
      emptyRequestMethods: [])
  ) { _ in }
  download.response(responseSerializer: .url) { _ in }
  download.response(responseSerializer: .data) { _ in }
  download.response(responseSerializer: .decodable(of: User.self)) { _ in }
}

/// A serializer of data only.
private struct CountSerializer: DataResponseSerializerProtocol {
  func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: Error?) throws -> Int {
    if let error = error { throw error }
    return data?.count ?? 0
  }
}

/// A serializer of downloads only.
private struct SizeSerializer: DownloadResponseSerializerProtocol {
  func serializeDownload(
    request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: Error?
  ) throws -> Int {
    if let error = error { throw error }
    guard let fileURL = fileURL else { throw AFError.responseSerializationFailed(reason: .inputFileNil) }
    return try Data(contentsOf: fileURL).count
  }
}

/// A serializer of both, with the default properties.
private final class XMLSerializer: ResponseSerializer {
  func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: Error?
  ) throws -> [String] {
    guard error == nil else { throw error! }
    guard let data = data, !data.isEmpty else {
      guard emptyResponseAllowed(forRequest: request, response: response) else {
        throw AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength)
      }
      return []
    }
    print(requestAllowsEmptyResponseData(request) as Any, responseAllowsEmptyResponseData(response) as Any)
    return [String(decoding: try dataPreprocessor.preprocess(data), as: UTF8.self)]
  }
}

/// A serializer of both, with its own properties.
private struct Strict: ResponseSerializer {
  typealias SerializedObject = String
  let dataPreprocessor: DataPreprocessor = Trim()
  let emptyRequestMethods: Set<HTTPMethod> = Self.defaultEmptyRequestMethods
  let emptyResponseCodes: Set<Int> = Self.defaultEmptyResponseCodes.union([202])

  func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: Error?
  ) throws -> String {
    try StringResponseSerializer().serialize(request: request, response: response, data: data, error: error)
  }
}

private struct Trim: DataPreprocessor {
  func preprocess(_ data: Data) throws -> Data { data.dropFirst() }
}

private struct Nothing: EmptyResponse, Decodable {
  static func emptyValue() -> Nothing { Nothing() }
}

private struct LineDecoder: DataDecoder {
  func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
    try JSONDecoder().decode(type, from: data)
  }
}

extension DataRequest {
  /// Adds a handler of a user.
  @discardableResult
  fileprivate func responseXML(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (AFDataResponse<[String]>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: XMLSerializer(), completionHandler: completionHandler)
  }
}

private func own(_ request: DataRequest, _ download: DownloadRequest) {
  request.responseXML { print($0.value as Any) }
  request.response(responseSerializer: CountSerializer()) { print($0.value as Any) }
  request.response(responseSerializer: Strict()) { print($0.value as Any) }
  request.responseDecodable(of: Nothing.self, decoder: LineDecoder()) { _ in }
  download.response(responseSerializer: SizeSerializer()) { print($0.value as Any) }
  download.response(queue: .global(), responseSerializer: XMLSerializer()) { print($0.value as Any) }
  print(Empty.value, Empty.emptyValue())
  let any: any ResponseSerializer<String> = Strict()
  let preprocessors: [DataPreprocessor] = [PassthroughPreprocessor(), GoogleXSSIPreprocessor()]
  print(any, preprocessors)
}
