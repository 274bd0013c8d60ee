import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// The state of an upload of a file that another process can continue. It is encoded as a ``Journal``.
struct UploadCheckpoint: Equatable {
  let upload: StoredUpload
  let method: String
  let file: UploadFileIdentity

  init(_ upload: StoredUpload, method: String, file: UploadFileIdentity) {
    self.upload = upload
    self.method = method
    self.file = file
  }

  /// The largest size of a checkpoint in bytes. Larger data are refused.
  private static let largestSize = 1 << 20

  /// Decodes the data. Throws for data of another library or version.
  init(_ data: Data) throws(ResumableUploadError) {
    guard data.count <= Self.largestSize,
      let decoded = Self(Journal.standard.state(of: data)) ?? Version1(data)?.checkpoint,
      decoded.file.size >= 0, decoded.upload.resource != nil
    else { throw .invalidCheckpoint }
    self = decoded
  }

  private init?(_ state: JournalState?) {
    guard let state, state.description.kind == .upload, let upload = state.upload,
      let file = state.description.bodyFile, let modified = file.modified
    else { return nil }
    let identity = UploadFileIdentity(size: file.size, modified: modified)
    self.init(upload, method: state.description.method, file: identity)
  }

  /// The path of the file is left out, because the process that continues names it.
  var data: Data? {
    var description = TransferDescription(
      kind: .upload, url: upload.creationURL, method: method, fields: [:], created: 0, boot: "")
    description.bodyFile = .init(path: "", isOwned: false, size: file.size)
    description.bodyFile?.modified = file.modified
    return Journal.standard.lines(of: [.described(description), .uploading(upload, mayBeComplete: true)])
  }

  /// The property list from before the first release, which is read until 0.2.
  private struct Version1: Decodable {
    let version: Int
    let url, creationURL, method: String
    let isTus: Bool
    let file: UploadFileIdentity

    init?(_ data: Data) {
      guard let decoded = try? PropertyListDecoder().value(Self.self, from: data), decoded.version == 1
      else {
        return nil
      }
      self = decoded
    }

    var checkpoint: UploadCheckpoint? {
      guard let resource = UploadResource(url: url), let creation = UploadResource(url: creationURL) else {
        return nil
      }
      let upload = StoredUpload(resource, creation: creation, dialect: isTus ? .tus : .draft)
      return UploadCheckpoint(upload, method: method, file: file)
    }
  }
}

/// The request that created an upload, for the process that continues it.
struct CheckpointRequest: URLRequestConvertible {
  let checkpoint: Data
  let headers: HTTPHeaders?

  func asURLRequest() throws -> URLRequest {
    let checkpoint = try UploadCheckpoint(checkpoint)
    return try URLRequest(
      url: checkpoint.upload.creationURL, method: HTTPMethod(rawValue: checkpoint.method), headers: headers)
  }
}

/// A part of the body of a resumable upload. It reports to the upload how far it was read, because a server that may
/// have every byte may also have processed the upload.
final class UploadPartSource: BodySource {
  private enum Content: Sendable {
    case data(Data)
    case file(any BodySource, URL, UploadFileIdentity)
  }

  private let content: Content
  private let part: UploadResumption.Part
  /// The upload to which the source reports; `nil` if its bytes are not sent.
  private let upload: UploadResumer?
  /// The number of bytes that were read since the last start.
  private let position = Mutex<Int64>(0)

  init(_ data: Data, _ part: UploadResumption.Part, of upload: UploadResumer?) {
    content = .data(data)
    self.part = part
    self.upload = upload
  }

  /// Makes the source of a part of a file, which must not have changed since its identity was read.
  init(
    _ source: any BodySource, _ file: URL, _ identity: UploadFileIdentity, _ part: UploadResumption.Part,
    of upload: UploadResumer
  ) {
    content = .file(source, file, identity)
    self.part = part
    self.upload = upload
  }

  var length: Int64 { part.count }
  var isRepeatable: Bool { true }
  var isStored: Bool { true }

  var stored: any BodySource {
    switch content {
    case .data(let data): UploadPartSource(data, part, of: nil)
    case .file(let source, _, _): source
    }
  }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    position.withLock { $0 = 0 }
    switch content {
    case .data: return nil
    case .file(let source, _, _): return source.start(wake: wake) ?? change
    }
  }

  /// The failure of a file that was changed; `nil` if it is the same.
  private var change: TransportFailure? {
    guard case .file(_, let url, let identity) = content, UploadFileIdentity(url) != identity else {
      return nil
    }
    let error = ResumableUploadError.fileHasChanged
    return TransportFailure(
      .cannotReadBody, error.localizedDescription, cause: AFError.sessionTaskFailed(error: error))
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    let reading =
      switch content {
      case .data(let data): read(data, into: room)
      case .file(let source, _, _): source.read(into: room)
      }
    guard case .bytes(let count) = reading else { return reading }
    let end = position.withLock { position in
      position += Int64(count)
      return part.offset + position
    }
    // Without its last bytes, the server does not take the part for complete.
    if end >= part.end, let change { return .failure(change) }
    upload?.contentRead(upTo: end)
    return reading
  }

  private func read(_ data: Data, into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    let rest = data.dropFirst(Int(position.withLock { $0 }))
    let count = rest.prefix(room.count).copyBytes(to: room)
    return count > 0 ? .bytes(count) : .end
  }

  func stop() {
    if case .file(let source, _, _) = content { source.stop() }
  }
}
