import Alamofire
import Foundation
import Glibc

/// The file of `--har`: an HTTP archive of the requests that were sent.
final class ArchiveFile: Sendable {
  let recorder = RequestRecorder()
  private let path: String

  /// Checks the path, so that one that cannot be written is found before a request is sent; `nil` without the option.
  /// An earlier archive stays until the new one is complete.
  init?(_ invocation: Invocation) throws(UsageError) {
    guard let path = invocation.archive else { return nil }
    self.path = path
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    if isFolder.boolValue { throw UsageError(SavedFile.Failure(path, code: EISDIR).sentence) }
    guard access(exists ? path : Self.folder(path), W_OK) == 0 else {
      throw UsageError(SavedFile.Failure(path).sentence)
    }
  }

  private static func folder(_ path: String) -> String {
    URL(fileURLWithPath: path).deletingLastPathComponent().path
  }

  /// Writes the requests that have ended. Returns the reason if they cannot be written.
  func write() -> String? {
    recorder.queue.sync {}
    do {
      let archive = try recorder.har()
      // A new archive is for its owner alone, because not all secrets can be recognized.
      try PrivateFile.write(archive, to: path, keepsMode: true)
      return nil
    } catch let failure as PrivateFile.Failure {
      return SavedFile.Failure(path, code: failure.code).sentence
    } catch {
      return error.localizedDescription
    }
  }
}
