import Foundation
import HTTPWire
import Synchronization

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

/// A part of the body of a resumable upload. It tells the upload how far it was read, because the server may have
/// processed an upload of which it may have every byte.
final class UploadPartSource: BodySource {
  private enum Content: Sendable {
    case data(Data)
    case source(any BodySource)
  }

  private let content: Content
  private let part: UploadResumption.Part
  private let upload: UploadResumer
  /// The number of bytes that were read since the last start.
  private let position = Mutex<Int64>(0)

  init(_ data: Data, _ part: UploadResumption.Part, of upload: UploadResumer) {
    content = .data(data)
    self.part = part
    self.upload = upload
  }

  init(_ source: any BodySource, _ part: UploadResumption.Part, of upload: UploadResumer) {
    content = .source(source)
    self.part = part
    self.upload = upload
  }

  var length: Int64 { part.count }
  var isRepeatable: Bool { true }
  var isStored: Bool { true }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    position.withLock { $0 = 0 }
    switch content {
    case .data: return nil
    case .source(let source): return source.start(wake: wake)
    }
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    let reading =
      switch content {
      case .data(let data): read(data, into: room)
      case .source(let source): source.read(into: room)
      }
    guard case .bytes(let count) = reading else { return reading }
    let end = position.withLock { position in
      position += Int64(count)
      return part.offset + position
    }
    upload.contentRead(upTo: end)
    return reading
  }

  private func read(_ data: Data, into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    let rest = data.dropFirst(Int(position.withLock { $0 }))
    let count = rest.prefix(room.count).copyBytes(to: room)
    return count > 0 ? .bytes(count) : .end
  }

  func stop() {
    if case .source(let source) = content { source.stop() }
  }
}
