import Alamofire
import Foundation

/// The file of `--har`: an HTTP archive of the requests that were sent.
final class ArchiveFile: Sendable {
  let recorder = RequestRecorder()
  private let file: SavedFile

  /// Opens the file, so that a path that cannot be written is found before a request is sent; `nil` without the option.
  init?(_ invocation: Invocation) throws(UsageError) {
    guard let path = invocation.archive else { return nil }
    do throws(SavedFile.Failure) {
      file = try SavedFile(path: path, isContinued: false)
    } catch {
      throw UsageError(error.sentence)
    }
  }

  /// Writes the requests that have ended. Returns the reason if they cannot be written.
  func write() -> String? {
    recorder.queue.sync {}
    do {
      try file.write(recorder.har())
      return nil
    } catch let failure as SavedFile.Failure {
      return failure.sentence
    } catch {
      return error.localizedDescription
    }
  }
}
