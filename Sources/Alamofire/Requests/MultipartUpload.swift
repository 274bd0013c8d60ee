import Foundation
import FoundationNetworking

/// The encoded form of an upload.
package enum MultipartUpload {
  /// A form that is encoded once for all attempts of an upload.
  package struct Encoded: Sendable {
    /// The encoded bytes.
    package enum Body: Sendable, Equatable {
      case data(Data)
      /// A temporary file that only this user can read. The caller removes it.
      case file(URL)
    }

    package let body: Body
    /// The value of the request's `Content-Type` field, which replaces an earlier one.
    package let contentType: String
  }
}

extension MultipartFormData {
  /// Encodes the form for an upload: in memory if ``MultipartFormData/contentLength`` is below the threshold,
  /// otherwise into a temporary file. It reads files and streams and may block, so it must not run on the engine's
  /// thread.
  ///
  /// Throws the errors of the encoders; then no file remains.
  package func makeUpload(
    threshold: UInt64 = MultipartFormData.encodingMemoryThreshold
  ) throws -> MultipartUpload.Encoded {
    guard contentLength >= threshold else {
      return MultipartUpload.Encoded(body: .data(try encode()), contentType: contentType)
    }
    // Not in a folder of its own: the first user of the machine to make it would own it, and lock out the others.
    let file = URL(
      fileURLWithPath: BodyFiles.temporaryPath(in: fileManager.temporaryDirectory, suffix: ".form"))
    try write(to: file, permissions: 0o600)
    return MultipartUpload.Encoded(body: .file(file), contentType: contentType)
  }
}

/// A form on its way into an upload, encoded anew for each attempt.
///
/// Unchecked: the form is handed over with the request, and only its attempts use it from then on.
struct MultipartUploadable: UploadableConvertible, @unchecked Sendable {
  let form: MultipartFormData
  let threshold: UInt64

  func createUploadable() throws -> UploadRequest.Uploadable {
    switch try form.makeUpload(threshold: threshold).body {
    case .data(let data): .data(data)
    case .file(let url): .file(url, shouldRemove: true)
    }
  }
}

/// A request with the content type of a form.
struct MultipartRequest: URLRequestConvertible {
  let base: any URLRequestConvertible
  let contentType: String

  func asURLRequest() throws -> URLRequest {
    var request = try base.asURLRequest()
    request.headers.update(.contentType(contentType))
    return request
  }
}
