import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// The body of an upload.
final class UploadBody: Sendable {
  /// Makes the body of an attempt. May block.
  private let make: @Sendable () throws -> UploadContent
  let fileManager: FileManager
  /// Whether making the body runs user code, which may block.
  let runsUserCode: Bool
  /// The upload of a background session; `nil` in others.
  let transfer: BackgroundTransfer?
  /// The resumer of a resumable upload, for attempts and the threads of users.
  private let resumption = Mutex<UploadResumer?>(nil)

  init(
    fileManager: FileManager, transfer: BackgroundTransfer?, runsUserCode: Bool,
    _ make: @escaping @Sendable () throws -> UploadContent
  ) {
    self.fileManager = fileManager
    self.transfer = transfer
    self.runsUserCode = runsUserCode
    self.make = make
  }

  /// The decisions about a resumable upload; `nil` for an ordinary one.
  var resumer: UploadResumer? { resumption.withLock { $0 } }

  /// Returns the decisions, which are the given ones if there were none.
  func resumer(orAdd new: UploadResumer) -> UploadResumer {
    resumption.withLock { resumer in
      let used = resumer ?? new
      resumer = used
      return used
    }
  }

  /// Makes the body of an attempt. Blocks for as long as code of the caller does.
  func made() -> Result<UploadContent, AFError> {
    do {
      guard let transfer else { return .success(try make()) }
      return .success(try transfer.uploadable(make))
    } catch {
      return .failure(error as? AFError ?? .createUploadableFailed(error: error))
    }
  }
}

extension BackgroundTransfer {
  /// Whether the file that a resumable upload sends is still the one of the journal.
  var hasSameFile: Bool {
    guard let stored = storedBody else { return false }
    let file = UploadFileIdentity(URL(fileURLWithPath: stored.path))
    return file?.size == stored.size && (stored.modified == nil || stored.modified == file?.modified)
  }

  /// Returns the file that the upload sends. A body in memory is written to one, so that another process has it too.
  fileprivate func uploadable(
    _ make: () throws -> UploadContent
  ) throws -> UploadContent {
    if bodyFile == nil {
      switch try make() {
      case .data(let data): try spool(data)
      case .file(let url, let isOwned):
        guard url.isFileURL else { return .file(url, shouldRemove: false) }
        // Another process, or another boot, would find other bytes in /proc.
        if !isOwned, let content = (try? GeneratedFile.content(of: url.path)).flatMap({ $0 }) {
          try spool(Data(content))
        } else {
          try adopt(url, isOwned: isOwned)
        }
      case .stream:
        throw AFError.sessionTaskFailed(
          error: URLError.made(
            .unsupportedURL,
            "A background session cannot upload an InputStream, which no other process could read again; "
              + "upload a file.", url: nil))
      }
    }
    return bodyFile.map { .file($0, shouldRemove: false) } ?? .data(Data())
  }
}
