import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// The body of an upload.
final class UploadBody: Sendable {
  /// Makes the body of an attempt. May block.
  private let make: @Sendable () throws -> UploadContent
  /// Whether the body cannot be made again, so that further attempts send the file that was made; `nil` for a body
  /// that is not a form. Asked before each further attempt.
  private let isSpent: (@Sendable () -> Bool)?
  let fileManager: FileManager
  /// Whether making the body runs user code, which may block.
  let runsUserCode: Bool
  /// The upload of a background session; `nil` in others.
  let transfer: BackgroundTransfer?
  /// Guarded by the lock of this class.
  private struct State {
    /// The resumer of a resumable upload.
    var resumer: UploadResumer?
    /// The body of the last attempt, and the file that was created from it.
    var content: UploadContent?
    var madeFile: URL?
    /// The trailer fields that follow the body.
    var trailers: RequestTrailers?
  }

  /// The body and its resumer, for the loop, attempts and the threads of users.
  private let state = Mutex(State())

  init(
    fileManager: FileManager, transfer: BackgroundTransfer?, runsUserCode: Bool,
    isSpent: (@Sendable () -> Bool)?, _ make: @escaping @Sendable () throws -> UploadContent
  ) {
    self.fileManager = fileManager
    self.transfer = transfer
    self.runsUserCode = runsUserCode
    self.isSpent = isSpent
    self.make = make
  }

  /// The decisions about a resumable upload; `nil` for an ordinary one.
  var resumer: UploadResumer? { state.withLock { $0.resumer } }

  /// Returns the decisions, which are the given ones if there were none.
  func resumer(orAdd new: UploadResumer) -> UploadResumer {
    state.withLock { state in
      let used = state.resumer ?? new
      state.resumer = used
      return used
    }
  }

  /// The body of the last attempt; `nil` before it was created.
  var content: UploadContent? { state.withLock { $0.content } }

  /// The trailer fields of an ordinary upload.
  var trailers: RequestTrailers? {
    get { state.withLock { $0.trailers } }
    set { _ = state.withLock { replace(&$0.trailers, with: newValue) } }
  }

  /// Keeps the body of an attempt.
  func use(_ content: UploadContent) { _ = state.withLock { replace(&$0.content, with: content) } }

  /// Replaces the stream of the body by one that a delegate gave.
  func use(_ answer: UploadContent?, of request: @autoclosure () -> URLRequest?) throws(AFError) {
    guard let answer else {
      throw .sessionTaskFailed(
        error: URLError(
          .requestBodyStreamExhausted, "The session's delegate gave no stream for the body of the request.",
          url: request()?.url?.absoluteString ?? ""))
    }
    use(answer)
  }

  /// Whether there is a file that was created for the upload, and has not been removed yet.
  var hasMadeFile: Bool { state.withLock { $0.madeFile != nil } }

  /// Removes the file that was created for the upload. A missing file, or one that cannot be removed, does not fail the
  /// request.
  func removeMadeFile() {
    if let url = state.withLock({ $0.madeFile.take() }) { try? fileManager.removeItem(at: url) }
  }

  /// Makes the body of an attempt, in place of the file of an earlier one if there is any. Blocks for as long as the
  /// caller's code does. A new file is removed with the request even if no attempt sends it.
  func made() -> Result<UploadContent, AFError> {
    let earlier = state.withLock { $0.madeFile }
    if let earlier, let isSpent {
      if isSpent() { return .success(.file(earlier, shouldRemove: true)) }
      // There may be no room for two files of a large form.
      removeMadeFile()
    }
    var content = makeContent()
    if case .failure = content, isSpent == nil, earlier != nil {
      // The caller's code may write to the same path again, and refuse to replace a file.
      removeMadeFile()
      content = makeContent()
    }
    guard case .success(let new) = content else { return content }
    var file: URL?
    if case .file(let url, true) = new { file = url }
    state.withLock { $0.madeFile = file }
    // The caller may name one file for all attempts.
    if isSpent == nil, let earlier, earlier.path != file?.path { try? fileManager.removeItem(at: earlier) }
    return content
  }

  private func makeContent() -> Result<UploadContent, AFError> {
    do {
      guard let transfer else { return .success(try make()) }
      return .success(try transfer.uploadable(make))
    } catch {
      return .failure(error as? AFError ?? .createUploadableFailed(error: error))
    }
  }
}

extension BackgroundTransfer {
  /// Whether the file that a resumable upload sends is still the one in the journal.
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
          error: URLError(
            .unsupportedURL,
            "A background session cannot upload an InputStream, which no other process could read again; "
              + "upload a file.", url: nil))
      }
    }
    return bodyFile.map { .file($0, shouldRemove: false) } ?? .data(Data())
  }
}
