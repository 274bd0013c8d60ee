import Foundation
import FoundationNetworking
import HTTPWire

extension Session {
  /// Makes a download in segments from a URL. See ``SegmentedDownload``.
  ///
  /// ```swift
  /// let download = AF.segmentedDownload(
  ///   "https://example.com/image.iso", mirrors: ["https://mirror.example.com/image.iso"],
  ///   checksum: .sha256("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), to: destination)
  /// ```
  ///
  /// - Parameters:
  ///   - convertible: The URL of the file.
  ///   - headers: Header fields of the requests. Mirrors of another origin do not get them.
  ///   - segments: The number of requests at a time. `httpMaximumConnectionsPerHost` limits the connections of a host.
  ///   - minimumSegmentSize: The smallest number of bytes for which a further request is made.
  ///   - mirrors: Other URLs of the same file.
  ///   - checksum: The expected hash of the file. Default: that of the response, if it has one.
  ///   - interceptor: Adapts the request of each segment, after the session's. Default: none.
  ///   - destination: The file URL of the complete file.
  ///   - options: The steps before the file is moved to the destination.
  public func segmentedDownload(
    _ convertible: any URLConvertible, headers: HTTPHeaders? = nil, segments: Int = 4,
    minimumSegmentSize: Int = 1 << 20, mirrors: [any URLConvertible] = [], checksum: FileChecksum? = nil,
    interceptor: (any RequestInterceptor)? = nil, to destination: URL, options: DownloadRequest.Options = []
  ) -> SegmentedDownload {
    segmentedDownload(
      RequestDescription(url: convertible, method: .get, headers: headers, modifier: nil), segments: segments,
      minimumSegmentSize: minimumSegmentSize, mirrors: mirrors, checksum: checksum, interceptor: interceptor,
      to: destination, options: options)
  }

  /// Makes a download in segments of a `URLRequest` or a value that becomes one. See ``SegmentedDownload``.
  ///
  /// - Parameters:
  ///   - convertible: Makes the `URLRequest`, again for each segment. It has to be a `GET` without a body.
  ///   - segments: The number of requests at a time. `httpMaximumConnectionsPerHost` limits the connections of a host.
  ///   - minimumSegmentSize: The smallest number of bytes for which a further request is made.
  ///   - mirrors: Other URLs of the same file.
  ///   - checksum: The expected hash of the file. Default: that of the response, if it has one.
  ///   - interceptor: Adapts the request of each segment, after the session's. Default: none.
  ///   - destination: The file URL of the complete file.
  ///   - options: The steps before the file is moved to the destination.
  public func segmentedDownload(
    _ convertible: any URLRequestConvertible, segments: Int = 4, minimumSegmentSize: Int = 1 << 20,
    mirrors: [any URLConvertible] = [], checksum: FileChecksum? = nil,
    interceptor: (any RequestInterceptor)? = nil, to destination: URL, options: DownloadRequest.Options = []
  ) -> SegmentedDownload {
    let transfer = SegmentedTransfer(
      sources: 1 + mirrors.count, connections: segments, minimum: minimumSegmentSize,
      hasChecksum: checksum != nil, lengthLimit: core.settings.profile.options.bodySizeLimit)
    return SegmentedDownload(
      SegmentedDownloadCore(
        session: core,
        source: SegmentedDownloadSource(convertible: convertible, mirrors: mirrors, interceptor: interceptor),
        target: SegmentedDownloadTarget(destination: destination, options: options, checksum: checksum),
        transfer: transfer))
  }
}
