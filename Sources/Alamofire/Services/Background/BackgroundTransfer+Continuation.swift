import Foundation
import HTTPSystem
import HTTPWire
import Synchronization

/// The state of the transfer by its journal, from which this process continues.
extension BackgroundTransfer {
  package var kind: TransferDescription.TransferKind { stored?.description.kind ?? .download }

  /// Whether a server has responded, in whatever process.
  package var hasHadResponse: Bool { stored.map { $0.head != nil || $0.representation != nil } ?? false }

  /// The request as it was before its adaptation, from the journal; `nil` until it is written.
  package var request: URLRequest? { stored.flatMap { URLRequest($0.description) } }

  package var isDescribed: Bool { stored != nil }

  /// Whether the request had transport options in an earlier process. They are not in the journal.
  package var lacksOptions: Bool { isRestored && stored?.hasOwnOptions == true }

  /// Whether the request waits until the caller has set its options and resumed it.
  package var awaitsOptions: Bool { isRestored && owner.isUnresumed(self) }

  /// Notes that the request was resumed.
  package func noteResumed() {
    if isRestored { owner.resumed(self) }
  }

  /// The seconds since the transfer was created, in whatever process.
  package var age: TimeInterval { stored?.description.age(at: owner.now()) ?? 0 }

  /// Whether an earlier process may have sent the request, which must not be sent a second time.
  package var isLost: Bool { continuation == .lost }

  /// Whether the request may be sent again after a failure in this process.
  package var mayRepeat: Bool { stored?.mayRepeat ?? true }

  private var continuation: JournalState.Continuation {
    guard let stored, let files = try? owner.files() else { return .send }
    let destination: String? =
      switch stored.phase {
      case .moving(let path, _), .moved(let path): path
      case .waiting, .receiving, .completed, .answered: nil
      }
    let entry = destination.map { FileMove.entry(at: $0) } ?? .missing
    return stored.continuation(
      boot: files.boot, fileSize: hasLostBytes ? nil : files.size(of: names.file),
      isAtDestination: entry == .file, isReplaced: entry == .other,
      hasResponseBody: files.size(of: names.answer) != nil)
  }

  /// The head of the response and the phase, if the file or the response is complete.
  package var completed: (head: ResponseHead, phase: TransferProgress)? {
    guard let stored, let head = stored.head?.head, continuation == .deliver else { return nil }
    return (head, stored.phase)
  }

