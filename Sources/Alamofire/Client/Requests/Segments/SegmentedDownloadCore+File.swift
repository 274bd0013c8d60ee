import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

// The files of a download in segments. All of these functions run on its queue.
extension SegmentedDownloadCore {
  /// The time between two renewals of the record.
  private static let flushInterval = Duration.seconds(5)
  /// The time between two calls of the handlers of progress.
  private static let noticeInterval = Duration.milliseconds(100)

  /// Opens the partial file. Returns it with the URL of the download.
  func open() throws -> (PartialFile, url: String) {
    let request = try source.request(of: 0)
    guard destination.isFileURL else {
      throw AFError.sessionTaskFailed(error: SegmentedDownload.Failure.unsuitableDestination(destination))
    }
    if let checksum = target.checksum, checksum.digest == nil {
      throw AFError.sessionTaskFailed(
        error: SegmentedDownload.Failure.checksumMismatch(expected: checksum, actual: ""))
    }
    let folder = destination.deletingLastPathComponent()
    if target.options.contains(.createIntermediateDirectories) {
      do { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) } catch {
        throw AFError.downloadedFileMoveFailed(
          error: error, source: partialFileURL, destination: destination)
      }
    }
    if !target.options.contains(.removePreviousFile),
      FileManager.default.fileExists(atPath: destination.path)
    {
      throw moveFailure(EEXIST)
    }
    guard destination.lastPathComponent.utf8.count <= SuggestedFilename.longest else {
      throw moveFailure(ENAMETOOLONG)
    }
    if let code = obstacle(at: destination) { throw moveFailure(code) }
    let text = request.url?.absoluteString ?? ""
    do throws(PartialFile.OpeningFailure) {
      let file = try PartialFile(path: partialFileURL.path, recordPath: target.recordPath)
      return (file, WireTarget(text)?.url ?? text)
    } catch {
      switch error {
      case .inUse:
        throw AFError.sessionTaskFailed(error: SegmentedDownload.Failure.fileInUse(partialFileURL))
      case .system(let failure): throw AFError(failure, url: text)
      }
    }
  }

  /// Returns the error for something that a file must not replace: a folder, for which that would be found out at the
  /// end only, a pipe, a device or a socket. A symbolic link is replaced, wherever it leads.
  private func obstacle(at url: URL) -> Int32? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: url.path)
    return switch attributes?[.type] as? FileAttributeType {
    case nil, .typeRegular?, .typeSymbolicLink?: nil
    case .typeDirectory?: EISDIR
    default: EINVAL
    }
  }

  private func moveFailure(_ code: Int32) -> AFError {
    let error = NSError(
      domain: NSPOSIXErrorDomain, code: Int(code),
      userInfo: [NSLocalizedDescriptionKey: String(cString: strerror(code))])
    return .downloadedFileMoveFailed(error: error, source: partialFileURL, destination: destination)
  }

  /// Returns what an earlier download of the same URL left in the file. The bytes are on the disk afterwards.
  func earlierContent(of file: PartialFile, from url: String) -> SegmentContent? {
    guard let state = file.record().flatMap({ Journal.standard.state(of: $0) }), state.description.url == url,
      let version = state.representation, version.validator != nil, let length = version.length,
      // A longer file would have bytes that no segment replaces.
      file.size <= length
    else { return nil }
    var present = state.received(boot: PartialFile.boot, fileSize: Int64(file.size))
    let hasAllRecorded = present == state.received(boot: PartialFile.boot, fileSize: Int64(length))
    // Without a given checksum, a response has to confirm the version and carry the server's digest.
    if target.checksum == nil, length > 0, present.count == length {
      present = ByteRanges([0..<(length - 1)])
    }
    let content = SegmentContent(version: version, present: present)
    guard !present.ranges.isEmpty, file.flush() else { return nil }
    // If the record cannot be renewed, the earlier one is right as long as the file has all of its bytes.
    return write(content, with: present, to: file, from: url) || hasAllRecorded ? content : nil
  }

  /// Discards the bytes in the file.
  func prepare(_ version: Representation?) {
    let (file, url) = state.withLock { ($0.file, $0.url) }
    guard let file else { return }
    if let failure = file.prepare(length: version?.length) {
      return conclude(.failure(AFError(failure, url: url)))
    }
    guard let version, version.length ?? 0 > 0 else { return }
    let content = SegmentContent(version: version, present: ByteRanges())
    _ = write(content, with: ByteRanges(), to: file, from: url)
  }

  /// Replaces the record.
  ///
  /// - Parameters:
  ///   - content: The bytes in the file that are also on the disk.
  ///   - present: The bytes in the file.
  private func write(
    _ content: SegmentContent, with present: ByteRanges, to file: PartialFile, from url: String
  ) -> Bool {
    let boot = PartialFile.boot
    let description = TransferDescription(
      kind: .download, url: url, method: "GET", fields: [:], created: Date().timeIntervalSince1970, boot: boot
    )
    let records: [JournalRecord] = [
      .described(description), .identified(content.version, boot: boot), .present(content.present),
      .wrote(present),
    ]
    return Journal.standard.lines(of: records).map { file.replaceRecord(by: $0) } ?? false
  }

  /// Renews the record from time to time with the ranges that are on the disk.
  func flushRegularly() {
    let now = now
    let work = state.withLock { state -> (file: PartialFile, content: SegmentContent)? in
      guard !state.isFlushing, now - state.lastFlush > Self.flushInterval, let file = state.file,
        let content = state.content
      else { return nil }
      state.isFlushing = true
      state.lastFlush = now
      return (file, content)
    }
    guard let work else { return }
    // Not on the queue, because the disk may need seconds, and responses wait for the queue.
    DispatchQueue.global().async {
      let isFlushed = work.file.flush()
      self.queue.async { self.renewRecord(work.content, isFlushed: isFlushed) }
    }
  }

  private func renewRecord(_ flushed: SegmentContent, isFlushed: Bool) {
    let (file, current, url) = state.withLock { state in
      state.isFlushing = false
      return (state.file, state.content, state.url)
    }
    // The file may have begun again.
    guard let file, let current, current.version == flushed.version,
      flushed.present.ranges.allSatisfy({ current.present.contains($0) })
    else { return }
    guard isFlushed else { return failToFlush(file) }
    _ = write(flushed, with: current.present, to: file, from: url)
  }

  /// Verifies the complete file and moves it to its destination.
  func finish() {
    guard let file = state.withLock({ $0.file }) else { return }
    announceProgress(always: true)
    guard file.flush() else { return failToFlush(file) }
    if let failure = verify(file) {
      file.remove()
      return conclude(.failure(failure))
    }
    let isReplacing = target.options.contains(.removePreviousFile)
    let keepsMode = target.options.contains(.keepsPermissions)
    if let code = file.move(to: destination.path, replacing: isReplacing, keepsMode: keepsMode) {
      return conclude(.failure(moveFailure(code)))
    }
    conclude(.success(destination))
  }

  /// Ends the download, because bytes of the file may be lost.
  private func failToFlush(_ file: PartialFile) {
    file.remove()
    let text =
      "The file \(partialFileURL.path) cannot be flushed to the disk. Check the disk and its free space."
    conclude(.failure(.sessionTaskFailed(error: URLError(.cannotWriteToFile, text, url: nil))))
  }

  /// Returns the error if the file does not have the expected checksum.
  private func verify(_ file: PartialFile) -> AFError? {
    let expected = [target.checksum?.digest, state.withLock { $0.digest }].compactMap { $0 }
    for digest in expected {
      guard let hash = OpenSSLHashes().makeRunningHash(digest.algorithm), file.read(into: hash),
        let bytes = hash.finish(), let actual = FileDigest(digest.algorithm, bytes)
      else {
        return .sessionTaskFailed(
          error: URLError(
            .cannotOpenFile, "The file \(partialFileURL.path) cannot be read for its checksum.", url: nil))
      }
      guard actual == digest else {
        return .sessionTaskFailed(
          error: SegmentedDownload.Failure.checksumMismatch(
            expected: FileChecksum(digest), actual: actual.hex))
      }
    }
    return nil
  }

  /// Closes the file of a download that has ended. If it cannot be continued, the file is removed.
  func close(_ file: PartialFile, _ state: SegmentsState, _ result: Result<URL, AFError>) {
    if case .success = result { return }
    if state.content == nil {
      file.remove()
    } else {
      file.close()
    }
  }

  /// Calls the handlers of progress.
  ///
  /// - Parameter always: Whether they are called even if they were called just before.
  func announceProgress(always: Bool) {
    let now = now
    let notice = state.withLock {
      state -> (observers: ProgressObservers, progress: SegmentedDownload.Progress)? in
      guard !state.progressObservers.isEmpty, !state.isEnded else { return nil }
      if !always, let last = state.lastNotice, now - last < Self.noticeInterval { return nil }
      state.lastNotice = now
      return (state.progressObservers, state.progress(at: now))
    }
    if let notice { notice.observers.notify(notice.progress) }
  }
}

/// The bytes of a partial file, and the representation to which they belong.
struct SegmentContent: Sendable {
  let version: Representation
  let present: ByteRanges
}

extension SegmentedDownloadCore.SegmentsState {
  /// The bytes in the file; `nil` if they cannot be continued, because there are none or a stream has them.
  var content: SegmentContent? {
    guard let version = transfer.version, let plan = transfer.plan, !plan.present.ranges.isEmpty else {
      return nil
    }
    return SegmentContent(version: version, present: plan.present)
  }
}
