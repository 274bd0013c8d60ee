import Foundation
import HTTPWire
import Synchronization

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
