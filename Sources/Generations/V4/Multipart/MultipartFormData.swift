import Alamofire
public import Foundation

/// A form whose fields and files are sent as `multipart/form-data` (RFC 7578).
///
/// If a part is invalid, every later encoding throws the first such failure. A form is used by one thread at a time.
open class MultipartFormData {
  /// The core's form, which does the work.
  let form = Alamofire::MultipartFormData()

  /// The value of the `Content-Type` field that goes with the form.
  open var contentType: String {
    get { form.contentType }
    set { form.contentType = newValue }
  }

  /// The number of bytes in all parts, without heads and boundaries.
  public var contentLength: UInt64 { form.contentLength }
  /// The separator of the parts, which is random.
  public var boundary: String { form.boundary }

  /// Makes an empty form.
  public init() {}

  /// Appends a plain field.
  public func append(_ data: Data, withName name: String) {
    form.append(data, withName: name)
  }

  /// Appends a field with a content type.
  public func append(_ data: Data, withName name: String, mimeType: String) {
    form.append(data, withName: name, mimeType: mimeType)
  }

  /// Appends bytes as a file.
  public func append(_ data: Data, withName name: String, fileName: String, mimeType: String) {
    form.append(data, withName: name, fileName: fileName, mimeType: mimeType)
  }

  /// Appends a file; its name is the last component of the URL, its content type follows from the extension.
  public func append(_ fileURL: URL, withName name: String) {
    form.append(fileURL, withName: name)
  }

  /// Appends a file under a name and with a content type of your choice.
  public func append(_ fileURL: URL, withName name: String, fileName: String, mimeType: String) {
    form.append(fileURL, withName: name, fileName: fileName, mimeType: mimeType)
  }

  /// Appends exactly `length` bytes of a stream, as a file. The stream is read when the form is encoded.
  public func append(
    _ stream: InputStream, withLength length: UInt64, name: String, fileName: String, mimeType: String
  ) {
    form.append(stream, withLength: length, name: name, fileName: fileName, mimeType: mimeType)
  }

  /// Appends exactly `length` bytes of a stream, with your own header fields, which are sorted by name.
  public func append(_ stream: InputStream, withLength length: UInt64, headers: HTTPHeaders) {
    let sorted = headers.sorted { $0.key < $1.key }.map {
      Alamofire::HTTPHeader(name: $0.key, value: $0.value)
    }
    form.append(stream, withLength: length, headers: Alamofire::HTTPHeaders(sorted))
  }

  /// Encodes the form in memory.
  ///
  /// - Throws: ``AFError/multipartEncodingFailed(reason:)``.
  public func encode() throws -> Data {
    do { return try form.encode() } catch { throw legacy(error) }
  }

  /// Encodes the form into a new file. The folder must be there, the file must not.
  ///
  /// - Throws: ``AFError/multipartEncodingFailed(reason:)``.
  public func writeEncodedData(to fileURL: URL) throws {
    do { try form.writeEncodedData(to: fileURL) } catch { throw legacy(error) }
  }
}
