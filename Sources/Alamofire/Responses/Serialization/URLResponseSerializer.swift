public import Foundation
public import FoundationNetworking

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
  /// A serializer for the place of the file.
  public static var url: URLResponseSerializer { URLResponseSerializer() }
}
