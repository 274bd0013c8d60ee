import Foundation
import FoundationNetworking

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
