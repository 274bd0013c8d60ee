public import Foundation

extension SegmentedDownload {
  /// Returns the progress, about ten times a second, until the end. An element that was not read yet is replaced by the
  /// next one.
  ///
  /// - Parameter bufferingPolicy: The limit of unread elements. Default: the newest one.
  public func progress(
    bufferingPolicy: StreamOf<Progress>.BufferingPolicy = .bufferingNewest(1)
  ) -> StreamOf<Progress> {
    StreamOf(bufferingPolicy: bufferingPolicy) { continuation in
      core.addProgressHandler { continuation.yield($0) }
      core.addHandler { _ in continuation.finish() }
    }
  }

  /// The outcome. The download is cancelled with the task that awaits it.
  public var response: Response {
    get async {
      let response = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          core.addHandler { continuation.resume(returning: $0) }
        }
      } onCancel: {
        core.cancel()
      }
      // The lock makes the order of the two threads visible to ThreadSanitizer, which misses it for a continuation
      // that is resumed before it is awaited.
      core.state.withLock { _ in }
      return response
    }
  }

  /// The URL of the file, or the error. The download is cancelled with the task that awaits it.
  public var result: Result<URL, AFError> {
    get async { await response.result }
  }

  /// The URL of the file; throws the ``AFError``. The download is cancelled with the task that awaits it.
  public var value: URL {
    get async throws { try await response.result.get() }
  }
}