  /// The representation and the size of the file, if a part of it is there that can be continued.
  var part: (version: Representation, size: Int64)? {
    guard let stored, case .resume(let size) = continuation else { return nil }
    let version =
      stored.representation
      ?? stored.head.flatMap { Representation(resumable: $0.head, from: stored.offset, now: .now) }
    return version.map { ($0, size) }
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

  /// The URL of the response, if it differs from the request's.
  package var location: URL? { stored?.location.flatMap { URL(wire: $0) } }

  /// The body of the response to an upload.
  package var answerBody: Data? {
    guard case .answered(hasBody: true)? = stored?.phase else { return nil }
    return (try? owner.files())?.read(names.answer)
  }

  /// The path of a page that a server sends instead of the rest of the file.
  var pagePath: String { owner.path(of: names.answer) }

  /// Begins with the first `count` bytes of the file of an earlier download, which is moved to the folder of the
  /// session. Does nothing if the transfer has begun.
  ///
  /// - Parameters:
  ///   - request: The request for the whole file.
  ///   - version: The representation that the bytes belong to.
  package func adopt(
    _ request: URLRequest, _ version: Representation, path: String, count: Int64
  ) throws(AFError) {
    guard !isDescribed else { return }
    try describe(request, kind: .download)
    // The journal is first, because the file alone would be lost. Without the file, the transfer begins with its
    // first byte.
    note(.identified(version, boot: owner.boot))
    if FileSink.movePart(path, to: filePath, count: count) { note(.present(ByteRanges(first: count))) }
  }

  /// Removes the transfer, whose handlers have returned.
  ///
  /// - Parameter run: The run that has ended. The transfer is not removed if the request was sent again since. Default:
  ///   any.
  package func remove(after run: Int? = nil) {
    if discard(after: run) { owner.ended(self) }
  }

  /// Replaces the journal by one of a transfer that has not begun, in one step: a process that ends now leaves the
  /// earlier outcome or the request. Then the file and the response are removed, which the earlier journal counted.
  ///
  /// - Parameter description: The transfer; `nil` if it gets no journal.
  /// - Returns: The journal; `nil` if there is none, because it cannot be written.
  func renewJournal(
    _ files: any TransferFiles, _ description: TransferDescription?, _ upload: StoredUpload?,
    hasOwnOptions: Bool
  ) -> TransferJournal? {
    let records = description.map { Self.records($0, upload, hasOwnOptions: hasOwnOptions) }
    guard let records, let lines = Journal.standard.lines(of: records) else {
      files.remove(names.journal)
      removeOutcome(files)
      return nil
    }
    var isWritten = files.replace(names.journal, by: lines) == nil
    removeOutcome(files)
    // On a full disk there may be room for it only now, and else only instead of the earlier one.
    if !isWritten { isWritten = files.replace(names.journal, by: lines) == nil }
    if !isWritten {
      files.remove(names.journal)
      isWritten = files.make(names.journal, lines) == nil
    }
    return isWritten ? TransferJournal(records, written: names.journal, size: lines.count) : nil
  }

  private static func records(
    _ description: TransferDescription, _ upload: StoredUpload?, hasOwnOptions: Bool
  ) -> [JournalRecord] {
    var records = [JournalRecord.described(description)]
    if hasOwnOptions { records.append(.configured) }
    if let upload { records.append(.uploading(upload, mayBeComplete: true)) }
    return records
  }

  private func removeOutcome(_ files: any TransferFiles) {
    for name in [names.file, names.answer] { files.remove(name) }
  }

  package func noteMoved() { note(.moved) }

  /// Notes the URL of the response, if it differs from the request's because of redirects.
  package func noteLocation(_ url: URL) { note(.located(url: url.absoluteString)) }

  var flushFailureText: String {
    "The file \(filePath) of the download cannot be flushed to the disk. Check the disk and its free space."
  }

  /// Whether the file that is being moved to `path` is there, complete.
  package func isAtDestination(_ path: String) -> Bool {
    guard FileMove.entry(at: path) == .file else { return false }
    guard let files = try? owner.files(), files.size(of: names.file) != nil else { return true }
    // The process ended after the file was copied to another file system, and before its original was removed. Any
    // other file at the destination is an older one, which may have the same size.
    guard FileManager.default.contentsEqual(atPath: filePath, andPath: path),
      FileMove.isIndependent(path, of: filePath)
    else { return false }
    files.remove(names.file)
    return true
  }
}

extension TimeInterval {
  /// The nearest time that JSON has; none is longer than the age of the universe.
  var storable: TimeInterval { isNaN ? 0 : Swift.min(Swift.max(self, -1e18), 1e18) }
}

/// The file of a background download: reports the head and the written bytes to the transfer.
final class JournalledFile: BodySink {
  private let file: FileSink
  private let transfer: BackgroundTransfer

  init(_ file: FileSink, _ transfer: BackgroundTransfer) {
    self.file = file
    self.transfer = transfer
  }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    transfer.begin(head, of: file) { (file.begin(head, wake: wake), file.isAside ? nil : file.size) }
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    // Nothing of a page has to be flushed.
    transfer.write { flushed in
      file.isAside ? (file.receive(bytes), 0) : (file.receive(bytes, keeping: flushed), file.size)
    }
  }

  func finish() -> TransportFailure? {
    let failure = file.finish()
    transfer.noteClosed(file)
    return failure
  }
}

/// The body of a background upload, or a part of it: notifies the transfer before the last bytes are handed out. Until
/// then the server cannot have received the whole upload.
final class JournalledBody: BodySource {
  private let source: any BodySource
  private let transfer: BackgroundTransfer
  /// Whether the last bytes are also the last ones of the upload.
  private let isEnd: Bool
  /// The number of bytes that are still to be sent, for the loop and attempts.
  private let rest: Atomic<Int64>

  init(_ source: any BodySource, _ transfer: BackgroundTransfer, isEnd: Bool = true) {
    self.source = source
    self.transfer = transfer
    self.isEnd = isEnd
    rest = Atomic(source.length)
  }

