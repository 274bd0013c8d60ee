import Foundation
import FoundationNetworking
import HTTPWire

/// The servers of a download in segments.
struct SegmentedDownloadSource: Sendable {
  let convertible: any URLRequestConvertible
  let mirrors: [any URLConvertible]
  let interceptor: (any RequestInterceptor)?
}

/// The file of a download in segments.
struct SegmentedDownloadTarget: Sendable {
  let destination: URL
  let options: DownloadRequest.Options
  let checksum: FileChecksum?

  var partialFileURL: URL { URL(fileURLWithPath: SegmentFiles.paths(for: destination.path).partial) }
  var recordPath: String { SegmentFiles.paths(for: destination.path).record }
}

/// Makes the request of a segment, anew for each attempt, so that a retry asks only for the bytes that are missing.
struct SegmentConvertible: URLRequestConvertible {
  let core: SegmentedDownloadCore
  let request: SegmentedTransfer.SegmentRequest

  func asURLRequest() throws -> URLRequest {
    var made = try core.source.request(of: request.source)
    let question = core.question(of: request.id)
    if let range = question.range {
      // The attempt that failed has brought all bytes.
      guard !range.isEmpty else { throw CancellationError() }
      made.headers.update(name: "Range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
      if let condition = question.condition { made.headers.update(name: "If-Range", value: condition) }
    }
    // Ranges of an encoded representation count other bytes than those of the file.
    if made.headers["Accept-Encoding"] == nil {
      made.headers.update(name: "Accept-Encoding", value: "identity")
    }
    return made
  }
}

extension SegmentedDownloadSource {
  /// Returns the request of a source, without the fields of a segment.
  func request(of index: Int) throws -> URLRequest {
    let first = try convertible.asURLRequest()
    guard first.httpMethod ?? "GET" == "GET", first.httpBody == nil, first.httpBodyStream == nil,
      first.headers["Range"] == nil
    else {
      throw AFError.sessionTaskFailed(error: SegmentedDownload.Failure.unsuitableRequest)
    }
    guard index > 0 else { return first }
    let url = try mirrors[index - 1].asURL()
    var request = URLRequest(url: url, cachePolicy: first.cachePolicy, timeoutInterval: first.timeoutInterval)
    // The fields may have credentials of the first server.
    if Self.origin(of: first.url) == Self.origin(of: url) { request.headers = first.headers }
    return request
  }

  /// Whether a source has the origin of the first one, and so may get its credentials.
  func hasFirstOrigin(_ index: Int) -> Bool {
    guard index > 0 else { return true }
    guard let first = try? convertible.asURLRequest(), let url = try? mirrors[index - 1].asURL() else {
      return false
    }
    return Self.origin(of: first.url) == Self.origin(of: url)
  }

  private static func origin(of url: URL?) -> Origin? {
    url.flatMap { WireTarget($0.absoluteString) }?.origin
  }
}
