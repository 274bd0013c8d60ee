public import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// A request that sends a body from memory, from a file or from a stream; its response is handled like a
/// ``DataRequest``'s.
///
/// The body never becomes part of the `URLRequest`. A file is read while it is sent and never held in memory. A stream
/// is read on a separate thread, at most a megabyte ahead of the network, and may block.
///
/// ```swift
/// AF.upload(fileURL, to: "https://httpbin.org/put", method: .put)
///   .uploadProgress { print($0.fractionCompleted) }
///   .validate()
///   .responseData { print($0.result) }
/// ```
public final class UploadRequest: DataRequest, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// The source of a body.
  ///
  /// Unchecked, because an `InputStream` is not `Sendable`: do not use the stream elsewhere.
  public enum Uploadable: @unchecked Sendable {
    /// Bytes in memory.
    case data(Data)
    /// A file, and whether it is removed when the request has ended.
    case file(URL, shouldRemove: Bool)
    /// A stream, which can be read once. A retry, a redirect that keeps the body or a challenge ends the request with
    /// an error. The exceptions: the ``UploadableConvertible`` makes another stream for the retry, the session's
    /// delegate returns another one (`needNewBodyStream`), or none of it was sent.
    case stream(InputStream)
  }

  /// The value that makes the body, again for each attempt.
  public let upload: any UploadableConvertible

  /// The file manager that removes files after the request.
  public var fileManager: FileManager { body.fileManager }

  /// The body of the last attempt; `nil` before it was created.
  public var uploadable: Uploadable? { body.content.map { Uploadable($0) } }

  let body: UploadBody

  init(_ parts: RequestParts, _ upload: any UploadableConvertible, _ body: UploadBody) {
    self.upload = upload
    self.body = body
    super.init(parts)
  }

  override var lastInterceptors: [any RequestInterceptor] {
    body.resumer.map { [UploadRetrier(upload: $0)] } ?? []
  }

  /// Sends trailer fields after the body (RFC 9110 §6.5), such as a digest that is computed while the body is sent.
  ///
  /// ```swift
  /// let sum = RunningDigest()
  /// let body = chunks.map { chunk in
  ///   sum.add(chunk)
  ///   return chunk
  /// }
  /// AF.upload(body, to: "https://example.com/files")
  ///   .trailers(announcing: ["Content-Digest"]) { ["Content-Digest": sum.contentDigest] }
  ///   .response { print($0.result) }
  /// ```
  ///
  /// - `fields` is called when the last byte of the body was read, once for each time that the body is sent to its
  ///   end: a retry, a redirect with status 307 or 308, and an answered challenge send it again. It may block. If the
  ///   body fails, or the server does not want the rest of it, it is not called.
  /// - Over HTTP/1.1 the body is sent in chunks (RFC 9112 §7.1.2), without `Content-Length` even if its length is
  ///   known. A server of HTTP/1.0 understands neither.
  /// - Fields that a server needs before the body, or that must not come after it (RFC 9110 §6.5.1), end the request
  ///   with an error. These are the fields for framing, routing, authentication, cookies, conditions and content. An
  ///   invalid name or value has the same effect. By then the whole body has been sent; an announced name is checked
  ///   before anything is sent.
  /// - After a redirect to another origin, the fields in `TransportOptions.protectedHeaders` are not sent. If a
  ///   redirect handler gives the request another body, no trailers are sent.
  /// - A server may ignore trailers. Resumable uploads, background sessions and `URLProtocol` classes send none.
  ///
  /// Call it before the request starts; a later call applies to the next attempt, and the last call counts.
  ///
  /// - Parameters:
  ///   - names:  The names that the field `Trailer` of the header announces (RFC 9110 §6.6.2). Default: none; then the
  ///             field is not sent. `fields` may return others. A field `Trailer` of the request takes precedence.
  ///   - fields: Returns the fields; an empty list sends none. Never called on the engine's thread.
  @preconcurrency
  @discardableResult
  public func trailers(announcing names: [String] = [], _ fields: @escaping @Sendable () -> HTTPHeaders)
    -> Self
  {
    let trailers = RequestTrailers(names: names) { completion in
      Task.detached { completion(Array(fields())) }
    }
    body.trailers = trailers
    return self
  }
}

/// A value that makes the body of an ``UploadRequest``.
///
/// ```swift
/// struct Snapshot: UploadableConvertible {
///   var measurements: [Double]
///   func createUploadable() throws -> UploadRequest.Uploadable {
///     .data(try JSONEncoder().encode(measurements))
///   }
/// }
/// ```
@preconcurrency
public protocol UploadableConvertible: Sendable {
  /// Makes the body. Called off the engine's thread, once for each attempt.
  ///
  /// - Throws: Any error; if it is not an ``AFError``, it is wrapped in `.createUploadableFailed`. Retriers are called
  ///   for it.
  func createUploadable() throws -> UploadRequest.Uploadable
}

/// A body together with the request that sends it.
@preconcurrency
public protocol UploadConvertible: UploadableConvertible & URLRequestConvertible {}

extension UploadRequest.Uploadable: UploadableConvertible {
  /// Returns itself.
  public func createUploadable() throws -> UploadRequest.Uploadable { self }
}

extension UploadRequest.Uploadable {
  init(_ content: UploadContent) {
    switch content {
    case .data(let data): self = .data(data)
    case .file(let url, let shouldRemove): self = .file(url, shouldRemove: shouldRemove)
    case .stream(let stream): self = .stream(stream)
    }
  }

  var content: UploadContent {
    switch self {
    case .data(let data): .data(data)
    case .file(let url, let shouldRemove): .file(url, shouldRemove: shouldRemove)
    case .stream(let stream): .stream(stream)
    }
  }
}

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
    // Not in a separate folder: the first user of the machine to create it would own it, and lock out the others.
    let file = URL(
      fileURLWithPath: TemporaryFiles.path(in: fileManager.temporaryDirectory.path, suffix: ".form"))
    try write(to: file, permissions: 0o600)
    return MultipartUpload.Encoded(body: .file(file), contentType: contentType)
  }
}

/// A form as the body of an upload, encoded again for each attempt. The file of a form with streams is kept for further
/// attempts, because they can be read once.
///
/// Unchecked: the form is handed over with the request, and only its attempts use it from then on.
struct MultipartUploadable: UploadableConvertible, @unchecked Sendable {
  let form: MultipartFormData
  let threshold: UInt64

  /// Whether a stream of the form was read, and its bytes are only in the file.
  var isSpent: Bool { form.isSpent }

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
    guard request.isChangeable else { return request }
    request.headers.update(.contentType(contentType))
    return request
  }
}
