import Foundation
import HTTPWire

/// The state of the transfer by its journal, from which this process continues.
extension BackgroundTransfer {
  /// Whether an earlier process may have sent the request, which must not be sent a second time.
  package var isLost: Bool { continuation == .lost }

  /// Whether the request may be sent again after a failure in this process.
  package var mayRepeat: Bool { stored?.mayRepeat ?? true }

  private var continuation: StoredTransfer.Continuation {
    guard let stored, let files = try? owner.files() else { return .send }
    var isAtDestination = false
    if case .moving(let path, _) = stored.phase {
      isAtDestination = FileManager.default.fileExists(atPath: path)
    }
    return stored.continuation(
      boot: files.boot, fileSize: files.size(of: names.file), isAtDestination: isAtDestination,
      hasResponseBody: files.size(of: names.answer) != nil)
  }

  /// The head of the response and the phase, if the file or the response is complete.
  package var completed: (head: ResponseHead, phase: StoredTransfer.Phase)? {
    guard let stored, let head = stored.head?.head, continuation == .deliver else { return nil }
    return (head, stored.phase)
  }

  /// The head of the response and the size of the file, if a part of it is there.
  package var part: (head: ResponseHead, offset: Int64, size: Int64)? {
    guard let stored, let head = stored.head?.head, case .resume(let size) = continuation else { return nil }
    return (head, stored.offset, size)
  }

  /// The options of a resumable upload; `nil` for any other transfer.
  package var resumption: UploadResumption.Policy? { stored?.description.resumption }

  /// The resumable upload that the server has named, and whether the server may have all bytes of it.
  package var upload: (StoredUpload, mayBeComplete: Bool)? {
    stored.flatMap { stored in stored.upload.map { ($0, stored.mayBeComplete(boot: owner.boot)) } }
  }

  /// The file that the upload sends, as the journal has it.
  package var storedBody: TransferDescription.BodyFile? { stored?.description.bodyFile }

  /// Whether the file that the upload sends belongs to the journal.
  package func owns(_ file: URL) -> Bool { file.path == owner.path(of: names.body) }

  /// The URL of the response, if it is not that of the request.
  package var location: URL? { stored?.location.flatMap { URL(wire: $0) } }

  /// The body of the response to an upload.
  package var answerBody: Data? {
    guard case .answered(hasBody: true)? = stored?.phase else { return nil }
    return (try? owner.files())?.read(names.answer)
  }

  /// Whether the file that is being moved to `path` is there, complete.
  package func isAtDestination(_ path: String) -> Bool {
    guard let files = try? owner.files(), files.size(of: names.file) != nil else {
      return FileManager.default.fileExists(atPath: path)
    }
    // The process ended after the file was copied to another file system, and before its original was removed. Any
    // other file at the destination is an older one, which may have the same size.
    guard FileManager.default.contentsEqual(atPath: filePath, andPath: path) else { return false }
    files.remove(names.file)
    return true
  }
}