  var length: Int64 { source.length }
  var isRepeatable: Bool { source.isRepeatable }
  var isStored: Bool { source.isStored }
  var stored: any BodySource { source.stored }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    rest.store(length, ordering: .relaxed)
    do throws(AFError) {
      if length <= 0, isEnd { try transfer.noteSent() }
    } catch {
      return TransportFailure(.cannotCreateFile, error.underlyingError?.localizedDescription ?? "")
    }
    return source.start(wake: wake)
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    transfer.read {
      let reading = source.read(into: room)
      guard case .bytes(let count) = reading else { return (reading, false) }
      let left = rest.subtract(Int64(count), ordering: .relaxed).newValue
      return (reading, isEnd && left <= 0)
    }
  }

  func stop() { source.stop() }
}

/// Answers a request from the journal of its transfer, which an earlier process completed.
struct StoredResponseTransport: AsyncTransport {
  let head: ResponseHead
  let body: Data?

  init(head: ResponseHead, body: Data?) {
    var head = head
    head.role = .answer
    self.head = head
    self.body = body
  }

  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let control = LocalTransferControl(deadline: request.deadline, request.profile.options.timeLimits)
    defer { observer.transferEnded() }
    control.begin(observer.transferBegan(control))
    try await control.pass()
    let openings = control.resumptions
    if observer.headReceived(head) == .hold { control.suspend(unlessResumedSince: openings) }
    try await control.pass()
    return WireResponse(head: head, body: body, metrics: TransferMetrics())
  }
}

extension BackgroundTransfer {
  /// The names of the files of a transfer.
  struct Names {
    let journal, file, body, answer: String

    init(_ id: UUID) {
      journal = "\(id.uuidString).journal"
      // A name of resume data, which a failed download leaves.
      file = "Alamofire_\(id.uuidString).tmp"
      body = "\(id.uuidString).body"
      answer = "\(id.uuidString).response"
    }

    var all: [String] { [file, body, answer, journal] }

    /// Removes the files that only the journal knew, which was removed before.
    func removeFiles(in files: any TransferFiles, _ bodyFile: TransferDescription.BodyFile?) {
      for name in [file, body, answer] { files.remove(name) }
      if let bodyFile, bodyFile.isOwned { try? FileManager.default.removeItem(atPath: bodyFile.path) }
    }
  }
}

extension URLRequest {
  /// Makes the request of a description; `nil` if its URL is invalid.
  init?(_ description: TransferDescription) {
    guard let url = URL(wire: description.url) else { return nil }
    self.init(url: url)
    httpMethod = description.method
    allHTTPHeaderFields = description.fields
    httpBody = description.body
    timeoutInterval = description.timeout
    cachePolicy = CachePolicy(rawValue: description.cachePolicy) ?? .useProtocolCachePolicy
    httpShouldHandleCookies = description.handlesCookies ?? true
    mainDocumentURL = description.mainDocument.flatMap { URL(wire: $0) }
  }
}

extension TransferDescription {
  /// Takes over what a request has beside its URL, method, fields and body.
  mutating func takeProperties(of request: URLRequest) {
    if !request.timeoutInterval.isNaN { timeout = request.timeoutInterval.storable }
    cachePolicy = request.cachePolicy.rawValue
    handlesCookies = request.httpShouldHandleCookies ? nil : false
    mainDocument = request.mainDocumentURL?.absoluteString
  }
}

/// The properties by which a file is recognised.
struct UploadFileIdentity: Decodable, Equatable, Sendable {
  let size: Int64
  /// The time of the last change, in seconds since 1970.
  let modified: TimeInterval

  init(size: Int64, modified: TimeInterval) {
    self.size = size
    self.modified = modified
  }

  /// Reads the properties of a file; `nil` for anything but a regular file that exists. A symbolic link is followed, as
  /// it is when the file is sent.
  init?(_ url: URL) {
    var status = stat()
    guard url.isFileURL, stat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    // Foundation's rounding, because the times are compared, also with the ones that earlier versions noted.
    let seconds = TimeInterval(status.st_mtim.tv_sec) - Date.timeIntervalBetween1970AndReferenceDate
    let date = Date(timeIntervalSinceReferenceDate: seconds + TimeInterval(status.st_mtim.tv_nsec) / 1e9)
    self.init(size: Int64(status.st_size), modified: date.timeIntervalSince1970)
  }
}
