import Alamofire
import Foundation

/// A download in segments, or one whose checksum is verified. A later run with the same file continues it.
struct SegmentedExchange {
  let environment: Environment
  let invocation: Invocation
  let request: URLRequest
  var archive: ArchiveFile?

  func run(_ kept: KeptState, path: String) async throws(UsageError) -> ExitCode {
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassword: environment.askPassword)
    let download = session.segmentedDownload(
      request, segments: invocation.segments ?? 1, checksum: invocation.checksum,
      to: URL(fileURLWithPath: path), options: [.removePreviousFile])
    let meter = ProgressMeter(environment, invocation)
    // Queues of their own, because the main queue waits for the response.
    if let meter {
      download.downloadProgress(queue: DispatchQueue(label: "af.progress")) { progress in
        meter.received(completed: progress.completedBytes, total: progress.totalBytes ?? -1)
      }
    }
    let queue = DispatchQueue(label: "af.segments")
    let response = await withCheckedContinuation { continuation in
      download.response(queue: queue) { continuation.resume(returning: $0) }
    }
    meter?.finish()
    return finish(response, path: path, partialPath: download.partialFileURL.path)
  }

  private func finish(_ response: SegmentedDownload.Response, path: String, partialPath: String) -> ExitCode {
    guard let error = response.error else {
      if environment.isErrorTerminal, !invocation.isQuiet { environment.writeError("Saved in \(path)\n") }
      return .success
    }
    Command.complain(text(error), in: environment)
    if FileManager.default.fileExists(atPath: partialPath) {
      environment.writeError("What came is in \(partialPath); the same command gets the rest.\n")
    }
    guard invocation.checksStatus, let code = response.response?.statusCode else { return .failure }
    let status = ExitCode(statusCode: code)
    return status == .success ? .failure : status
  }

  private func text(_ error: AFError) -> String {
    if case .checksumMismatch(_, let actual) = error.underlyingError as? SegmentedDownload.Failure {
      return "The file does not have the checksum of --checksum, but \(actual). It was removed."
    }
    return FailureMessage.text(error, isVerbose: invocation.shown == .everything)
  }
}
