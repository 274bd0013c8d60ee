import Alamofire
public import Foundation
import FoundationNetworking

/// A form whose fields and files are sent as `multipart/form-data` (RFC 7578).
///
/// Parts are sent in the order in which they were appended. If a part is invalid, the encoding throws the first such
/// failure. A form is used by one thread at a time.
public final class MultipartFormData {
  private let form = Alamofire::MultipartFormData()

  /// Makes an empty form with a random boundary.
  public init() {}

  /// The value of the `Content-Type` field that goes with the form.
  public var contentType: String { form.contentType }

  /// The number of bytes in all parts, without heads and boundaries.
  public var contentLength: UInt64 { form.contentLength }

  /// The separator of the parts.
  public var boundary: String { form.boundary }

  /// Appends a field of bytes.
  public func appendBodyPart(data: Data, name: String) {
    form.append(data, withName: name)
  }

  /// Appends a field of bytes of a type.
  public func appendBodyPart(data: Data, name: String, mimeType: String) {
    form.append(data, withName: name, mimeType: mimeType)
  }

  /// Appends bytes as a file.
  public func appendBodyPart(data: Data, name: String, fileName: String, mimeType: String) {
    form.append(data, withName: name, fileName: fileName, mimeType: mimeType)
  }

  /// Appends a file; its name is the last component of the URL, its type follows from the extension.
  public func appendBodyPart(fileURL: URL, name: String) {
    form.append(fileURL, withName: name)
  }

  /// Appends a file under a name and with a type of your choice.
  public func appendBodyPart(fileURL: URL, name: String, fileName: String, mimeType: String) {
    form.append(fileURL, withName: name, fileName: fileName, mimeType: mimeType)
  }

  /// Appends exactly `length` bytes of a stream, as a file.
  public func appendBodyPart(
    stream: InputStream, length: UInt64, name: String, fileName: String, mimeType: String
  ) {
    form.append(stream, withLength: length, name: name, fileName: fileName, mimeType: mimeType)
  }

  /// Appends exactly `length` bytes of a stream, with your own header fields, sorted by name.
  public func appendBodyPart(stream: InputStream, length: UInt64, headers: [String: String]) {
    let fields = headers.sorted { $0.key < $1.key }.map { HTTPHeader(name: $0.key, value: $0.value) }
    form.append(stream, withLength: length, headers: HTTPHeaders(fields))
  }

  /// Returns the encoded form.
  ///
  /// - Throws: An `NSError`: of `NSURLErrorDomain` for files, `InputStreamReadFailed` for streams.
  public func encode() throws -> Data {
    do { return try form.encode() } catch { throw generationThreeError(error) }
  }

  /// Writes the encoded form to a file, which must not exist yet.
  ///
  /// - Throws: An `NSError`: of `NSURLErrorDomain` for files, `InputStreamReadFailed` and `OutputStreamWriteFailed` for
  ///   streams.
  public func writeEncodedDataToDisk(_ fileURL: URL) throws {
    do { try form.writeEncodedData(to: fileURL) } catch { throw generationThreeError(error) }
  }
}

extension Manager {
  /// From how many bytes of parts on a form is sent from a file: 10 MiB.
  public static let MultipartFormDataEncodingMemoryThreshold: UInt64 = 10 * 1024 * 1024

  /// The result of encoding a form.
  public enum MultipartFormDataEncodingResult {
    /// The form is being sent: by this request, from a file or not, and from which. The file is removed when the
    /// request is over.
    case Success(request: Request, streamingFromDisk: Bool, streamFileURL: URL?)
    /// The form could not be encoded.
    case Failure(any Error)
  }

  func send(
    _ prepared: PreparedRequest, _ fill: @escaping (MultipartFormData) -> Void, _ threshold: UInt64,
    _ completion: ((MultipartFormDataEncodingResult) -> Void)?
  ) {
    let user = Boxed((fill: fill, completion: completion))
    DispatchQueue.global().async {
      let form = MultipartFormData()
      user.value.fill(form)
      let result: Boxed<MultipartFormDataEncodingResult>
      do {
        result = Boxed(try self.send(form, prepared.with(contentType: form.contentType), threshold))
      } catch {
        result = Boxed(.Failure(generationThreeError(error)))
      }
      DispatchQueue.main.async { user.value.completion?(result.value) }
    }
  }

  private func send(
    _ form: MultipartFormData, _ prepared: PreparedRequest, _ threshold: UInt64
  ) throws -> MultipartFormDataEncodingResult {
    guard form.contentLength >= threshold else {
      let data = try form.encode()
      let request =
        prepared.value.map { upload($0, data: data) } ?? begin(core.upload(data, with: prepared), prepared)
      return .Success(request: request, streamingFromDisk: false, streamFileURL: nil)
    }
    let file = try FormFile("com.alamofire.manager")
    do {
      try form.writeEncodedDataToDisk(file.url)
    } catch {
      file.remove()
      throw error
    }
    let request =
      prepared.value.map { upload($0, file: file.url) }
      ?? begin(core.upload(file.url, with: prepared), prepared)
    // The first step after the end, because the caller has no reference to the request yet.
    request.completionQueue.add(for: request) { _ in file.remove() }
    request.record.withLock { $0.form = file }
    return .Success(request: request, streamingFromDisk: true, streamFileURL: file.url)
  }
}
