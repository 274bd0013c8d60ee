import Foundation
import HTTPWire

/// The state of an upload of a file that another process can continue. It is encoded as a property list.
struct UploadCheckpoint: Codable, Equatable {
  /// The version of the format; others are refused.
  static let version = 1

  var version = UploadCheckpoint.version
  /// The URL of the upload.
  var url: String
  /// The URL that created the upload. Credentials go to its origin alone.
  var creationURL: String
  var method: String
  var isTus: Bool
  var file: UploadFileIdentity

  init(_ upload: StoredUpload, method: String, file: UploadFileIdentity) {
    url = upload.url
    creationURL = upload.creationURL
    self.method = method
    isTus = upload.dialect == .tus
    self.file = file
  }

  /// Decodes the data. Throws for data of another library or version.
  init(_ data: Data) throws(ResumableUploadError) {
    guard let decoded = try? PropertyListDecoder().decode(UploadCheckpoint.self, from: data),
      decoded.version == Self.version, decoded.file.size >= 0, decoded.upload?.resource != nil
    else { throw .invalidCheckpoint }
    self = decoded
  }

  var data: Data? {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    return try? encoder.encode(self)
  }

  /// `nil` if a URL is invalid.
  var upload: StoredUpload? {
    guard let resource = UploadResource(url: url), let creation = UploadResource(url: creationURL) else {
      return nil
    }
    return StoredUpload(resource, creation: creation, dialect: isTus ? .tus : .draft)
  }
}

/// The properties by which a file is recognised.
struct UploadFileIdentity: Codable, Equatable, Sendable {
  let size: Int64
  /// The time of the last change, in seconds since 1970.
  let modified: TimeInterval

  /// Reads the properties of a file; `nil` for anything but a regular file that exists.
  init?(_ url: URL) {
    guard url.isFileURL, let attributes = try? FileManager.default.attributesOfItem(atPath: url.path),
      attributes[.type] as? FileAttributeType == .typeRegular,
      let size = (attributes[.size] as? NSNumber)?.int64Value,
      let date = attributes[.modificationDate] as? Date
    else { return nil }
    self.size = size
    modified = date.timeIntervalSince1970
  }
}

/// The request that created an upload, for the process that continues it.
struct CheckpointRequest: URLRequestConvertible {
  let checkpoint: Data
  let headers: HTTPHeaders?

  func asURLRequest() throws -> URLRequest {
    let checkpoint = try UploadCheckpoint(checkpoint)
    return try URLRequest(
      url: checkpoint.creationURL, method: HTTPMethod(rawValue: checkpoint.method), headers: headers)
  }
}
