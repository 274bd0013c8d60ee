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
      let isNew = !FileManager.default.fileExists(atPath: path)
      // A pipe or a device is written to, and so is a file in a folder that takes no other one.
      guard isNew || LocalFile.isRegular(path) && access(Self.folder(path), W_OK) == 0 else {
        try SavedFile(path: path, isContinued: false).write(archive)
        return nil
      }
      let target = URL(fileURLWithPath: path).resolvingSymlinksInPath()
      let permissions = try? FileManager.default.attributesOfItem(atPath: target.path)[.posixPermissions]
      try archive.write(to: target, options: .atomic)
      // The new file has the permissions of the earlier one.
      if let permissions {
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: target.path)
      }
      return nil
    } catch let failure as SavedFile.Failure {
      return failure.sentence
    } catch {
      return error.localizedDescription
    }
  }
}
