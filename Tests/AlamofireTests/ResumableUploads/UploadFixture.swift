import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// A server with one endpoint for resumable uploads, and short delays.
struct UploadFixture {
  let uploads: UploadEndpoint
  let server: HTTPTestServer
  let session: Session

  init(
    _ dialect: UploadEndpoint.Dialect, _ options: UploadEndpoint.Options = .init(),
    session: Session = .real(),
    security: HTTPTestServer.Security = .none
  ) throws {
    uploads = UploadEndpoint(dialect, options)
    server = try HTTPTestServer(security, routes: Routes.none.adding(uploads, at: "/files"))
    self.session = session
  }

  var url: String { server.url("/files") }

  static func content(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  }

  static func options(_ scheme: ResumableUpload.Scheme = .automatic) -> ResumableUpload {
    var options = ResumableUpload(scheme)
    options.initialDelay = 0.001
    options.maximumDelay = 0.01
    return options
  }

  func options(_ change: (inout ResumableUpload) -> Void = { _ in }) -> ResumableUpload {
    var options = Self.options(uploads.scheme)
    change(&options)
    return options
  }

  /// Uploads bytes and returns the response.
  func upload(
    _ bytes: [UInt8], _ change: (inout ResumableUpload) -> Void = { _ in }
  ) async -> AFDataResponse<Data?> {
    await session.upload(Data(bytes), to: url).resumable(options(change)).response()
  }

  /// The requests so far, such as `PATCH 5`: method and `Upload-Offset`.
  var requests: [String] {
    server.recordedRequests.map { request in
      ([request.method] + (request.header("Upload-Offset").map { [$0] } ?? [])).joined(separator: " ")
    }
  }
}

extension UploadEndpoint {
  var scheme: ResumableUpload.Scheme { dialect == .tus ? .tus : .draft }
}

extension AFError {
  var uploadError: ResumableUploadError? { underlyingError as? ResumableUploadError }
}

extension UploadRequest {
  /// Returns the response of the request without validation.
  func response() async -> AFDataResponse<Data?> {
    await withCheckedContinuation { continuation in response { continuation.resume(returning: $0) } }
  }
}
