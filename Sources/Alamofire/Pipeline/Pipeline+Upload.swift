import Foundation
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 1b, of uploads: the body is made, anew for each attempt.
  nonisolated(nonsending) func prepareUpload() async throws(AFError) {
    guard let body = core.body else { return }
    removeUploadedFile()
    let result = body.runsUserCode ? await offLoop { Self.made(body) } : Self.made(body)
    switch result {
    case .success(let uploadable):
      core.state.withLock { state in
        state.extras.uploadable = uploadable
        if case .file(let url, true) = uploadable { state.extras.uploadedFile = url }
      }
    case .failure(let error): core.fail(error)
    }
    if core.isMonitored { tellUploadable(result) }
    _ = try result.get()
  }

  private static func made(_ body: UploadBody) -> Result<UploadRequest.Uploadable, AFError> {
    do {
      return .success(try body.convertible.createUploadable())
    } catch {
      return .failure(error as? AFError ?? .createUploadableFailed(error: error))
    }
  }

  func removeUploadedFile() { core.removeUploadedFile() }
}

extension RequestCore {
  /// A file that was made for the upload goes when the attempt is over.
  func removeUploadedFile() {
    guard let body else { return }
    let url = state.withLock { state in
      defer { state.extras.uploadedFile = nil }
      return state.extras.uploadedFile
    }
    // One that is gone already, or cannot be removed, is nothing that the response should tell of.
    if let url { try? body.fileManager.removeItem(at: url) }
  }
}
